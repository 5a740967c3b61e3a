"""Headers of sends that differ only in time, properties and opaque number are read without a JSON parser.

    {"code":310,"extFields":{"a":"PG","b":"Orders",…,"f":"0","g":"|1794793999060|","h":"0","i":"|KEYS…|","j":"0",…
    └─────────────────────── head ───────────────────────────┘   time   └── middle ─┘  properties └──── rest ─────
    …,"n":"broker-a"},"flag":0,"language":"JAVA","opaque":|4|,"serializeTypeCurrentRPC":"JSON","version":493}
    ──────────────── rest ─────────────────────────────────┘ number └──────────── end ──────────────────────┘

A producer sends headers of one shape by the thousand. The first is read in full and its shape remembered; those that
fit cost half as much. Whoever wants the ext fields of such a request still gets them: they are parsed when asked for.
"""

import re
from typing import Final

import orjson

from skyrocket.protocol.codes import LanguageCode, RequestCode, SerializeType
from skyrocket.protocol.command import Body, RemotingCommand
from skyrocket.protocol.header_json import decode

SEND_HEADS: Final = (b'{"code":310,"extFields":{"a":"', b'{"code":320,"extFields":{"a":"')
SEND_CODES: Final = (RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)

_TIME: Final = b'"g":"'
_AFTER_TIME: Final = b'","h":"'
_PROPERTIES: Final = b'","i":"'
_NUMBER: Final = b'"opaque":'
_TIME_SIZE: Final = len(_TIME)
_TIME_DIGITS: Final = 13
# A name that stands twice has the value of its last place: what varies must stand once. The property's is in `middle`.
_VARYING: Final = re.compile(rb'"(?:g|i|opaque)"\s*:')
_SIGNATURE: Final = b'"Signature"'  # one that is new each time
_MAX_SHAPES: Final = 20_000
_MAX_SIZE: Final = 2048  # of what headers have in common: anybody may send one, and it is kept
_PULL_ROOM: Final = 64 << 20
_MAX_TEXT: Final = 1024
_MOST_TEXTS: Final = 64  # a producer whose texts differ in more than one value is not compared with them for ever

_new = object.__new__


class ShapeMemo:
    """What the handler of such requests found out for all of one shape; it derives a class of its own."""

    __slots__ = ()


class KnownText:
    """A property text but for one value, as the newest message of a shape had it, and how it looks in a header."""

    __slots__ = ("after", "before", "raw_after", "raw_before", "value_end", "value_size")

    def __init__(self, shape: "Shape", text: bytes, value_at: int, value_end: int) -> None:
        self.before = text[:value_at]
        self.after = text[value_end:]
        self.raw_before = shape.middle + _escaped(self.before)
        self.raw_after = _escaped(self.after) + shape.rest + _NUMBER
        self.value_size = value_end - value_at
        self.value_end = len(self.raw_before) + self.value_size


class Shape:
    """What headers have in common, and what somebody found out for all of them."""

    __slots__ = ("code", "end", "flag", "language", "memo", "middle", "rest", "text", "texts_left", "version")

    def __init__(self, middle: bytes, rest: bytes, end: bytes, example: RemotingCommand) -> None:
        self.middle = middle
        self.rest = rest
        self.end = end
        self.code = example.code
        self.flag = example.flag
        self.language: LanguageCode | None = example.language
        self.version = example.version
        self.memo: ShapeMemo | None = None
        self.text: KnownText | None = None
        self.texts_left = _MOST_TEXTS

    def know_text(self, text: bytes, value_at: int, value_end: int) -> KnownText | None:
        """Expect this text of the next ones, with another value at that place; None where too many others came."""
        known, size = self.text, value_end - value_at
        look = (text[:value_at], size, text[value_end:])
        if known is not None and (known.before, known.value_size, known.after) == look:
            return known  # this one was read before it was known
        self.texts_left -= 1
        if self.texts_left < 0 or len(text) > _MAX_TEXT or not text[value_at:value_end].isalnum():
            self.text = None
        else:
            self.text = KnownText(self, text, value_at, value_end)
        return self.text


class ShapedSend(RemotingCommand):
    """A SEND_MESSAGE_V2 or SEND_BATCH_MESSAGE whose header had a known shape."""

    __slots__ = ("_text", "born", "header", "known_text", "shape", "value")

    remark = None
    serialize_type = SerializeType.JSON

    born: bytes  # decimal digits
    header: bytes
    known_text: KnownText | None  # when nothing but its value differs, letters and digits
    value: bytes
    shape: Shape
    _text: bytes

    @property
    def ext_fields(self) -> dict[str, str] | None:  # type: ignore[override]
        return decode(self.header, self.body).ext_fields  # as a header that is read in full, with all its tolerance

    @property
    def properties(self) -> bytes:
        """The property text."""
        known = self.known_text
        return self._text if known is None else known.before + self.value + known.after


