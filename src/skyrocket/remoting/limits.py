"""How much a connection may hold, and how much connections may bring into one turn of the event loop."""

from dataclasses import dataclass
from typing import NamedTuple

from skyrocket.protocol.frames import MAX_FRAME_SIZE


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The bounds of one connection."""

    max_frame_size: int = MAX_FRAME_SIZE
    max_unanswered: int = 10_000  # requests without an answer
    max_calls: int = 256  # our calls to the peer
    write_high_water: int = 256 << 10
    write_low_water: int = 64 << 10
    max_unsent: int = 64 << 20

    def __post_init__(self) -> None:
        assert 0 <= self.write_low_water <= self.write_high_water <= self.max_unsent


class TurnLimits(NamedTuple):
    """What connections of a server may bring into one turn.

    `…_at_once`: one connection, without waiting for its time; `…_alone`: the same while nobody else waits for his.
    `…_for_ring`: what those who bring more have together in any case, however much the others brought.
    """

    seconds: float = 0.02
    seconds_for_ring: float = 0.005
    requests: int = 1024  # of those who bring more
    requests_at_once: int = 16
    requests_alone: int = 128
    read_size: int = 4 << 20
    read_size_for_ring: int = 1 << 20
    read_size_at_once: int = 64 << 10
    read_size_alone: int = 512 << 10
