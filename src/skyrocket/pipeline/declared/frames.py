"""A declared pipeline as DataFrames: every source and step by its name, and what is written by whom.

Building them is the check: Spark analyses each statement against the real schemas, without a message being read. What
it does not like becomes a problem with the line of its step; all that can be told at once is.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.declared.locations import Locations, Part
from skyrocket.pipeline.declared.plan import FILE_FORMATS, INPUT, ROCKETMQ, Pipeline, Sink, Source, Step
from skyrocket.pipeline.declared.problems import PipelineFileError, Problem
from skyrocket.pipeline.declared.reading import Located
from skyrocket.pipeline.declared.spark_errors import is_about_table, problem_of, without_log
from skyrocket.pipeline.declared.transforms import (
    as_messages,
    deduplicated,
    malformed_messages,
    well_formed,
    with_watermark,
)
from skyrocket.pipeline.jobs.launch import pipeline_session
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.session import register
from skyrocket.pipeline.topic_sink.input_columns import InputError, input_columns
from skyrocket.pipeline.topic_sink.settings import sink_settings
from skyrocket.pipeline.topic_source.cluster import CLUSTER_OPTIONS
from skyrocket.pipeline.topic_source.settings import read_settings
from skyrocket.pipeline.topic_source.stream import needs_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_OPTION: Final = re.compile(r'option "([\w.]+)"')
# Those whose statistics in a Parquet file are exact: by these pyiceberg finds the partition of a file.
_PARTITION_TYPE: Final = re.compile(
    r"(string|(var)?char\b.*|byte|short|integer|long|date|timestamp(_ntz)?|boolean|decimal.*)$"
)
MALFORMED_SINK: Final = "malformed-"
"""Before the source's name: the sink of what could not be decoded."""


@dataclass(frozen=True)
class Output:
    """Rows on their way into one sink: a query, with a checkpoint of its own."""

    sink: Sink
    rows: "DataFrame"


@dataclass
class _Build:
    spark: "SparkSession"
    pipeline: Pipeline
    locations: Locations
    namesrv: str
    group_ending: str
    results: "dict[str, DataFrame]" = field(default_factory=dict)
    raw: "dict[str, DataFrame]" = field(default_factory=dict)  # sources before they were decoded
    failed: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def blame(self, part: Part, cause: str, next_step: str) -> None:
        self.problems.append(Problem(self.locations.of(part), cause, next_step))

    def blame_by_spark(self, part: Part, error: PySparkException, text: str = "") -> None:
        self.problems.append(problem_of(error, part, text, self.locations, [INPUT, *self.results]))

    def blame_by_ours(self, part: Part, error: SkyrocketError) -> None:
        """Our own checks name the option; the next step stands behind a semicolon or a colon."""
        option = _OPTION.search(str(error))
        cause, _, next_step = str(error).rpartition("; " if "; " in str(error) else ": ")
        if not cause:
            cause, next_step = next_step, "see docs/guides/spark-source-and-sink.md"
        self.blame((*part, option[1]) if option else part, cause, next_step)


@contextlib.contextmanager
def prepared(
    located: Located, namesrv: str, master: str, conf: Mapping[str, str], *, shows_phases: bool = False
) -> Iterator[list[Output]]:
    """What is to be written, in a session that may end with the block; raises PipelineFileError."""
    pipeline = located.pipeline
    settings = {**pipeline.conf, **conf}
    told = (PipelineFileError,)
    with pipeline_session(pipeline.name, master, settings, shows_phases=shows_phases, told=told) as spark:
        fresh = register(spark.newSession())  # tables of one pipeline are none of another's
        for name, value in pipeline.conf.items():
            if fresh.conf.isModifiable(name):
                fresh.conf.set(name, value)
        yield outputs(fresh, pipeline, located.locations, namesrv)


def outputs(spark: "SparkSession", pipeline: Pipeline, locations: Locations, namesrv: str) -> list[Output]:
    """What is to be written, by sink; raises PipelineFileError. `spark` gets views: give it a session of its own."""
    followed = any(source.format == ROCKETMQ and source.is_stream for source in pipeline.sources.values())
    if not followed or len(pipeline.sinks) + len(pipeline.malformed_sources()) == 1:
        return _built(spark, pipeline, locations, namesrv, "")
    # Each sink comes forward at its own pace, so each is a consumer group of its own, with its own lag.
    names = [sink.name for sink in pipeline.sinks]
    names += [f"{MALFORMED_SINK}{name}" for name in pipeline.malformed_sources()]
    return [_built(spark, pipeline, locations, namesrv, f"-{name}")[index] for index, name in enumerate(names)]


