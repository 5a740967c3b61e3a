"""From a YAML file to a `Pipeline`; all mistakes are told together.

The classes of `plan` are the tables: a field is a key, its type says how the key is read, its metadata what it may be.
Only what can be written in more than one way has a function here.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields, replace
from functools import partial
from pathlib import PurePath
from typing import Any, Final, NamedTuple, TypeVar, get_type_hints

import yaml

from skyrocket.pipeline.declared.locations import Locations
from skyrocket.pipeline.declared.plan import (
    DURATION,
    FILE_FORMATS,
    MESSAGE_COLUMNS,
    ROCKETMQ,
    SINK_FORMATS,
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
from skyrocket.pipeline.declared.section import Notes, Section
from skyrocket.pipeline.declared.yaml_text import FileText

T = TypeVar("T")

_SOURCE_EXAMPLE: Final = "source: {format: rocketmq, subscribe: orders}"
_SINK_EXAMPLE: Final = "sink: {format: parquet, path: lake/orders}"
_EXAMPLES: Final[dict[str, str]] = {
    "decode": '{format: json, schema: "id string"}',
    "watermark": "{column: ts, delay: 10 minutes}",
    "dedupe": "{keys: [id], watermark: {column: ts, delay: 1 hour}}",
    "onError": "{malformed: count}",
    "limits": "{maxOffsetsPerTrigger: 200000}",
    "restart": "{attempts: 5, wait: 1 second, longestWait: 1 minute}",
    "conf": "{spark.sql.shuffle.partitions: 4}",
    "options": "{header: true}",
}
_LIMITS: Final = ("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
# Keys of sources and sinks that are never options of their format.
_NOT_OPTIONS: Final = frozenset("format schema columns decode watermark static name from".split())


class Located(NamedTuple):
    """A pipeline, and where its parts stand."""

    pipeline: Pipeline
    locations: Locations


def read_yaml(file: str, text: str, environment: Mapping[str, str]) -> Located:
    """What the file says; raises PipelineFileError. What a Python file could get wrong as well is left to `rules`."""
    notes = Notes(FileText(file, text), environment)
    root = notes.file.root()
    if not isinstance(root, yaml.MappingNode):
        notes.problem(root, "a pipeline file is a mapping of keys", "begin with `name: …`")
        notes.raise_problems()
    assert isinstance(root, yaml.MappingNode)
    pipeline = _read(Section(root, (), notes), Pipeline)
    notes.raise_problems()
    assert pipeline is not None
    return Located(pipeline, notes.locations())


# ── by type ──────────────────────────────────────────────────────────────────────────────────────────────────────────

Reader = Callable[[Section, str], Any]


def _read(section: Section, kind: type[T], **known: Any) -> T | None:
    """A part from its keys and what is known already; None when something that it needs is missing or wrong."""
    readers = _SPECIAL.get(kind, {})
    hints, values, is_complete = get_type_hints(kind), dict(known), True
    # Options are the last: they are what no other field has asked for.
    for each in sorted(fields(kind), key=lambda each: each.name == "options"):  # type: ignore[arg-type]
        if each.name in known:
            continue
        key = each.metadata.get("key", _key_of(each.name))
        value = (readers.get(each.name) or _reader(each, hints[each.name]))(section, key)
        if value is not None:
            values[each.name] = value
        if missing := each.metadata.get("missing"):
            is_complete &= value is not None
            if key not in section:
                section.wrong(None, f"{key} is missing", missing)
    section.finish()
    return kind(**values) if is_complete else None


def _key_of(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def _reader(field: Field[Any], hint: Any) -> Reader:
    choices = field.metadata.get("choices")
    return _READERS[field.metadata.get("kind", hint)] if choices is None else partial(_choice, choices)


def _choice(choices: Sequence[str], section: Section, key: str) -> str | None:
    return section.choice(key, choices)


def _malformed(section: Section, key: str) -> Malformed | None:
    word = section.choice(key, [each.value for each in Malformed])
    return None if word is None else Malformed(word)


def _part(kind: type[T], section: Section, key: str) -> T | None:
    part = section.section(key, f"{key}: {_EXAMPLES[key]}")
    return None if part is None else _read(part, kind)


def _mapping(section: Section, key: str) -> dict[str, str] | None:
    part = section.section(key, f"{key}: {_EXAMPLES[key]}")
    return None if part is None else _options_of(part, part.keys())


def _options_of(section: Section, keys: Iterable[str]) -> dict[str, str]:
    return {key: value for key in keys if (value := section.option(key)) is not None}


_READERS: Final[dict[Any, Reader]] = {
    str: Section.text,
    str | None: Section.text,
    bool: Section.truth,
    int: Section.whole,
    float: Section.seconds,
    DURATION: Section.duration,
    Malformed: _malformed,
    Sequence[str]: Section.texts,
    Mapping[str, str]: _mapping,
    **{each: partial(_part, each) for each in (Watermark, OnError, Restart)},
    **{each | None: partial(_part, each) for each in (Decode, Watermark, Dedupe)},
}


# ── where rows come from ─────────────────────────────────────────────────────────────────────────────────────────────


def _sources(top: Section, key: str) -> dict[str, Source]:
    shared_decode = _part(Decode, top, "decode")
    sections: dict[str, Section | None] = {}
    if "source" in top and key in top:
        top.wrong("source", "source and sources are both given", "keep `sources:` and give each a name")
    if "source" in top:
        top.knows(key)
        sections["source"] = top.section("source", _SOURCE_EXAMPLE, part=(key, "source"))
    elif (table := top.section(key, "sources: {orders: {subscribe: orders}}")) is not None:
        sections = {name: table.section(name, f"{name}: {{subscribe: {name}}}") for name in table.keys()}  # noqa: SIM118
    elif key not in top:
        top.wrong(None, "source is missing", f"as `{_SOURCE_EXAMPLE}`")
    top.knows("source")
    return {name: _source(each, shared_decode) for name, each in sections.items() if each is not None}


def _source(section: Section, shared_decode: Decode | None) -> Source:
    found = _read(section, Source)
    assert found is not None
    if found.decode is None and found.format not in (*FILE_FORMATS, "rate"):
        return replace(found, decode=shared_decode)
    return found


# ── what is done with them ───────────────────────────────────────────────────────────────────────────────────────────


def _steps(top: Section, key: str) -> list[Step]:
    nodes = top.items(key, "steps: [{name: paid, sql: SELECT * FROM input}]")
    return [_step(top, node, number) for number, node in enumerate(nodes, 1)]


def _step(top: Section, node: yaml.MappingNode, number: int) -> Step:
    name = _name_of(node, f"step{number}")
    section = top.named(("steps", name), node)
    section.knows("name")
    if ("sql" in section) == ("dedupe" in section):
        section.wrong(None, f"step {name} needs either sql or dedupe", "as `sql: SELECT … FROM input`")
    return _read(section, Step, name=name) or Step(name)


def _name_of(node: yaml.MappingNode, default: str) -> str:
    """Read ahead: a part is called by its name."""
    for key, value in node.value:
        if key.value == "name" and isinstance(value, yaml.ScalarNode):
            return value.value or default
    return default


# ── where they go ────────────────────────────────────────────────────────────────────────────────────────────────────


def _sinks(top: Section, key: str) -> list[Sink]:
    if "sink" in top and key in top:
        top.wrong("sink", "sink and sinks are both given", "keep `sinks:` as a list")
    top.knows("sink", key)
    nodes = list(top.items("sink" if "sink" in top else key, _SINK_EXAMPLE))
    if not nodes and "sink" not in top and key not in top:
        top.wrong(None, "sink is missing", f"as `{_SINK_EXAMPLE}`")
    return [_sink(top, node) for node in nodes]


def _sink(top: Section, node: yaml.MappingNode) -> Sink:
    name = _name_of(node, _default_sink_name(node))
    section = top.named(("sinks", name), node)
    section.knows("name")
    kind = section.choice("format", SINK_FORMATS) or ROCKETMQ
    message = {key: section.text(key) for key in MESSAGE_COLUMNS} if kind == ROCKETMQ else {}
    given = {key: value for key, value in message.items() if value is not None}
    found = _read(section, Sink, name=name, format=kind, message=given)
    assert found is not None
    return found


def _default_sink_name(node: yaml.MappingNode) -> str:
    values = {key.value: value.value for key, value in node.value if isinstance(value, yaml.ScalarNode)}
    text = values.get("topic") or values.get("table") or PurePath(values.get("path", "")).name or values.get("format")
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", text or "sink").strip("_") or "sink"


# ── how it runs ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _trigger(top: Section, key: str) -> Trigger | None:
    if key in top and isinstance(top.value(key), yaml.ScalarNode):
        return Trigger(None) if top.choice(key, ["availableNow"]) else None
    part = top.section(key, "trigger: {processingTime: 1 second}")
    if part is None:
        return None
    every, once = part.seconds("processingTime"), part.truth("availableNow")
    if "processingTime" in part and once:
        part.wrong("availableNow", "processingTime and availableNow exclude each other", "keep one of them")
    part.finish()
    if once:
        return Trigger(None)
    return None if every is None else Trigger(every)


def _limits(top: Section, key: str) -> dict[str, str] | None:
    part = top.section(key, f"{key}: {_EXAMPLES[key]}")
    if part is None:
        return None
    found = _options_of(part, _LIMITS)
    part.finish()
    return found


def _other_options(section: Section, key: str) -> dict[str, str]:
    """Keys that no field has asked for are options of the format; which of them exist is known to `rules`."""
    options = _options_of(section, [each for each in section.unasked() if each not in _NOT_OPTIONS and each != key])
    return options | (_mapping(section, key) or {})


_SPECIAL: Final[dict[type, dict[str, Reader]]] = {
    Pipeline: {"sources": _sources, "steps": _steps, "sinks": _sinks, "trigger": _trigger, "limits": _limits},
    Source: {"options": _other_options},
    Sink: {"options": _other_options},
}
