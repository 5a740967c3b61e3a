"""Frames of pulls that differ only in their offset, what they commit and their opaque number.

    lengths {"code":11,"extFields":{…,"commitOffset":"|0|",…,"queueOffset":"|64|",…},…,"opaque":|4|,…,"version":493}

As `send_template`: the pieces are cut from a header that was encoded in full, in the order in which they stand there.
"""

from struct import Struct
from typing import Final

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.header_json import encode

_pack_lengths = Struct(">ii").pack
_COMMITTED: Final = b'"commitOffset":"'
_OFFSET: Final = b'"queueOffset":"'
_NUMBER: Final = b'"opaque":'


class PullTemplate:
    """Pulls of one consumer from one queue."""

    __slots__ = ("_end", "_first", "_offset_comes_first", "_second", "_third")

    def __init__(self, example: RemotingCommand) -> None:
        """`example` has 0 for both offsets and for its number."""
        whole = encode(example)
        self._offset_comes_first = whole.index(_OFFSET) < whole.index(_COMMITTED)
        marks = (_OFFSET, _COMMITTED) if self._offset_comes_first else (_COMMITTED, _OFFSET)
        pieces: list[bytes] = []
        for mark in (*marks, _NUMBER):
            piece, found, whole = whole.partition(mark + b"0")
            assert found, f"an example has no {mark!r} of 0"
            pieces.append(piece + mark)
        self._first, self._second, self._third = pieces
        self._end = whole

    def frame(self, opaque: int, queue_offset: int, committed: int) -> bytes:
        """The whole frame; it has no body."""
        one, other = (queue_offset, committed) if self._offset_comes_first else (committed, queue_offset)
        header = b"%b%d%b%d%b%d%b" % (self._first, one, self._second, other, self._third, opaque, self._end)
        return _pack_lengths(4 + len(header), len(header)) + header
