"""What is sent when: portions that follow each other evenly, and rounds of them, each of which is one job of Spark."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from skyrocket.errors import ConfigError
from skyrocket.model.message_queue import MessageQueue

Portion = dict[MessageQueue, tuple[int, int]]  # of each queue the numbers from the first to before the second

_PORTIONS_PER_SECOND: Final = 20
# Not short: while Spark plans the next round nothing is sent. Not long: all of it is looked for after a crash.
ROUND_S: Final = 5.0


@dataclass(frozen=True)
class Sending:
    """How the sink is told to send."""

    options: Mapping[str, str]  # of format("rocketmq"): which cluster
    rate: float  # messages per second
    round_s: float = ROUND_S

    def __post_init__(self) -> None:
        if self.rate <= 0 or self.round_s <= 0:
            raise ConfigError("--rate is a number of messages per second, more than 0")

    @property
    def per_portion(self) -> int:
        return max(1, int(self.rate / _PORTIONS_PER_SECOND))

    @property
    def every_s(self) -> float:
        """Seconds from one portion to the next."""
        return self.per_portion / self.rate

    def time_ms(self, place: int) -> int:
        """When a portion is sent, counted from the first of its round."""
        return int(place * self.every_s * 1000)

    def rounds(self, left: Mapping[MessageQueue, int], begun: Mapping[MessageQueue, int]) -> Iterator[list[Portion]]:
        """All messages, by the number that is left of each queue; the first round is the one that was begun, if any."""
        if first := list(portions(begun, self.per_portion)):
            yield first
        each = portions(left, self.per_portion, begun)
        while together := list(islice(each, max(1, int(self.round_s / self.every_s)))):
            yield together


def portions(
    left: Mapping[MessageQueue, int], most: int, done: Mapping[MessageQueue, int] | None = None
) -> Iterator[Portion]:
    """Cut the numbers 0 … n-1 of each queue, or those that are not done, into portions of at most `most` messages.

    Queues advance side by side. One that has little left gives its share to the others: the rate is used to the end.
    """
    assert most >= 1
    done = dict.fromkeys(left, 0) | dict(done or {})
    while open_queues := sorted(
        (queue for queue in left if done[queue] < left[queue]), key=lambda q: left[q] - done[q]
    ):
        room, cut = most, {}
        for place, queue in enumerate(open_queues):
            # Rounded up for the shortest queues: with more queues than messages the first ones begin.
            share = -(-room // (len(open_queues) - place))
            take = min(share, left[queue] - done[queue], room)
            if take:
                cut[queue] = (done[queue], done[queue] + take)
                done[queue] += take
                room -= take
        yield cut
