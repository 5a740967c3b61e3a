"""A pipeline from its file, YAML or Python; raises PipelineFileError with every problem that the file itself shows."""

import os
import runpy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from skyrocket.pipeline.declared.locations import PythonLocations
from skyrocket.pipeline.declared.plan import FILE_FORMATS, TABLE_FORMATS, Decode, Pipeline
from skyrocket.pipeline.declared.problems import PipelineFileError
from skyrocket.pipeline.declared.reading import Located, read_yaml
from skyrocket.pipeline.declared.rules import check_rules


def load(path: str | Path, environment: Mapping[str, str] | None = None) -> Located:
    """The pipeline of a file, checked as far as it can be without Spark and brokers. Paths in it are relative to it."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise PipelineFileError.at(path, f"the file cannot be read: {why}", "check its path") from None
    if file.suffix == ".py":
        found = _from_python(file, text)
    else:
        found = read_yaml(str(path), text, os.environ if environment is None else environment)
    check_rules(found.pipeline, found.locations)
    return Located(_beside(found.pipeline, file.resolve().parent), found.locations)


def _from_python(file: Path, text: str) -> Located:
    try:
        names = runpy.run_path(str(file), run_name="pipeline_file")
    except SyntaxError as error:
        cause, line, column = f"not Python: {error.msg}", error.lineno or 1, error.offset or 1
        raise PipelineFileError.at(file, cause, "check this line", line, column) from None
    except Exception as error:  # it is the user's own code, and may raise anything
        cause = f"{type(error).__name__}: {error}"
        raise PipelineFileError.at(file, cause, "the file must run by itself", _line_in(file, error)) from error
    pipeline = names.get("pipeline")
    if not isinstance(pipeline, Pipeline):
        cause = "the file has no `pipeline`" if pipeline is None else f"`pipeline` is a {type(pipeline).__name__}"
        raise PipelineFileError.at(file, cause, "end it with `pipeline = Pipeline(name=…, sources=…, sinks=…)`")
    return Located(pipeline, PythonLocations(str(file), text, pipeline))


def _line_in(file: Path, error: Exception) -> int:
    line, trace = 1, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _beside(pipeline: Pipeline, directory: Path) -> Pipeline:
    """Relative paths are meant from the file: a service is started from anywhere."""
    sources = {
        name: replace(
            source, options=_absolute(source.options, directory), decode=_decode_beside(source.decode, directory)
        )
        for name, source in pipeline.sources.items()
    }
    sinks = [
        replace(sink, options=_absolute(sink.options, directory))
        if sink.format in (*FILE_FORMATS, *TABLE_FORMATS)
        else sink
        for sink in pipeline.sinks
    ]
    checkpoint = _absolute({"path": pipeline.checkpoint_directory}, directory)["path"]
    return replace(pipeline, sources=sources, sinks=sinks, checkpoint=checkpoint)


def _decode_beside(decode: Decode | None, directory: Path) -> Decode | None:
    if decode is None or decode.schema_file is None:
        return decode
    return replace(decode, schema_file=str(directory / decode.schema_file))


def _absolute(options: Mapping[str, str], directory: Path) -> dict[str, str]:
    path = options.get("path")
    if path is None or "://" in path or path.startswith("file:"):
        return dict(options)
    return {**options, "path": str(directory / path)}
