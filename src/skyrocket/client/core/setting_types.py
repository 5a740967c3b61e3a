"""Values of settings are what their fields say: text for a number would fail much later, far from its cause."""

import dataclasses
import types
from enum import Enum
from typing import Any, Final, get_args

from skyrocket.client.core.errors import WrongUse

_WORDS: Final[dict[type, tuple[tuple[type, ...], str]]] = {
    bool: ((bool,), "True or False"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number (seconds, for a time)"),
    str: ((str,), "a text"),
}


def check_types(settings: Any) -> None:
    """Raises WrongUse for the first field whose value is of another kind; kinds that are not plain are passed over."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        kinds = get_args(field.type) if isinstance(field.type, types.UnionType) else (field.type,)
        wanted = [_expected(kind) for kind in kinds if kind is not types.NoneType]
        if any(each is None for each in wanted) or (value is None and types.NoneType in kinds):
            continue
        if not any(each is not None and _fits(value, each[0]) for each in wanted):
            words = " or ".join(each[1] for each in wanted if each is not None)
            raise WrongUse(f"{field.name}={value!r} is of the wrong kind: give {words}")


def _expected(kind: Any) -> tuple[tuple[type, ...], str] | None:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return (kind,), " or ".join(f"{kind.__name__}.{member.name}" for member in kind)
    return _WORDS.get(kind)


def _fits(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
