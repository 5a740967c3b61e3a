"""How much a connection may hold, and how much connections may bring into one turn of the event loop."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """What all connections of a server together may bring into one turn, and what each may bring in any case."""

    requests: int = 1024
    requests_each_at_least: int = 16
    read_size: int = 4 << 20
    read_size_each_at_least: int = 64 << 10
    seconds: float = 0.02