class Room:
    """Bytes that may still be taken by what each connection of a server remembers for itself."""

    __slots__ = ("left",)

    def __init__(self, size: int) -> None:
        self.left = size


class SendShapes:
    """The shapes that one server has seen."""

    def __init__(self) -> None:
        self.pull_room = Room(_PULL_ROOM)
        self._by_head: dict[bytes, Shape] = {}

    def __len__(self) -> int:
        return len(self._by_head)

    def read(self, header: bytes, body: Body) -> ShapedSend | None:
        """The request of a header with a known shape; None for all others."""
        time_at = header.find(_TIME)
        shape = self._by_head.get(header[:time_at])
        if shape is None or time_at < 0:
            return None
        born = header[time_at + _TIME_SIZE : (born_end := time_at + _TIME_SIZE + _TIME_DIGITS)]
        known, end = shape.text, shape.end
        text = value = b""
        if (
            known is not None
            and header.startswith(known.raw_before, born_end)
            and header.startswith(known.raw_after, value_end := born_end + known.value_end)
            and (value := header[value_end - known.value_size : value_end]).isalnum()
        ):
            digits, _, found_end = header[value_end + len(known.raw_after) :].partition(b",")
        else:
            known = None
            if not header.startswith(shape.middle, born_end):
                return None
            text_at = born_end + len(shape.middle)
            text_end = header.find(b'"', text_at)
            text = header[text_at:text_end].replace(b"\\u0001", b"\1").replace(b"\\u0002", b"\2")
            rest, _, last = header[text_end:].partition(_NUMBER)
            digits, _, found_end = last.partition(b",")
            if rest != shape.rest or text.find(b"\\") >= 0 or not text.isascii():
                return None
        if (
            found_end != end
            or not born.isdigit()
            or not digits.isdigit()
            or not (len(digits) < 10 or (len(digits) == 10 and digits <= b"2147483647"))
            or (digits[0] == 48 and len(digits) > 1)
        ):
            return None
        command = _new(ShapedSend)  # as in header_json.decode
        command.code = shape.code
        command.opaque = int(digits)
        command.flag = shape.flag
        command.body = body
        command.language = shape.language
        command.version = shape.version
        command.born = born
        command.header = header
        command.known_text = known
        command.value = value
        command._text = text
        command.shape = shape
        return command

    def learn(self, header: bytes, command: RemotingCommand) -> None:
        """Remember the shape of a header that was read in full."""
        head, found, tail = header.partition(_TIME)
        if not found or command.remark is not None or _SIGNATURE in header:
            return
        text_from = tail.find(_PROPERTIES, _TIME_DIGITS)
        text_at = text_from + len(_PROPERTIES)
        text_end = tail.find(b'"', text_at)
        rest, found, last = tail[text_end:].partition(_NUMBER)
        digits, comma, end = last.partition(b",")
        middle = tail[_TIME_DIGITS:text_at]
        fixed = head + middle + rest + end
        known = self._by_head.get(head)
        if known is not None and (known.middle, known.rest, known.end) == (middle, rest, end):
            return  # only its text is one that must be read in full
        if (
            text_from < 0
            or len(fixed) > _MAX_SIZE
            or not found
            or not comma
            or digits != b"%d" % command.opaque
            or not middle.startswith(_AFTER_TIME)
            or b"\\" in fixed  # else a quote might be part of a text
            or len(_VARYING.findall(fixed)) != 1
            or not _stand_there(header, tail[:_TIME_DIGITS], tail[text_at:text_end], command)
        ):
            return
        if len(self._by_head) >= _MAX_SHAPES:
            self._by_head.clear()
        self._by_head[head] = Shape(middle, rest, end, command)


def _stand_there(header: bytes, born: bytes, text: bytes, command: RemotingCommand) -> bool:
    """Whether time and properties, as a full parse has them, are what was found in their places.

    In what else passes than strict JSON a name may stand twice in another spelling, and its last value counts.
    """
    try:
        orjson.loads(header)
        found = orjson.loads(b'"%b"' % text)
    except orjson.JSONDecodeError:
        return False
    fields = command.ext_fields or {}
    return born.isdigit() and fields.get("g") == born.decode() and fields.get("i") == found


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\1", b"\\u0001").replace(b"\2", b"\\u0002")
