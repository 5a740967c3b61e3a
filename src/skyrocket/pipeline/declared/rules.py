"""What every pipeline must keep, from whatever file it comes; no Spark and no broker is asked."""

import importlib.util
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from skyrocket.pipeline.commit_log.settings import OPTIONS as LOG_OPTIONS
from skyrocket.pipeline.declared.locations import KEY, Locations, Part
from skyrocket.pipeline.declared.plan import (
    COMMIT_LOG,
    DECODINGS,
    FILE_FORMATS,
    INPUT,
    MESSAGE_COLUMNS,
    OUTPUT_MODES,
    ROCKETMQ,
    SINK_FORMATS,
    SOURCE_FORMATS,
    TABLE_FORMATS,
    Decode,
    Malformed,
    Pipeline,
    Sink,
    Source,
    Step,
)
from skyrocket.pipeline.declared.problems import PipelineFileError, Problem, suggestion
from skyrocket.pipeline.topic_sink.settings import OPTION_NAMES as SINK_OPTIONS
from skyrocket.pipeline.topic_source.settings import OPTIONS as SOURCE_OPTIONS

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PATH_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_SUBSCRIPTIONS: Final = ("subscribe", "subscribePattern", "assign")

Fault = tuple[Part, str, str]

_JDBC: Final = ("url", "table", "driver", "user", "password", "batchsize", "truncate", "isolationLevel")
_TABLES: Final = {"delta": ("path",), "iceberg": ("path", "table", "uri", "catalog")}
_PACKAGES: Final = {"delta": "deltalake", "iceberg": "pyiceberg"}
_CONSOLE: Final = ("numRows", "truncate")
# The runner's own business; who gives them here would have two pipelines share one progress.
_OURS: Final = ("initialOffsetsLocation", "checkpointLocation")


def check_rules(pipeline: Pipeline, locations: Locations) -> None:
    """Raises PipelineFileError with all that is wrong."""
    problems = [Problem(locations.of(part), cause, step) for part, cause, step in _faults(pipeline)]
    if problems:
        raise PipelineFileError(problems)


def _faults(pipeline: Pipeline) -> Iterator[Fault]:
    if not _PATH_NAME.fullmatch(pipeline.name):
        yield (
            ("name",),
            f"{pipeline.name!r} cannot be a pipeline's name",
            "use letters, digits, dot, dash and underscore",
        )
    yield from _name_faults(pipeline)
    for name, source in pipeline.sources.items():
        yield from _source_faults(("sources", name), name, source)
    for index, step in enumerate(pipeline.steps):
        yield from _step_faults(step, [*pipeline.sources, *(former.name for former in pipeline.steps[:index])], index)
    for sink in pipeline.sinks:
        yield from _sink_faults(sink, pipeline)
    yield from _error_faults(pipeline)


def _name_faults(pipeline: Pipeline) -> Iterator[Fault]:
    if not pipeline.sources:
        yield (), "there is no source", "add one under `source:`"
    if not pipeline.sinks:
        yield (), "there is no sink", "add one under `sink:`"
    for name in pipeline.results():
        if not _NAME.fullmatch(name) or name.lower() == INPUT:
            kind = "sources" if name in pipeline.sources else "steps"
            why = "is what stands before a step" if name.lower() == INPUT else "cannot be a table's name"
            yield (kind, name), f"{name!r} {why}", "use letters, digits and underscore"
    for name in _repeated(result.lower() for result in pipeline.results()):
        yield ("steps", name), f"{name} is the name of two results", "names of sources and steps must differ"
    for name in _repeated(sink.name for sink in pipeline.sinks):
        yield (
            ("sinks", name),
            f"{name} is the name of two sinks",
            "give one of them a `name:`: checkpoints are kept by it",
        )


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _source_faults(part: Part, name: str, source: Source) -> Iterator[Fault]:
    yield from _choice_faults((*part, "format"), source.format, SOURCE_FORMATS, f"source {name}")
    if source.format == ROCKETMQ:
        given = [option for option in _SUBSCRIPTIONS if option in source.options]
        if len(given) != 1:
            yield part, f"source {name} needs exactly one of {', '.join(_SUBSCRIPTIONS)}", "as `subscribe: orders`"
    elif source.format != "rate" and not {"path", "paths"} & source.options.keys():
        yield (
            part,
            f"source {name} needs a path",
            f"as `path: {'store' if source.format not in FILE_FORMATS else 'lake'}`",
        )
    yield from _option_faults(part, source.options, source_options(source.format), source.format)
    yield from _decode_faults((*part, "decode"), name, source.decode)
    if source.schema is not None and source.format not in FILE_FORMATS:
        yield (
            (*part, "schema"),
            f"schema is for files, not for {source.format}",
            "of messages say `columns:` or `decode:`",
        )
    if source.columns and source.format not in (ROCKETMQ, COMMIT_LOG):
        yield (*part, "columns"), "columns is for messages", "choose columns of files in a step's SQL"
    if source.columns and source.decode is not None and "body" not in source.columns:
        yield (*part, "columns"), "body is not among the columns, but is to be decoded", "add body"


