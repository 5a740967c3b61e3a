"""Since when messages wait: asked where a group has moved, remembered where it stands still."""

from collections.abc import Mapping

from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.client.admin.waits import Waits
from skyrocket.client.core.errors import ClientError
from skyrocket.console.cluster.groups import figures
from skyrocket.model.message_queue import MessageQueue
from skyrocket.testing.clock import FakeClock

QUEUE = MessageQueue("Orders", "broker-a", 0)


class Brokers:
    """What they tell of one queue, and how often they were asked."""

    def __init__(self, waited_ms: int | None) -> None:
        self.waited_ms = waited_ms
        self.asked = 0

    async def __call__(self, group: str, topic: str) -> Mapping[MessageQueue, int]:
        self.asked += 1
        if self.waited_ms is None:
            raise ClientError("it is too old")
        return {QUEUE: self.waited_ms}


def lag(waiting: int, *, consumed: int = 10, last_ms: int = 0) -> list[QueueLag]:
    return [QueueLag(QUEUE, consumed + waiting, consumed, last_ms)]


async def late(waits: Waits, lags: list[QueueLag], clock: FakeClock) -> int | None:
    await waits.look({"billing": lags})
    return figures(lags, waits.since("billing"), clock.now_ms()).late_ms


async def test_the_message_that_is_next_counts_not_the_one_that_was_consumed_hours_before() -> None:
    clock, brokers = FakeClock(), Brokers(3000)
    waits = Waits(brokers, clock)
    hours_ago = clock.now_ms() - 7_200_000
    assert await late(waits, lag(1, last_ms=hours_ago), clock) == 3000
    clock.advance(seconds=60)
    assert await late(waits, lag(5, last_ms=hours_ago), clock) == 63_000
    assert brokers.asked == 1, "it stands still"
    assert await late(waits, lag(4, consumed=11, last_ms=hours_ago), clock) == 3000
    assert brokers.asked == 2
    assert await late(waits, lag(0, consumed=15, last_ms=hours_ago), clock) is None
    assert brokers.asked == 2


async def test_a_group_that_keeps_up_costs_no_question() -> None:
    clock, brokers = FakeClock(), Brokers(3000)
    assert await late(Waits(brokers, clock), lag(1, last_ms=clock.now_ms() - 500), clock) == 500
    assert brokers.asked == 0


async def test_of_brokers_that_do_not_tell_it_is_as_late_as_it_may_be() -> None:
    clock = FakeClock()
    waits = Waits(Brokers(None), clock)
    assert await late(waits, lag(1, last_ms=clock.now_ms() - 9000), clock) == 9000
    assert await late(waits, lag(1, consumed=0), clock) is None, "nothing was consumed, and nobody says"


async def test_a_message_that_may_have_been_deleted_unread_is_asked_for_again() -> None:
    clock, brokers = FakeClock(), Brokers(3_600_000)
    waits = Waits(brokers, clock)
    assert await late(waits, lag(5, last_ms=1), clock) == 3_600_000
    clock.advance(seconds=360)
    brokers.waited_ms = 60_000
    assert await late(waits, lag(5, last_ms=1), clock) == 60_000
