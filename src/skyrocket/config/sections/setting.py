"""One setting: its Python name, RocketMQ's key, type, default, bounds and help, declared once.

A section is a frozen dataclass whose fields are made by `setting(...)`; `section_from` fills one from the
text pairs of a RocketMQ `.conf` file, the environment or the command line.
"""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeVar, get_type_hints

from skyrocket.errors import ConfigError

Section = TypeVar("Section")


def setting(
    default: Any,
    *,
    key: str,
    help: str,  # noqa: A002  the natural word here
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    ours: bool = False,
    secret: bool = False,
) -> Any:
    """Declare a field of a section; `ours` are keys that RocketMQ does not have, a `secret` is shown to nobody."""
    metadata = {"key": key, "help": help, "min": min, "max": max, "ours": ours, "secret": secret}
    return dataclasses.field(default=default, metadata=metadata, repr=not secret)


def check_bounds(section: object) -> None:
    """Raise ConfigError for the first field outside its bounds; a section calls this after it was built."""
    for field in dataclasses.fields(section):  # type: ignore[arg-type]
        value = getattr(section, field.name)
        low, high = field.metadata.get("min"), field.metadata.get("max")
        if low is not None and value < low:
            raise ConfigError(f"{field.metadata['key']}={value} is below the smallest allowed value {low}")
        if high is not None and value > high:
            raise ConfigError(f"{field.metadata['key']}={value} is above the largest allowed value {high}")


def section_from(section: type[Section], pairs: Mapping[str, str], *, allow_unknown: bool = False) -> Section:
    """Build a section from RocketMQ keys and text values; an unknown key is named with its nearest neighbour."""
    hints = get_type_hints(section)
    fields = {field.metadata["key"]: field for field in dataclasses.fields(section)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for key, text in pairs.items():
        field = fields.get(key)
        if field is None:
            if allow_unknown:
                continue
            raise ConfigError(f"unknown setting {key!r}{nearest(key, fields)}")
        values[field.name] = parse_value(key, text, hints[field.name])
    return section(**values)


def parse_value(key: str, text: str, kind: Any) -> Any:
    """Turn the text of a setting into its type, or say what was expected."""
    text = text.strip()
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return kind(text.upper())
        return kind(text)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{key}={text!r} is not {_expected(kind)}") from error


def _expected(kind: Any) -> str:
    if kind is bool:
        return "true or false"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "one of " + ", ".join(str(member.value) for member in kind)
    return {int: "a whole number", float: "a number"}.get(kind, f"a {kind.__name__}")


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown key: what it may have been meant for."""
    match = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else ""
