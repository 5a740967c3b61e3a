"""What to ask, how often and for how long."""

from dataclasses import dataclass

SEND, PULL = "send", "pull"


@dataclass(frozen=True)
class Scenario:
    """One measurement; each process gets a share of connections and rate."""

    kind: str  # SEND or PULL
    address: tuple[str, int]
    topic: str
    connections: int = 64
    window: int = 1
    rate: float | None = None  # requests per second of all connections: an open loop; None: a closed loop
    body_size: int = 128
    batch: int = 1
    queues: int = 8
    tag: str = ""
    pull_at_most: int = 32
    repeat_pulls: bool = True
    timer_seconds: int = 0  # messages are to be delivered so much later
    topics: int = 1  # sends go to so many in turn: their names are that of `topic` and a number, unless it is one

    @property
    def topic_names(self) -> list[str]:
        """Where sends go."""
        return [self.topic] if self.topics == 1 else [f"{self.topic}-{number:05}" for number in range(self.topics)]

    @property
    def name(self) -> str:
        """One line for people."""
        if self.kind == PULL:
            return f"pull, {self.pull_at_most} at most"
        size = f"{self.body_size // 1024} KiB" if self.body_size % 1024 == 0 else f"{self.body_size} B"
        batch = f", batches of {self.batch}" if self.batch > 1 else ""
        loop = f", {self.rate:,.0f}/s asked for" if self.rate else ""
        window = f" × {self.window} in flight" if self.window > 1 and not self.rate else ""
        what = "timers of" if self.timer_seconds else "send"
        return f"{what} {size}{batch}, {self.connections} connections{window}{loop}"