def _built(
    spark: "SparkSession", pipeline: Pipeline, locations: Locations, namesrv: str, group_ending: str
) -> list[Output]:
    build = _Build(spark, pipeline, locations, namesrv, group_ending)
    with without_log():
        for name, source in pipeline.sources.items():
            _add(build, ("sources", name), name, partial(_read, build, name, source))
        _name_input(build, next(iter(pipeline.sources)) if len(pipeline.sources) == 1 else None)
        for step in pipeline.steps:
            _add(build, ("steps", step.name), step.name, partial(_stepped, build, step))
            _name_input(build, step.name)
        found = [_output(build, sink) for sink in pipeline.sinks]
        found += _malformed_outputs(build)
    if build.problems:
        raise PipelineFileError(build.problems)
    return [output for output in found if output is not None]


def _add(build: _Build, part: Part, name: str, make: "Callable[[], DataFrame]") -> None:
    """One more result under its name; or one more problem."""
    made = _blamed(build, part, name, make)
    if made is not None:
        build.results[name] = made
        made.createOrReplaceTempView(name)


def _blamed(build: _Build, part: Part, name: str, make: "Callable[[], DataFrame]") -> "DataFrame | None":
    sql = next((step.sql for step in build.pipeline.steps if step.name == name and part[0] == "steps"), None)
    try:
        return make()
    except PySparkException as error:
        if not is_about_table(error, build.failed | ({INPUT} if build.failed else set())):
            build.blame_by_spark(part if sql is None else (*part, "sql"), error, sql or "")
    except _NotBuilt:
        pass  # what it reads has its own problem
    except SkyrocketError as error:
        build.blame_by_ours(part, error)
    build.failed.add(name)
    return None


class _NotBuilt(Exception):
    """It reads a result that could not be made."""


def _name_input(build: _Build, name: str | None) -> None:
    if name in build.results:
        build.results[name].createOrReplaceTempView(INPUT)
    else:
        build.spark.catalog.dropTempView(INPUT)


# ── sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read(build: _Build, name: str, source: Source) -> "DataFrame":
    rows = _rows(build, name, source)
    build.raw[name] = rows
    if source.decode is not None and source.decode.format != "binary":
        decode = partial(well_formed, rows, source.decode, name, build.pipeline.on_error.malformed)
        decoded = _blamed(build, ("sources", name, "decode"), name, decode)
        if decoded is None:
            raise _NotBuilt
        rows = decoded
    return with_watermark(rows, source.watermark)


def _rows(build: _Build, name: str, source: Source) -> "DataFrame":
    options = _options(build, name, source)
    if source.format == ROCKETMQ:
        read_settings(options, streaming=source.is_stream)  # raises OptionError: Spark would only when the query runs
    reader = build.spark.readStream if source.is_stream else build.spark.read
    reader = reader.format(source.format).options(**options)
    if source.columns:
        from skyrocket.pipeline.schema import spark_schema

        reader = reader.schema(spark_schema(source.columns))
    if source.format in FILE_FORMATS and source.is_stream:
        # A stream of files does not look into them by itself.
        given = source.schema or build.spark.read.format(source.format).options(**source.options).load().schema
        reader = reader.schema(given)
    elif source.schema is not None:
        reader = reader.schema(source.schema)
    return reader.load()


def _options(build: _Build, name: str, source: Source) -> dict[str, str]:
    if source.format != ROCKETMQ:
        return dict(source.options)
    pipeline = build.pipeline
    usual = {"namesrvAddr": build.namesrv}
    if not source.is_stream:
        return usual | dict(source.options)
    given = usual | dict(pipeline.limits) | dict(source.options)
    given["consumerGroup"] = source.options.get("consumerGroup", pipeline.name) + build.group_ending
    if needs_file(pipeline.checkpoint_directory, read_settings(given, streaming=True)):
        # One start for all sinks, kept before the first batch: each of them sees the same messages.
        given["initialOffsetsLocation"] = f"{pipeline.checkpoint_directory}/rocketmq-source/{name}.json"
    return given


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _stepped(build: _Build, step: Step) -> "DataFrame":
    if step.sql is not None:
        return with_watermark(build.spark.sql(step.sql), step.watermark)
    assert step.dedupe is not None
    return with_watermark(deduplicated(_before(build, step), step.dedupe), step.watermark)


