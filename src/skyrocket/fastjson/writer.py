"""Values → text, laid out as the two generations of fastjson do it.

    V4_9  (fastjson 1)                V5_4  (fastjson 2)
    {                                 {
    →"offsetTable":{                  →"offsetTable":{
    →→"TopicTest@group":{0:12,1:7     →→"TopicTest@group":{
    →→},                              →→→0:12,
    →→"TopicTest@other":{}            →→→1:7
    →}                                →→},
    }                                 →→"TopicTest@other":{
                                      →→→
                                      →→}
                                      →}
                                      }

Only a key in quotes begins a line in V4_9. Keys stand in the order of the dict: whoever writes a Java object sorts
its fields. COMPACT has no blanks at all, which some clients rely on.
"""

from enum import Enum

import orjson

from skyrocket.fastjson.values import MAX_DEPTH, FastJsonError, Json, JsonKey, ObjectKey


class Dialect(Enum):
    """A layout of the text."""

    COMPACT = "one line, as on the wire"
    V4_9 = "config files of RocketMQ 4.9"
    V5_4 = "config files of RocketMQ 5.4.0"


def dumps(value: Json, dialect: Dialect = Dialect.COMPACT) -> bytes:
    """The UTF-8 text of a value; NaN and infinity become null, lone surrogates `?`, as Java writes them."""
    if dialect is Dialect.COMPACT:
        try:
            return orjson.dumps(value)
        except TypeError:  # keys that are not text, or something for which the slow way has a better error
            pass
    parts: list[str] = []
    _WRITERS[dialect](parts).value(value, 0)
    return "".join(parts).encode("utf-8", "replace")


class _Compact:
    def __init__(self, parts: list[str]) -> None:
        self._parts = parts

    def value(self, value: Json, level: int) -> None:
        """Append the text of a value whose line is indented by `level` tabs."""
        if isinstance(value, dict):
            self._object(value, level)
        elif isinstance(value, list):
            self._list(value, level)
        else:
            self._parts.append(_scalar(value))

    def _object(self, pairs: dict[JsonKey, Json], level: int) -> None:
        inner = _deeper(level)
        self._parts.append("{")
        if not pairs:
            self._nothing(inner)
        between = ""
        for key, value in pairs.items():
            self._parts.append(between)
            self._before_key(key, inner)
            self._key(key, inner)
            self._parts.append(":")
            self.value(value, inner)
            between = ","
        self._before_end(pairs, level)
        self._parts.append("}")

    def _key(self, key: JsonKey, level: int) -> None:
        if isinstance(key, ObjectKey):
            self._object(key.fields(), level)
        elif isinstance(key, str) or type(key) is int:
            self._parts.append(_scalar(key))
        else:
            raise FastJsonError(f"a key of type {type(key).__name__} cannot be written")

    def _list(self, values: list[Json], level: int) -> None:
        inner = _deeper(level)
        has_lines = self._has_lines(values)
        self._parts.append("[")
        between = ""
        for value in values:
            self._parts.append(between)
            if has_lines:
                self._line(inner)
            self.value(value, inner)
            between = ","
        if has_lines:
            self._line(level)
        self._parts.append("]")

    def _has_lines(self, values: list[Json]) -> bool:
        """Whether each element of a list stands on a line of its own."""
        return False

    def _nothing(self, inner: int) -> None:
        """Between the braces of an object without pairs."""

    def _before_key(self, key: JsonKey, inner: int) -> None:
        """Between `{` or a comma and a key."""

    def _before_end(self, pairs: dict[JsonKey, Json], level: int) -> None:
        """Between the last pair and `}`."""

    def _line(self, level: int) -> None:
        self._parts.append("\n" + "\t" * level)


class _Tabs49(_Compact):
    def _before_key(self, key: JsonKey, inner: int) -> None:
        if isinstance(key, str):
            self._line(inner)

    def _before_end(self, pairs: dict[JsonKey, Json], level: int) -> None:
        if pairs:
            self._line(level)


class _Tabs54(_Compact):
    def _nothing(self, inner: int) -> None:
        self._line(inner)

    def _before_key(self, key: JsonKey, inner: int) -> None:
        self._line(inner)

    def _before_end(self, pairs: dict[JsonKey, Json], level: int) -> None:
        self._line(level)

    def _has_lines(self, values: list[Json]) -> bool:
        return not all(isinstance(value, int | float) for value in values)


_WRITERS: dict[Dialect, type[_Compact]] = {
    Dialect.COMPACT: _Compact,
    Dialect.V4_9: _Tabs49,
    Dialect.V5_4: _Tabs54,
}


_LARGEST = (1 << 63) - 1


def _deeper(level: int) -> int:
    if level >= MAX_DEPTH:
        raise FastJsonError(f"nested deeper than {MAX_DEPTH} levels; a reference may have made a loop")
    return level + 1


def _scalar(value: object) -> str:
    if type(value) is int and -_LARGEST <= value <= _LARGEST:  # nearly everything in a table of offsets
        return str(value)
    if not (value is None or isinstance(value, bool | int | float | str)):
        raise FastJsonError(f"a value of type {type(value).__name__} cannot be written")
    if isinstance(value, str):
        value = value.encode("utf-8", "replace").decode()
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise FastJsonError(f"{value!r} cannot be written: {error}") from None
