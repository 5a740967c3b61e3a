"""Text → values: orjson where the text is standard JSON, a recursive reader of the dialect where it is not.

Both give the same values for the same standard text: whole numbers beyond 64 bits become floats, the last of equal
keys wins, NaN and infinity are refused.
"""

import re
from collections.abc import Callable
from typing import NoReturn

import orjson

from skyrocket.fastjson.references import REFERENCE, resolve
from skyrocket.fastjson.values import MAX_BYTES, MAX_DEPTH, FastJsonError, Json, JsonKey, ObjectKey, frozen

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$.\-]*")
_PLAIN = {quote: re.compile(rf"[^{quote}\\\x00-\x1f]*") for quote in "\"'"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([0-7bfnrtv\"'/\\]))")
_SHORT_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"} | {str(n): chr(n) for n in range(8)}
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}
_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
_LONGEST_WHOLE_NUMBER = 20  # characters of a number that may fit into 64 bits


def loads(text: bytes | str, *, max_bytes: int = MAX_BYTES) -> Json:
    """The value of a text; raises FastJsonError with line, column and what was expected there.

    A reference that leads nowhere becomes `{}`: Java fills such an object with defaults. One to an enclosing object
    makes a loop, as it does in Java.
    """
    if len(text) > max_bytes:
        raise FastJsonError(f"{len(text)} bytes; the limit is {max_bytes}")
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _Reader(_decoded(text)).document()
    else:
        if _opening_brackets(text) > MAX_DEPTH:
            _check_depth(value)
    has_reference = REFERENCE in text if isinstance(text, str) else REFERENCE.encode() in text
    return resolve(value) if has_reference else value


def _decoded(text: bytes | str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        before = text[: error.start].decode()
        raise FastJsonError("expected UTF-8, found a broken sequence", *_place(before, len(before))) from None


def _place(text: str, position: int) -> tuple[int, int]:
    return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)


def _opening_brackets(text: bytes | str) -> int:
    """An upper bound of the depth, so cheap that short texts need no closer look."""
    if isinstance(text, str):
        return text.count("{") + text.count("[")
    return text.count(b"{") + text.count(b"[")


def _check_depth(value: Json) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        containers = [part for part in level if isinstance(part, dict | list)]
        if not containers:
            return
        level = [child for part in containers for child in (part.values() if isinstance(part, dict) else part)]
    raise FastJsonError(f"nested deeper than {MAX_DEPTH} levels")


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def document(self) -> Json:
        value = self._value()
        if self._next():
            self._fail("the end of the text")
        return value

    def _fail(self, expected: str, position: int | None = None) -> NoReturn:
        at = self._at if position is None else position
        found = repr(self._text[at]) if at < len(self._text) else "the end of the text"
        raise FastJsonError(f"expected {expected}, found {found}", *_place(self._text, at))

    def _next(self) -> str:
        """The next character that is not a blank, or nothing at the end of the text; does not consume it."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _value(self) -> Json:
        first = self._next()
        if first == "{":
            return self._nested(self._object)
        if first == "[":
            return self._nested(self._list)
        if first in ('"', "'"):
            return self._string(first)
        if first == "-" or first.isdecimal():
            return self._number()
        word = _NAME.match(self._text, self._at)
        if word is None or word[0] not in _WORDS:
            self._fail("a value")
        self._at = word.end()
        return _WORDS[word[0]]

    def _nested(self, read: Callable[[], Json]) -> Json:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f"at most {MAX_DEPTH} levels")
        self._at += 1
        value = read()
        self._at += 1
        self._depth -= 1
        return value

    def _list(self) -> Json:
        values: list[Json] = []
        while self._next() != "]":
            values.append(self._value())
            self._separator("]")
        return values

    def _object(self) -> Json:
        pairs: dict[JsonKey, Json] = {}
        while self._next() != "}":
            key = self._key()
            if self._next() != ":":
                self._fail("':' after a key")
            self._at += 1
            pairs[key] = self._value()
            self._separator("}")
        return pairs

    def _separator(self, end: str) -> None:
        following = self._next()
        if following == ",":
            self._at += 1
        elif following != end:
            self._fail(f"',' or '{end}'")

    def _key(self) -> JsonKey:
        first = self._next()
        if first in ('"', "'"):
            return self._string(first)
        if first == "{":
            key = frozen(self._nested(self._object))
            assert isinstance(key, ObjectKey)
            return key
        if first == "-" or first.isdecimal():
            start = self._at
            number = self._number()
            if not isinstance(number, int):
                self._fail("a whole number of 64 bits as key", start)
            return number
        name = _NAME.match(self._text, self._at)
        if name is None:
            self._fail("a key")
        self._at = name.end()
        return name[0]

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if match is None:
            self._fail("a number")
        digits = match[0]
        if match["fraction"] is None and match["exponent"] is None and len(digits) <= _LONGEST_WHOLE_NUMBER:
            whole = int(digits)
            value: int | float = whole if _SMALLEST <= whole <= _LARGEST else float(whole)
        else:
            value = float(digits)
            if value in (float("inf"), float("-inf")):
                self._fail("a finite number")
        self._at = match.end()
        return value

    def _string(self, quote: str) -> str:
        plain = _PLAIN[quote]
        start = self._at
        self._at += 1
        parts: list[str] = []
        while True:
            match = plain.match(self._text, self._at)
            assert match is not None
            parts.append(match[0])
            self._at = match.end()
            following = self._text[self._at : self._at + 1]
            if following == quote:
                self._at += 1
                return self._without_lone_surrogates("".join(parts), start)
            if following != "\\":
                self._fail(f"the closing {quote} of a string")
            parts.append(self._escape())

    def _escape(self) -> str:
        match = _ESCAPE.match(self._text, self._at)
        if match is None:
            self._fail("an escape such as \\n or \\u4E2D")
        self._at = match.end()
        long, short, letter = match.groups()
        if letter is not None:
            return _SHORT_ESCAPES.get(letter, letter)
        return chr(int(long or short, 16))

    def _without_lone_surrogates(self, text: str, start: int) -> str:
        if text.isascii():
            return text
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16")  # joins pairs that came as two escapes
        except UnicodeDecodeError:
            self._fail("surrogates in pairs", start)