def _before(build: _Build, step: Step) -> "DataFrame":
    names = build.pipeline.results()
    name = step.source or names[names.index(step.name) - 1]
    if name not in build.results:
        raise _NotBuilt
    return build.results[name]


# ── sinks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _output(build: _Build, sink: Sink) -> Output | None:
    name = build.pipeline.written_by(sink)
    if name not in build.results:
        return None
    rows = build.results[name]
    part = ("sinks", sink.name)
    if build.pipeline.is_stream and not rows.isStreaming:
        cause = f"{name} is read once, not followed, so it cannot be written by a stream"
        build.blame(part, cause, "join it with a stream, or make a pipeline of its own")
        return None
    if sink.format == ROCKETMQ:
        before = len(build.problems)
        _check_expressions(build, sink, rows)
        if len(build.problems) > before:
            return None
        rows = as_messages(rows, sink.message)
        _check_columns(build, sink, rows)
    _check_partitions(build, sink, name, rows)
    _check_output_mode(build, sink, rows)
    return Output(sink, rows)


def _check_partitions(build: _Build, sink: Sink, name: str, rows: "DataFrame") -> None:
    part = ("sinks", sink.name, "partitionBy")
    for column in sink.partition_by:
        if column not in rows.columns:
            build.blame(part, f"{name} has no column {column}", f"it has {', '.join(rows.columns)}")
        elif sink.format == "iceberg" and not _PARTITION_TYPE.match(kind := rows.schema[column].dataType.typeName()):
            build.blame(part, f"{column} is a {kind}, which parts no Iceberg table", f"add a column made of {column}")


def _check_expressions(build: _Build, sink: Sink, rows: "DataFrame") -> None:
    for column, expression in sink.message.items():
        try:
            rows.selectExpr(expression)
        except PySparkException as error:
            build.blame_by_spark(("sinks", sink.name, column), error, expression)


def _check_columns(build: _Build, sink: Sink, rows: "DataFrame") -> None:
    is_stream = build.pipeline.is_stream
    checkpoint = {"checkpointLocation": "…"} if is_stream else {}
    try:
        sink_settings({"namesrvAddr": build.namesrv, **sink.options, **checkpoint}, is_stream=is_stream)
        input_columns(rows.schema, sink.options["topic"])
    except (InputError, OptionError) as error:
        build.blame_by_ours(("sinks", sink.name), error)


def _check_output_mode(build: _Build, sink: Sink, rows: "DataFrame") -> None:
    """Spark finds out only when the query starts whether a stream can be written in this way: ask it now."""
    if not rows.isStreaming:
        return
    try:
        check_streaming(rows, sink.output_mode)
    except PySparkException as error:
        build.blame_by_spark(("sinks", sink.name), error)


def check_streaming(rows: "DataFrame", output_mode: str) -> None:
    """Raises AnalysisException when a stream cannot be written in that mode."""
    java: Any = rows.sparkSession._jvm
    modes = java.org.apache.spark.sql.streaming.OutputMode
    mode = {"append": modes.Append, "update": modes.Update, "complete": modes.Complete}[output_mode]()
    checker = java.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), mode)


def _malformed_outputs(build: _Build) -> list[Output]:
    found = []
    for name in build.pipeline.malformed_sources():
        source, topic = build.pipeline.sources[name], build.pipeline.on_error.topic
        decode = source.decode
        assert decode is not None
        assert topic is not None
        if name in build.raw:
            # They go back to where they came from: its namespace, as its account, encrypted as it is.
            cluster = {key: value for key, value in source.options.items() if key in CLUSTER_OPTIONS}
            sink = Sink(f"{MALFORMED_SINK}{name}", options={**cluster, "topic": topic})
            found.append(Output(sink, malformed_messages(build.raw[name], decode)))
    return found
