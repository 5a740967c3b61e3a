"""What JSON text becomes in Python, its bounds, and the one error."""

from typing import Any, TypeAlias

from skyrocket.errors import DataError

MAX_DEPTH = 100  # reader and writer recurse: deeper text must not end in a RecursionError
MAX_BYTES = 256 << 20


class ObjectKey(tuple[tuple["JsonKey", Any], ...]):
    """An object that stands where a key belongs, frozen: its fields in the order of the text.

    Lists within it are tuples and objects are ObjectKeys, so that the whole can be hashed.
    """

    __slots__ = ()

    def fields(self) -> dict["JsonKey", "Json"]:
        """The object as an ordinary one."""
        return {name: thawed(value) for name, value in self}


JsonKey: TypeAlias = str | int | ObjectKey
Json: TypeAlias = bool | int | float | str | list["Json"] | dict[JsonKey, "Json"] | None


class FastJsonError(DataError):
    """Text is not JSON, not even Java's; or a value cannot be written as such."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.reason = reason
        self.line = line
        self.column = column
        where = f"line {line}, column {column}: " if line is not None else ""
        super().__init__(where + reason)


def frozen(value: Json) -> Any:
    """A value as it can stand inside a key."""
    if isinstance(value, dict):
        return ObjectKey((name, frozen(part)) for name, part in value.items())
    return tuple(frozen(part) for part in value) if isinstance(value, list) else value


def thawed(value: Any) -> Json:
    """The opposite of `frozen`."""
    if isinstance(value, ObjectKey):
        return value.fields()
    if isinstance(value, tuple):
        return [thawed(part) for part in value]
    result: Json = value
    return result
