"""From a YAML file to a `Pipeline`: a function per part of the file; all mistakes are told together."""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import NamedTuple

import yaml

from skyrocket.pipeline.declared.places import Places
from skyrocket.pipeline.declared.plan import (
    DECODINGS,
    FILE_FORMATS,
    MESSAGE_COLUMNS,
    OUTPUT_MODES,
    ROCKETMQ,
    SINK_FORMATS,
    SOURCE_FORMATS,
    Decode,
    Dedupe,
    Malformed,
    OnError,
    Pipeline,
    Restart,
    Sink,
    Source,
    Step,
    Trigger,
    Watermark,
)
from skyrocket.pipeline.declared.section import Notes, Section, duration_seconds
from skyrocket.pipeline.declared.yaml_text import FileText

_SOURCE_EXAMPLE = "source: {format: rocketmq, subscribe: orders}"
_SINK_EXAMPLE = "sink: {format: parquet, path: lake/orders}"
_LIMITS = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")


class Located(NamedTuple):
    """A pipeline, and where its parts stand."""

    pipeline: Pipeline
    places: Places


def read_yaml(file: str, text: str, environment: Mapping[str, str]) -> Located:
    """What the file says; raises PipelineFileError. What a Python file could get wrong as well is left to `rules`."""
    notes = Notes(FileText(file, text), environment)
    root = notes.file.root()
    if not isinstance(root, yaml.MappingNode):
        notes.problem(root, "a pipeline file is a mapping of keys", "begin with `name: …`")
        notes.raise_problems()
    assert isinstance(root, yaml.MappingNode)
    pipeline = _pipeline(Section(root, (), notes))
    notes.raise_problems()
    return Located(pipeline, notes.places())


def _pipeline(top: Section) -> Pipeline:
    name = top.text("name", required="add `name: …`: checkpoints and the consumer group are called by it")
    found = Pipeline(
        name=name or "?",
        sources=_sources(top),
        steps=_steps(top),
        sinks=_sinks(top),
        on_error=_on_error(top),
        trigger=_trigger(top),
        limits=_limits(top),
        restart=_restart(top),
        namesrv=top.text("namesrvAddr"),
        checkpoint=top.text("checkpoint"),
        create_topics=top.truth("createTopics") or False,
        conf=_conf(top),
    )
    top.finish()
    return found


# ── where rows come from ─────────────────────────────────────────────────────────────────────────────────────────────


def _sources(top: Section) -> dict[str, Source]:
    shared_decode = _decode(top)
    if "source" in top and "sources" in top:
        top.wrong("source", "source and sources are both given", "keep `sources:` and give each a name")
    if "source" in top:
        top.knows("sources")
        section = top.section("source", _SOURCE_EXAMPLE, part=("sources", "source"))
        return {} if section is None else {"source": _source(section, shared_decode)}
    top.knows("source")
    table = top.section("sources", "sources: {orders: {subscribe: orders}}")
    if table is None:
        if "sources" not in top:
            top.wrong(None, "source is missing", f"as `{_SOURCE_EXAMPLE}`")
        return {}
    sections = {name: table.section(name, f"{name}: {{subscribe: {name}}}") for name in table.keys()}  # noqa: SIM118
    return {name: _source(section, shared_decode) for name, section in sections.items() if section is not None}


def _source(section: Section, shared_decode: Decode | None) -> Source:
    kind = section.choice("format", SOURCE_FORMATS) or ROCKETMQ
    found = Source(
        format=kind,
        schema=section.text("schema"),
        columns=section.texts("columns"),
        decode=_decode(section) or (shared_decode if kind not in (*FILE_FORMATS, "rate") else None),
        watermark=_watermark(section),
        static=section.truth("static") or False,
        options=_options(section),
    )
    section.finish()
    return found


def _decode(section: Section) -> Decode | None:
    part = section.section("decode", 'decode: {format: json, schema: "id string"}')
    if part is None:
        return None
    found = Decode(part.choice("format", DECODINGS) or "json", part.text("schema"))
    part.finish()
    return found


def _watermark(section: Section) -> Watermark | None:
    part = section.section("watermark", "watermark: {column: ts, delay: 10 minutes}")
    if part is None:
        return None
    column = part.text("column", required="name the column with the time of the event")
    delay = part.duration("delay")
    if "delay" not in part:
        part.wrong(None, "delay is missing", "say how late an event may come, as `delay: 10 minutes`")
    part.finish()
    return Watermark(column or "?", delay or "0 seconds")


def _options(section: Section, *asked: str) -> dict[str, str]:
    """All other keys are options of the format; which of them exist is known to `rules`."""
    known = {"format", "schema", "columns", "decode", "watermark", "static", "name", "from", *asked}
    options = {key: section.option(key) for key in section.keys() if key not in known and key != "options"}  # noqa: SIM118
    more = section.section("options", "options: {header: true}")
    if more is not None:
        options |= {key: more.option(key) for key in more.keys()}  # noqa: SIM118
    return {key: value for key, value in options.items() if value is not None}


# ── what is done with them ───────────────────────────────────────────────────────────────────────────────────────────


def _steps(top: Section) -> list[Step]:
    nodes = top.items("steps", "steps: [{name: paid, sql: SELECT * FROM input}]")
    return [_step(top, node, number) for number, node in enumerate(nodes, 1)]


