"""What a command will change, shown before it does.

topic Orders at broker-a (127.0.0.1:10911)
  permission    6 → 4
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Final

from skyrocket.cli.output.rows import Column, Output, Row, cell, rendered
from skyrocket.cli.output.text import visible

COLUMNS: Final = (Column("what"), Column("where"), Column("field"), Column("before"), Column("after"), Column("done"))


@dataclass(frozen=True, slots=True)
class Change:
    """One field of one object; an object that is created or deleted has `before` or `after` None in every field."""

    what: str  # as `topic Orders`
    where: str  # a broker
    field: str
    before: Any
    after: Any

    def row(self, *, done: bool) -> Row:
        return {
            "what": self.what,
            "where": self.where,
            "field": self.field,
            "before": self.before,
            "after": self.after,
            "done": done,
        }


def differences(what: str, where: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """The fields of two versions that differ."""
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Change(what, where, name, before.get(name), after.get(name))


def fields_of(value: Any) -> dict[str, Any]:
    """A dataclass by its fields, without what is not known of it; attributes are fields of their own."""
    found = {each.name: _plain(getattr(value, each.name)) for each in fields(value) if each.name != "unknown"}
    attributes = found.pop("attributes", {})
    return found | {f"attributes.{name}": text for name, text in attributes.items()}


def shown_fields(value: Any) -> dict[str, Any]:
    """The same with keys as all JSON of the commands has them: readQueues."""
    return {camel_case(name): _shown(each) for name, each in fields_of(value).items()}


def _shown(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {camel_case(name): _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def camel_case(name: str) -> str:
    """Of a field of Python: read_queues → readQueues; names of attributes are RocketMQ's and stay."""
    if name.startswith("attributes."):
        return name
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


def _plain(value: Any) -> Any:
    """Dataclasses inside become mappings of what they say."""
    if is_dataclass(value):
        return {name: each for name, each in fields_of(value).items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def changes_text(changes: Sequence[Change], output: Output, *, done: bool, failed: Collection[str] = ()) -> str:
    """For people a paragraph per object, else a row per field; nothing is done at brokers that failed."""
    if not output.is_for_people:
        return rendered(COLUMNS, [change.row(done=done and change.where not in failed) for change in changes], output)
    return "".join(_paragraphs(changes))


def _paragraphs(changes: Sequence[Change]) -> Iterator[str]:
    objects: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        objects.setdefault((change.what, change.where), []).append(change)
    for (what, where), all_of in objects.items():
        yield cell(f"{what} at {where}" if where else what) + "\n"
        yield from _lines(all_of)


def _lines(changes: Iterable[Change]) -> Iterator[str]:
    changes = list(changes)
    width = max(len(visible(change.field)) for change in changes)
    for change in changes:
        yield f"  {visible(change.field):{width}}  {cell(change.before)} → {cell(change.after)}\n"