def _decode_faults(part: Part, name: str, decode: Decode | None) -> Iterator[Fault]:
    if decode is None:
        return
    yield from _choice_faults((*part, "format"), decode.format, DECODINGS, f"decode of {name}")
    if decode.format == "json" and not (decode.schema or decode.schema_file or decode.registry):
        yield part, f"decode of {name} has no schema", 'name the fields, as `schema: "id string, amount double"`'
    if decode.format not in ("json", "avro") and decode.schema:
        yield (*part, "schema"), f"a {decode.format} body has no schema", "take it away, or decode as json"
    given = {"schemaFile": decode.schema_file, "registry": decode.registry, "subject": decode.subject}
    given["message"] = decode.message
    of_all = {"schemaFile", "registry", "subject"}
    taken = {"json": of_all, "avro": of_all, "protobuf": {*of_all, "message"}}
    for key, value in given.items():
        if value and key not in taken.get(decode.format, ()):
            yield (*part, key), f"{key} does not go with {decode.format} bodies", "take it away, or check the format"
    if decode.format == "avro":
        yield from _avro_faults(part, name, decode)
    if decode.format in ("json", "protobuf"):
        yield from _registry_faults(part, name, decode)


def _avro_faults(part: Part, name: str, decode: Decode) -> Iterator[Fault]:
    if sum(map(bool, (decode.schema, decode.schema_file, decode.registry))) != 1:
        step = "as `schemaFile: order.avsc`, or `registry: http://host:8081` with `subject: orders-value`"
        yield part, f"decode of {name} needs one of schema, schemaFile and registry", step
    if bool(decode.registry) != bool(decode.subject):
        yield part, "registry and subject belong together", "as `registry: http://host:8081`, `subject: orders-value`"


def _registry_faults(part: Part, name: str, decode: Decode) -> Iterator[Fault]:
    """A file beside a registry says what the columns are; the registry then only that bodies have numbers."""
    has_file = bool(decode.schema_file or (decode.format == "json" and decode.schema))
    if decode.subject and not decode.registry:
        yield (*part, "subject"), "a subject is one of a registry", "add `registry: http://host:8081`"
    if decode.registry and not decode.subject and not has_file:
        yield (*part, "registry"), "a registry needs a subject", "as `subject: orders-value`"
    if decode.format == "json" and decode.schema and decode.schema_file:
        yield (*part, "schema"), "schema and schemaFile say the same", "take one away"
    is_named = decode.message or not decode.schema_file
    if decode.format == "protobuf" and not ((has_file or decode.registry) and is_named):
        step = "as `{format: protobuf, schemaFile: order.desc, message: shop.Order}`"
        yield part, f"decode of {name} needs schemaFile and message, or registry and subject", step


def _step_faults(step: Step, former: Sequence[str], index: int) -> Iterator[Fault]:
    part = ("steps", step.name)
    if (step.sql is None) == (step.dedupe is None):
        yield part, f"step {step.name} needs either sql or dedupe", "as `sql: SELECT … FROM input`"
    if step.source is not None and step.sql is not None:
        yield (*part, "from"), "from is for dedupe", "name the tables in the SQL itself"
    if step.source is not None and step.source not in former:
        yield (*part, "from"), f"{step.source} does not stand before step {step.name}", suggestion(step.source, former)
    if step.dedupe is not None and step.source is None and index == 0 and len(former) > 1:
        yield part, f"step {step.name} could read any of {', '.join(former)}", "say which with `from:`"