def _step(top: Section, node: yaml.MappingNode, number: int) -> Step:
    name = _name_of(node, f"step{number}")
    section = top.named(("steps", name), node)
    section.knows("name")
    sql, dedupe = section.text("sql"), _dedupe(section)
    if ("sql" in section) == ("dedupe" in section):
        section.wrong(None, f"step {name} needs either sql or dedupe", "as `sql: SELECT … FROM input`")
    found = Step(name, sql, dedupe, section.text("from"), _watermark(section))
    section.finish()
    return found


def _dedupe(section: Section) -> Dedupe | None:
    part = section.section("dedupe", "dedupe: {keys: [id], watermark: {column: ts, delay: 1 hour}}")
    if part is None:
        return None
    keys, watermark = part.texts("keys"), _watermark(part)
    if not keys and "keys" not in part:
        part.wrong(None, "keys is missing", "name the columns that are the same in a repetition")
    if watermark is None and "watermark" not in part:
        part.wrong(None, "watermark is missing", "without it all keys are remembered for ever; add `watermark: …`")
    part.finish()
    return Dedupe(keys, watermark or Watermark("?", "0 seconds"))


def _name_of(node: yaml.MappingNode, default: str) -> str:
    """Read ahead: a part is called by its name."""
    for key, value in node.value:
        if key.value == "name" and isinstance(value, yaml.ScalarNode):
            return value.value or default
    return default


# ── where they go ────────────────────────────────────────────────────────────────────────────────────────────────────


def _sinks(top: Section) -> list[Sink]:
    if "sink" in top and "sinks" in top:
        top.wrong("sink", "sink and sinks are both given", "keep `sinks:` as a list")
    key = "sink" if "sink" in top else "sinks"
    top.knows("sink", "sinks")
    nodes = list(top.items(key, _SINK_EXAMPLE))
    if not nodes and key not in top:
        top.wrong(None, "sink is missing", f"as `{_SINK_EXAMPLE}`")
    return [_sink(top, node) for node in nodes]


def _sink(top: Section, node: yaml.MappingNode) -> Sink:
    name = _name_of(node, _default_sink_name(node))
    section = top.named(("sinks", name), node)
    section.knows("name", "topic", "path")
    kind = section.choice("format", SINK_FORMATS) or ROCKETMQ
    message = {key: section.text(key) for key in MESSAGE_COLUMNS} if kind == ROCKETMQ else {}
    found = Sink(
        name,
        kind,
        section.text("from"),
        _options(section, "partitionBy", "outputMode", *message),
        {key: value for key, value in message.items() if value is not None},
        section.texts("partitionBy"),
        section.choice("outputMode", OUTPUT_MODES) or "append",
    )
    section.finish()
    return found


def _default_sink_name(node: yaml.MappingNode) -> str:
    values = {key.value: value.value for key, value in node.value if isinstance(value, yaml.ScalarNode)}
    text = values.get("topic") or values.get("table") or PurePath(values.get("path", "")).name or values.get("format")
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text or "sink").strip("_") or "sink"


# ── how it runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _on_error(top: Section) -> OnError:
    part = top.section("onError", "onError: {malformed: count}")
    if part is None:
        return OnError()
    what = part.choice("malformed", [each.value for each in Malformed])
    found = OnError(Malformed(what or "count"), part.text("topic"))
    part.finish()
    return found


def _trigger(top: Section) -> Trigger:
    if "trigger" in top and isinstance(top.value("trigger"), yaml.ScalarNode):
        word = top.choice("trigger", ["availableNow"])
        return Trigger(None) if word else Trigger()
    part = top.section("trigger", "trigger: {processingTime: 1 second}")
    if part is None:
        return Trigger()
    every, once = part.duration("processingTime"), part.truth("availableNow")
    if "processingTime" in part and once:
        part.wrong("availableNow", "processingTime and availableNow exclude each other", "keep one of them")
    part.finish()
    if once:
        return Trigger(None)
    return Trigger() if every is None else Trigger(duration_seconds(every))


def _limits(top: Section) -> dict[str, str]:
    part = top.section("limits", "limits: {maxOffsetsPerTrigger: 200000}")
    if part is None:
        return {}
    found = {key: part.option(key) for key in _LIMITS}
    part.finish()
    return {key: value for key, value in found.items() if value is not None}


def _restart(top: Section) -> Restart:
    part = top.section("restart", "restart: {attempts: 5, wait: 1 second, longestWait: 1 minute}")
    if part is None:
        return Restart()
    usual = Restart()
    attempts, first, longest = part.whole("attempts", least=0), part.duration("wait"), part.duration("longestWait")
    part.finish()
    return Restart(
        usual.attempts if attempts is None else attempts,
        usual.first_seconds if first is None else duration_seconds(first) or 0.0,
        usual.longest_seconds if longest is None else duration_seconds(longest) or 0.0,
    )


def _conf(top: Section) -> dict[str, str]:
    part = top.section("conf", "conf: {spark.sql.shuffle.partitions: 4}")
    if part is None:
        return {}
    return {key: value for key in part.keys() if (value := part.option(key)) is not None}  # noqa: SIM118
