"""What one connection has to say, in order, until the turn's end writes it: frames, and places of answers to come."""

from collections.abc import Iterable
from typing import Final, cast

from skyrocket.protocol.command import Body
from skyrocket.remoting.answers import Frame, LaterAnswer, LaterRun

SIZE_OF_LATER: Final = 256  # what an answer that is not there yet counts towards the high-water mark


class Outbox:
    """Of one connection."""

    __slots__ = ("_pieces", "laters", "size")

    def __init__(self) -> None:
        self._pieces: list[Body | LaterAnswer | LaterRun] = []
        self.size = 0
        self.laters = 0  # answers that were not there when their places were taken

    def __len__(self) -> int:
        return len(self._pieces)

    def put(self, piece: Frame | LaterAnswer | LaterRun) -> None:
        """The next to be said."""
        if isinstance(piece, bytes):
            self._pieces.append(piece)
            self.size += len(piece)
        elif isinstance(piece, list):
            self._pieces += piece
            self.size += sum(map(len, piece))
        else:
            count = len(piece.requests) if isinstance(piece, LaterRun) else 1
            self._pieces.append(piece)
            self.laters += count
            self.size += count * SIZE_OF_LATER

    def take(self) -> tuple[list[Body], int, list[LaterAnswer]]:
        """All that can be said, its size, and the answers that have not come, which have no place any more."""
        pieces, size, laters = self._pieces, self.size, self.laters
        self._pieces, self.size, self.laters = [], 0, 0
        return _settled(pieces) if laters else (cast("list[Body]", pieces), size, [])

    def clear(self) -> list[LaterAnswer | LaterRun]:
        """Nothing of it will be said; gives the answers that may still come."""
        laters = [piece for piece in self._pieces if isinstance(piece, LaterAnswer | LaterRun)]
        self._pieces, self.size, self.laters = [], 0, 0
        return laters


def _settled(out: Iterable[Body | LaterAnswer | LaterRun]) -> tuple[list[Body], int, list[LaterAnswer]]:
    """What can be written, with answers that have come in their places; its size; and answers that have not come."""
    size = 0
    pieces: list[Body] = []
    waiting: list[LaterAnswer] = []
    for piece in out:
        if isinstance(piece, LaterRun):
            if piece.frames is not None:
                pieces += piece.frames
                size += sum(map(len, piece.frames))
            else:
                come, come_size, to_come = _settled(piece.one_by_one())
                pieces += come
                size += come_size
                waiting += to_come
            continue
        if not isinstance(piece, LaterAnswer):
            pieces.append(piece)
            size += len(piece)
            continue
        frame = piece.frame
        if frame is None:
            waiting.append(piece)
        elif isinstance(frame, bytes):
            pieces.append(frame)
            size += len(frame)
        else:
            pieces += frame
            size += sum(map(len, frame))
    return pieces, size, waiting
