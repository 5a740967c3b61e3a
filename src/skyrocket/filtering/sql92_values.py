"""How SQL92 filters compare: RocketMQ's rules, which are Java's types and a few surprises.

Values: None (absent, unknown), str, bool, Int32, int (64 bits), float. A string that meets another type is converted to
that type; one that cannot be makes the whole expression fail, and the message does not match.
"""

import re
from typing import Final, TypeAlias


class Int32(int):
    """A whole number that fits Java's int; others are longs."""

    __slots__ = ()


Value: TypeAlias = str | bool | int | float | None


class EvaluationError(ValueError):
    """A value that cannot be compared; no match."""


_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_BLANKS: Final = "".join(map(chr, range(33)))  # what Java's trim takes away; Python's strip knows few of them
_JAVA_DOUBLE: Final = re.compile(
    r"[\x00-\x20]*[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)[\x00-\x20]*"
)


def whole(text: str, bits: int) -> int:
    """Integer.valueOf and Long.valueOf."""
    if (
        _WHOLE.fullmatch(text) is None
        or len(text) > 40
        or not -(1 << bits - 1) <= (number := int(text)) < 1 << bits - 1
    ):
        raise EvaluationError(f"{text!r} is not a whole number of {bits} bits")
    return number


def decimal(text: str) -> float:
    """Double.valueOf; hexadecimal forms are not known here."""
    if _JAVA_DOUBLE.fullmatch(text) is None:
        raise EvaluationError(f"{text!r} is not a number")
    text = text.strip(_BLANKS)
    return float(text if text.endswith("y") else text.rstrip("fFdD"))


def equal(left: Value, right: Value) -> bool | None:
    """`=`"""
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    if type(left) is type(right) and left == right:
        return True
    return compare(left, right) == 0


def compare(left: str | bool | int | float, right: str | bool | int | float) -> int:
    """Negative, 0 or positive; different types are brought to one first, and what cannot be is "less"."""
    if isinstance(left, str):
        if not isinstance(right, str):
            left = _as_type_of(right, left)
    elif isinstance(left, bool):
        if isinstance(right, str):
            raise EvaluationError("a boolean cannot be compared with a property on its right")
    elif isinstance(right, str):
        right = _as_type_of(left, right)
    if isinstance(left, str) or isinstance(right, str):
        return _order(left, right) if isinstance(left, str) and isinstance(right, str) else -1
    if isinstance(left, bool) is not isinstance(right, bool):
        return -1
    return _order(left, right)


def _order(left: str | float, right: str | float) -> int:
    if left == right:
        return 0
    return 1 if left > right else -1  # type: ignore[operator]


def _as_type_of(other: bool | int | float, text: str) -> bool | int | float:
    if isinstance(other, bool):
        return text.lower() == "true"
    if isinstance(other, Int32):
        return whole(text, 32)
    if isinstance(other, int):
        return whole(text, 64)
    return decimal(text)


def ordered(left: Value, right: Value) -> int | None:
    """For `<` and its like: None when one is unknown; two properties are compared as numbers."""
    if left is None or right is None:
        return None
    if isinstance(left, str) and isinstance(right, str):
        return _order(decimal(left), decimal(right))
    return compare(left, right)


def negated(value: Value) -> Value:
    """Unary minus: numbers only."""
    if value is None or isinstance(value, str | bool):
        return None
    return Int32(-value) if isinstance(value, Int32) else -value
