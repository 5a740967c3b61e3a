"""Messages in hand, compared with a plain set of offsets."""

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skyrocket.client.consumer.process_queue import FlowLimits, ProcessQueue
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.model.message_queue import MessageQueue

QUEUE = MessageQueue("Orders", "broker-a", 0)


def message(offset: int, size: int = 10) -> ReceivedMessage:
    made = object.__new__(ReceivedMessage)
    made.queue_offset = offset
    made._body = b"x" * size
    made.sys_flag = 0
    return made


class Concurrent(RuleBasedStateMachine):
    """Pulled in ascending offsets, finished in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.real = ProcessQueue(QUEUE)
        self.model: set[int] = set()
        self.next = 0
        self.highest = -1
        self.committed = -1

    @rule(count=st.integers(1, 5), gap=st.integers(0, 3))
    def pull(self, count: int, gap: int) -> None:
        offsets = range(self.next + gap, self.next + gap + count)
        self.real.put([message(offset) for offset in offsets])
        self.model |= set(offsets)
        self.next, self.highest = offsets.stop, offsets.stop - 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        done = data.draw(st.sets(st.sampled_from(sorted(self.model)), min_size=1))
        offset = self.real.finish([message(each) for each in done])
        self.model -= done
        assert offset == (min(self.model) if self.model else self.highest + 1)
        assert offset > self.committed or offset == self.committed
        self.committed = offset

    @precondition(lambda self: self.model)
    @rule()
    def pull_the_same_again(self) -> None:
        assert self.real.put([message(min(self.model))]) == []

    @invariant()
    def counts_agree(self) -> None:
        assert self.real.count == len(self.model)
        assert self.real.size == 10 * len(self.model)
        assert self.real.span == (max(self.model) - min(self.model) if self.model else 0)
        assert self.real.min_offset == (min(self.model) if self.model else None)


class InOrder(RuleBasedStateMachine):
    """Taken, committed or rolled back: every message once per commit, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.real = ProcessQueue(QUEUE)
        self.waiting: list[int] = []
        self.taken: list[int] = []
        self.next = 0

    @rule(count=st.integers(1, 5))
    def pull(self, count: int) -> None:
        self.real.put_in_order([message(offset) for offset in range(self.next, self.next + count)])
        self.waiting += range(self.next, self.next + count)
        self.next += count

    @rule(count=st.integers(1, 4))
    def take(self, count: int) -> None:
        assert [each.queue_offset for each in self.real.take(count)] == self.waiting[:count]
        self.taken += self.waiting[:count]
        del self.waiting[:count]

    @rule()
    def commit(self) -> None:
        offset = self.real.commit()
        assert offset == ((self.taken[-1] + 1) if self.taken else None)
        self.taken = []

    @rule()
    def roll_back(self) -> None:
        self.real.roll_back()
        self.waiting = self.taken + self.waiting
        self.taken = []

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        count = data.draw(st.integers(0, len(self.taken)))
        piece = self.taken[len(self.taken) - count :]
        self.real.put_back([message(offset) for offset in piece])
        self.waiting = piece + self.waiting
        del self.taken[len(self.taken) - count :]

    @invariant()
    def nothing_is_lost(self) -> None:
        assert self.real.count == len(self.waiting) + len(self.taken)


TestConcurrent: Any = Concurrent.TestCase
TestInOrder: Any = InOrder.TestCase
TestConcurrent.settings = TestInOrder.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


@pytest.mark.requirement("C160", "C167")
def test_limits_say_which_of_them_holds_in_rocketmqs_words() -> None:
    queue = ProcessQueue(QUEUE)
    queue.put([message(offset) for offset in range(3)])
    assert queue.overflow(FlowLimits()) is None
    assert queue.overflow(FlowLimits(count=3)) is None
    assert queue.overflow(FlowLimits(count=2)) == (
        "the cached message count exceeds the threshold 2, so do flow control, "
        "minOffset=0, maxOffset=2, count=3, size=0 MiB"
    )
    queue.finish([message(1)])
    queue.put([message(3000)])
    assert queue.overflow(FlowLimits()) == (
        "the queue's messages, span too long, so do flow control, minOffset=0, maxOffset=3000, maxSpan=3000"
    )
    assert queue.overflow(FlowLimits(span=None)) is None
    queue.put([message(3001, size=2 << 20)])
    assert queue.overflow(FlowLimits(mib=1, span=None)) == (
        "the cached message size exceeds the threshold 1 MiB, so do flow control, "
        "minOffset=0, maxOffset=3001, count=4, size=2 MiB"
    )


async def test_whoever_waits_hears_of_a_finished_message_and_of_the_end() -> None:
    queue = ProcessQueue(QUEUE)
    queue.put([message(0)])
    waiting = asyncio.create_task(queue.changed(5))
    await asyncio.sleep(0)
    queue.finish([message(0)])
    await asyncio.wait_for(waiting, 1)
    waiting = asyncio.create_task(queue.changed(5))
    await asyncio.sleep(0)
    queue.drop()
    await asyncio.wait_for(waiting, 1)
    assert queue.finish([message(0)]) is None
    assert queue.count == 0


def test_a_lock_is_trusted_for_half_a_minute() -> None:
    queue = ProcessQueue(QUEUE)
    queue.is_locked, queue.locked_at = True, 100.0
    assert queue.may_consume(129.0)
    assert not queue.may_consume(130.0)
    queue.is_locked = False
    assert not queue.may_consume(101.0)