def _sink_faults(sink: Sink, pipeline: Pipeline) -> Iterator[Fault]:
    part = ("sinks", sink.name)
    results = pipeline.results()
    if not _PATH_NAME.fullmatch(sink.name):
        yield (*part, "name"), f"{sink.name!r} cannot be a sink's name", "use letters, digits, dot, dash and underscore"
    if sink.source is not None and sink.source not in results:
        yield (*part, "from"), f"nothing is called {sink.source}", suggestion(sink.source, results)
    yield from _choice_faults((*part, "format"), sink.format, SINK_FORMATS, f"sink {sink.name}")
    yield from _choice_faults((*part, "outputMode"), sink.output_mode, OUTPUT_MODES, f"sink {sink.name}")
    for needed in _needed(sink):
        if needed not in sink.options:
            yield part, f"sink {sink.name} needs {needed}", f"as `{needed}: {_NEEDED_EXAMPLES[needed]}`"
    kind = "files" if sink.format in FILE_FORMATS else "tables" if sink.format in TABLE_FORMATS else None
    if kind is not None and sink.output_mode != "append":
        yield (*part, "outputMode"), f"{kind} are only appended to, never in mode {sink.output_mode}", "write `append`"
    if sink.partition_by and sink.format not in (*FILE_FORMATS, *TABLE_FORMATS):
        yield (*part, "partitionBy"), "partitionBy is for files and tables", "take it away"
    if sink.format in TABLE_FORMATS:
        yield from _table_faults(part, sink)
    for column in sink.message.keys() - set(MESSAGE_COLUMNS):
        yield part, f"a message has no {column}", suggestion(column, MESSAGE_COLUMNS)
    yield from _option_faults(part, sink.options, sink_options(sink.format), sink.format)


def _table_faults(part: Part, sink: Sink) -> Iterator[Fault]:
    if importlib.util.find_spec(_PACKAGES[sink.format]) is None:
        step = f"pip install 'skyrocket[{sink.format}]'"
        yield (*part, "format"), f"format {sink.format} needs one more package", step
    path, table = sink.options.get("path", ""), sink.options.get("table", "")
    if "://" in path and not path.startswith("file://"):
        yield (*part, "path"), f"{sink.format} tables are written to directories", "name one that all tasks see"
    if sink.format == "iceberg" and table and not all(table.partition(".")):
        yield (*part, "table"), f"{table} is no name of an Iceberg table", "put a namespace before it, as `shop.orders`"


_NEEDED_EXAMPLES: Final = {"topic": "orders_paid", "path": "lake/orders", "url": "jdbc:…", "table": "shop.orders"}


def _needed(sink: Sink) -> tuple[str, ...]:
    if sink.format == ROCKETMQ:
        return ("topic",)
    if sink.format == "jdbc":
        return ("url", "table")
    if sink.format == "iceberg":
        return ("path", "table")
    return ("path",) if sink.format in (*FILE_FORMATS, *TABLE_FORMATS) else ()


def _error_faults(pipeline: Pipeline) -> Iterator[Fault]:
    if pipeline.on_error.malformed is Malformed.DLQ and not pipeline.on_error.topic:
        yield ("onError",), "malformed: dlq needs a topic", "as `topic: orders_malformed`"
    if pipeline.on_error.topic and pipeline.on_error.malformed is not Malformed.DLQ:
        yield (
            ("onError", "topic"),
            "a topic for malformed bodies is given, but they do not go there",
            "add `malformed: dlq`",
        )
    decoded = any(source.decode for source in pipeline.sources.values())
    if pipeline.on_error.malformed is Malformed.DLQ and not decoded:
        yield ("onError",), "no source is decoded, so nothing can be malformed", "add `decode:` or take onError away"
    unreachable = [sink for sink in pipeline.sinks if sink.name.startswith("malformed-")]
    for sink in unreachable:
        yield ("sinks", sink.name), "names with malformed- are kept for dead letters", "choose another name"


def _choice_faults(part: Part, value: str, choices: Sequence[str], whose: str) -> Iterator[Fault]:
    if value not in choices:
        yield part, f"{part[-1]} of {whose} cannot be {value}", suggestion(value, choices)


def _option_faults(part: Part, options: Iterable[str], known: Sequence[str] | None, kind: str) -> Iterator[Fault]:
    """None: the options of that format are Spark's, and it reads what it knows."""
    if known is None:
        return
    by_case = {name.lower() for name in known}
    for option in options:
        if option.lower() not in by_case:
            yield (*part, option, KEY), f"{option} is not known in format {kind}", suggestion(option, known)


def source_options(kind: str) -> Sequence[str] | None:
    """Which options the format has; None where Spark alone knows them all."""
    if kind == ROCKETMQ:
        return [name for name in SOURCE_OPTIONS if name not in _OURS]
    return LOG_OPTIONS if kind == COMMIT_LOG else None


def sink_options(kind: str) -> Sequence[str] | None:
    """Which options the format has; None where Spark alone knows them all."""
    if kind == ROCKETMQ:
        return [*(name for name in SINK_OPTIONS if name not in _OURS), *MESSAGE_COLUMNS]
    return {"jdbc": _JDBC, "console": _CONSOLE, **_TABLES}.get(kind)
