"""Frames of sends that differ only in time, properties and opaque number, put together from constant pieces.

    lengths {"code":310,…,"g":"|1794793999060|","h":"0","i":|"KEYS…"|,"j":"0",…,"opaque":|4|,…,"version":493} body
            └─────── head ────┘     time      └─ middle ──┘properties└──── rest ────────┘ └────── end ───────┘

The counterpart of `send_shapes`, for whoever sends. The pieces are cut from a header that was encoded in full, so the
layout of a header is known in one place only.
"""

from struct import Struct
from typing import Final

import orjson

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge
from skyrocket.protocol.frames import MAX_FRAME_SIZE
from skyrocket.protocol.header_json import encode

_pack_lengths = Struct(">ii").pack
_TIME: Final = b'"g":"'
_PROPERTIES: Final = b'"i":'
_NUMBER: Final = b'"opaque":'
_NOTHING: Final = b'""'


class SendTemplate:
    """Sends of one group to one queue."""

    __slots__ = ("_end", "_head", "_middle", "_rest")

    def __init__(self, example: RemotingCommand) -> None:
        """`example` has neither time nor properties (`g` and `i` are empty) and the number 0."""
        assert example.opaque == 0
        head, _, tail = encode(example).partition(_TIME)
        middle, found, tail = tail.partition(_PROPERTIES + _NOTHING)
        rest, numbered, end = tail.partition(_NUMBER + b"0")
        assert found, "the properties of an example are empty"
        assert numbered, "the number of an example is 0"
        self._head = head + _TIME
        self._middle = middle + _PROPERTIES
        self._rest = rest + _NUMBER
        self._end = end

    def frame(self, opaque: int, born_ms: int, properties: str, body: bytes) -> bytes:
        """The whole frame; raises CommandTooLarge."""
        header = b"%b%d%b%b%b%d%b" % (
            self._head,
            born_ms,
            self._middle,
            _json_text(properties),
            self._rest,
            opaque,
            self._end,
        )
        length = 4 + len(header) + len(body)
        if length > MAX_FRAME_SIZE - 4:
            raise CommandTooLarge(f"header {len(header)} bytes, body {len(body)} bytes; a frame has {MAX_FRAME_SIZE}")
        return b"%b%b%b" % (_pack_lengths(length, len(header)), header, body)


def _json_text(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:  # half of a surrogate pair, which UTF-8 cannot carry
        return orjson.dumps(text.encode(errors="replace").decode())
