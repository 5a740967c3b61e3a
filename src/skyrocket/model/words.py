"""Sentences for people: numbers with their words, and templates that can be said in another language."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import Formatter
from typing import NamedTuple


def counted(count: int, one: str, many: str | None = None) -> str:
    """`1 broker`, `2 brokers`, `1,234 brokers`, `0 brokers`; `many` where it is not `one` with an s."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a sentence was made from: whoever has the template in another language fills in the values there."""

    template: str  # `topic {topic} was deleted`; of a sentence about a number the form for many
    values: "Mapping[str, str | Phrase]"  # as the sentence shows them


class Said(str):
    """A sentence in English that knows its phrase; a text like any other to everybody who does not ask."""

    __slots__ = ("phrase",)

    phrase: Phrase


def phrase_of(text: str) -> Phrase:
    """A text without values is its own template."""
    return text.phrase if isinstance(text, Said) else Phrase(text, {})


def said(template: str, /, **values: object) -> Said:
    """`said("sends wait {waits:.0f} ms", waits=…)`: fields are those of `str.format`; a value may be Said itself."""
    return _made(template, template, values)


def said_of(count: int, one: str, many: str, /, **values: object) -> Said:
    """In the form for one thing or for many: `said_of(3, "{n:,} message waits", "{n:,} messages wait")`."""
    return _made(one if count == 1 else many, many, {"n": count, **values})


def _made(template: str, known_by: str, values: Mapping[str, object]) -> Said:
    made = Said("".join(literal + _shown(values, field) for literal, field in _parts(template)))
    shown = {field.name: _shown(values, field) for _, field in _parts(known_by) if field is not None}
    made.phrase = Phrase(
        "".join(literal + (f"{{{field.name}}}" if field else "") for literal, field in _parts(known_by)),
        {name: value.phrase if isinstance(value, Said) else value for name, value in shown.items()},
    )
    return made


class _Field(NamedTuple):
    """`{ratio:.0%}`; to a translator it is `{ratio}`: values come as they are shown."""

    name: str
    layout: str
    conversion: str | None


def _shown(values: Mapping[str, object], field: _Field | None) -> str:
    if field is None:
        return ""
    value = values[field.name]
    if isinstance(value, Said):
        return value
    return format(repr(value) if field.conversion == "r" else value, field.layout)


@lru_cache(1024)
def _parts(template: str) -> tuple[tuple[str, _Field | None], ...]:
    return tuple(
        (literal, None if name is None else _Field(name, layout or "", conversion))
        for literal, name, layout, conversion in Formatter().parse(template)
    )
