"""Looks over an Avro body before it is read, so that no bytes can take all memory, all time or the whole stack.

A few bytes can say "a million million empty records", or nest so deep that fastavro, which is C, overruns its stack and
ends the process. The walk reads lengths and counts alone. It takes longer than fastavro itself: those who read many
bodies ask first whether a schema lets a body be more than its bytes.
"""

from collections.abc import Mapping
from typing import Any, Final

from skyrocket.schemas.numbered import BodyUnreadable
from skyrocket.schemas.trees import MOST_LEVELS, MOST_VALUES

_FIXED_SIZES: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_NUMBERS: Final = ("int", "long", "enum")
_LONGEST_NUMBER: Final = 10  # bytes
_LONGEST_DECIMAL: Final = 1024  # bytes: longer ones take time that grows with their square


_VALUES_PER_BYTE: Final = 8  # records and nulls have none of their own


def check_bounds(body: bytes, schema: Any, named: Mapping[str, Any], most_values: int = MOST_VALUES) -> None:
    """Raises BodyUnreadable for a body that is too deep, has too many values, or ends too early."""
    _Walk(body, named, most_values).over(schema, 0)


class Bounds:
    """Of all bodies of one schema, for those who read them by the million."""

    def __init__(self, schema: Any, named: Mapping[str, Any]) -> None:
        self._schema = schema
        self._named = named
        self.is_needed = _can_explode(schema, named, ())
        self.has_decimals = _has_decimals(schema, named, set())

    def check(self, body: bytes) -> None:
        """Raises BodyUnreadable, as `check_bounds`, for a body that says far more values than it has bytes.

        Decimals that are too long are in long bodies alone: short ones, which are many, are not walked over for them.
        """
        if self.is_needed or (self.has_decimals and len(body) > _LONGEST_DECIMAL):
            check_bounds(body, self._schema, self._named, MOST_VALUES + _VALUES_PER_BYTE * len(body))


def _can_explode(schema: Any, named: Mapping[str, Any], inside: tuple[str, ...]) -> bool:
    """Whether a type is in itself, or an array has items without a byte; all else ends where the bytes end."""
    if isinstance(schema, str):
        if schema in inside:
            return True
        return schema in named and _can_explode(named[schema], named, inside)
    if isinstance(schema, list):
        return any(_can_explode(each, named, inside) for each in schema)
    kind = schema["type"]
    if kind in ("record", "error"):
        within = (*inside, schema["name"])
        return any(_can_explode(field["type"], named, within) for field in schema["fields"])
    if kind == "array":
        return _can_explode(schema["items"], named, inside) or _may_be_empty(schema["items"], named)
    if kind == "map":
        return _can_explode(schema["values"], named, inside)
    return not isinstance(kind, str) and _can_explode(kind, named, inside)


def _has_decimals(schema: Any, named: Mapping[str, Any], seen: set[str]) -> bool:
    """Whether there are decimals as long as their writer likes."""
    if isinstance(schema, str):
        if schema in seen or schema not in named:
            return False
        seen.add(schema)
        return _has_decimals(named[schema], named, seen)
    if isinstance(schema, list):
        return any(_has_decimals(each, named, seen) for each in schema)
    kind = schema["type"]
    if kind in ("record", "error"):
        seen.add(schema["name"])
        return any(_has_decimals(field["type"], named, seen) for field in schema["fields"])
    if kind in ("array", "map"):
        return _has_decimals(schema["items" if kind == "array" else "values"], named, seen)
    if kind == "bytes":
        return bool(schema.get("logicalType") == "decimal")
    return not isinstance(kind, str) and _has_decimals(kind, named, seen)


def _may_be_empty(schema: Any, named: Mapping[str, Any]) -> bool:
    """Whether a value takes no byte; of types that are not in themselves."""
    if isinstance(schema, str):
        return schema == "null" or (schema in named and _may_be_empty(named[schema], named))
    if isinstance(schema, list):
        return False  # the number of the choice
    kind = schema["type"]
    if kind in ("record", "error"):
        return all(_may_be_empty(field["type"], named) for field in schema["fields"])
    if kind == "fixed":
        return bool(schema["size"] == 0)
    return kind == "null" or (not isinstance(kind, str) and _may_be_empty(kind, named))


class _Walk:
    def __init__(self, body: bytes, named: Mapping[str, Any], most_values: int) -> None:
        self._body = body
        self._named = named
        self._most_values = most_values
        self._at = 0
        self._values = 0

    def over(self, schema: Any, level: int) -> None:
        """Pass one value."""
        self._values += 1
        if self._values > self._most_values:
            raise BodyUnreadable(f"the body has more than {self._most_values:,} values")
        if level > MOST_LEVELS:
            raise BodyUnreadable(f"the body nests deeper than {MOST_LEVELS} levels")
        while isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        if isinstance(schema, list):
            self.over(self._chosen(schema), level + 1)
        elif isinstance(schema, str):
            self._over_simple(schema)
        elif schema.get("logicalType") == "decimal" and schema["type"] == "bytes":
            self._skip(self._number(), _LONGEST_DECIMAL)
        else:
            self._over_complex(schema, level)

    def _over_complex(self, schema: Mapping[str, Any], level: int) -> None:
        kind = schema["type"]
        if kind in ("record", "error"):
            for field in schema["fields"]:
                self.over(field["type"], level + 1)
        elif kind == "array":
            self._over_blocks(schema["items"], level, keyed=False)
        elif kind == "map":
            self._over_blocks(schema["values"], level, keyed=True)
        elif kind == "fixed":
            self._skip(schema["size"])
        elif isinstance(kind, str) and (kind in _FIXED_SIZES or kind in (*_NUMBERS, "bytes", "string")):
            self._over_simple(kind)
        else:
            self.over(kind, level + 1)  # {"type": {…}}

    def _over_simple(self, kind: str) -> None:
        if kind in _NUMBERS:
            self._number()
        else:
            self._skip(_FIXED_SIZES[kind] if kind in _FIXED_SIZES else self._number())

    def _over_blocks(self, items: Any, level: int, *, keyed: bool) -> None:
        while (count := self._number()) != 0:
            if count < 0:  # the size of the block in bytes follows
                count = -count
                self._number()
            for _ in range(count):
                if keyed:
                    self._skip(self._number())
                self.over(items, level + 1)

    def _chosen(self, kinds: list[Any]) -> Any:
        place = self._number()
        if not 0 <= place < len(kinds):
            raise BodyUnreadable(f"the body chooses type {place} of a union of {len(kinds)}")
        return kinds[place]

    def _skip(self, size: int, most: int | None = None) -> None:
        if most is not None and size > most:
            raise BodyUnreadable(f"the body has a decimal of {size:,} bytes")
        if size < 0 or self._at + size > len(self._body):
            raise BodyUnreadable("the body is no datum of the Avro schema: a value ends behind it")
        self._at += size

    def _number(self) -> int:
        value = shift = 0
        for position in range(self._at, min(self._at + _LONGEST_NUMBER, len(self._body))):
            value |= (self._body[position] & 0x7F) << shift
            shift += 7
            if not self._body[position] & 0x80:
                self._at = position + 1
                return (value >> 1) ^ -(value & 1)
        raise BodyUnreadable("the body is no datum of the Avro schema: a number has no end")
