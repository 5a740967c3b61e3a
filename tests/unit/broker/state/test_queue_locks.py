"""Locks of queues against a plain model: one holder at a time, sixty seconds."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.model.message_queue import MessageQueue
from skyrocket.testing.clock import FakeClock

Q0, Q1, Q2 = (MessageQueue("T", "broker-a", queue_id) for queue_id in range(3))


def test_a_queue_has_one_holder_and_a_client_many_queues(clock: FakeClock) -> None:
    locks = QueueLocks(clock)
    assert locks.lock("g", "c1", [Q0, Q1, Q1]) == (Q0, Q1)
    assert locks.lock("g", "c2", [Q0, Q1, Q2]) == (Q2,)
    assert locks.lock("g", "c1", [Q2, Q1]) == (Q1,)
    assert locks.lock("other", "c2", [Q0]) == (Q0,)
    assert [locks.holder("g", queue) for queue in (Q0, Q1, Q2)] == ["c1", "c1", "c2"]


def test_unlock_gives_back_only_what_is_ones_own(clock: FakeClock) -> None:
    locks = QueueLocks(clock)
    locks.lock("g", "c1", [Q0])
    locks.unlock("g", "c2", [Q0, Q1])
    locks.unlock("no such", "c2", [Q0])
    assert locks.are_held("g")
    locks.unlock("g", "c1", [Q0, Q1])
    assert not locks.are_held("g")
    assert locks.lock("g", "c2", [Q0]) == (Q0,)


def test_a_lock_lapses_after_sixty_seconds_unless_renewed(clock: FakeClock) -> None:
    locks = QueueLocks(clock)
    locks.lock("g", "c1", [Q0, Q1])
    clock.advance(seconds=40)
    locks.lock("g", "c1", [Q1])
    clock.advance(seconds=20)
    assert locks.lock("g", "c2", [Q0]) == ()
    clock.advance(ms=1)
    assert locks.lock("g", "c2", [Q0, Q1]) == (Q0,)
    clock.set(0)  # what an operator does to the wall clock does not count
    assert locks.holder("g", Q1) == "c1"


def test_queues_are_told_apart_by_all_three_names(clock: FakeClock) -> None:
    locks = QueueLocks(clock)
    locks.lock("g", "c1", [Q0])
    others = [MessageQueue("U", "broker-a", 0), MessageQueue("T", "broker-b", 0)]
    assert locks.lock("g", "c2", others) == tuple(others)


CLIENTS, GROUPS, QUEUES = st.sampled_from(["c1", "c2"]), st.sampled_from("gh"), st.sets(st.sampled_from([Q0, Q1, Q2]))


class LocksLikeAModel(RuleBasedStateMachine):
    """The model: (group, queue) → holder and the time when its lock lapses."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.locks = QueueLocks(self.clock)
        self.model: dict[tuple[str, MessageQueue], tuple[str, float]] = {}

    @rule(group=GROUPS, client=CLIENTS, queues=QUEUES)
    def lock(self, group: str, client: str, queues: set[MessageQueue]) -> None:
        expected = {queue for queue in queues if self._holder(group, queue) in (None, client)}
        assert set(self.locks.lock(group, client, queues)) == expected
        for queue in expected:
            self.model[group, queue] = client, self.clock.monotonic() + 60

    @rule(group=GROUPS, client=CLIENTS, queues=QUEUES)
    def unlock(self, group: str, client: str, queues: set[MessageQueue]) -> None:
        self.locks.unlock(group, client, queues)
        for queue in queues:
            if self.model.get((group, queue), ("", 0))[0] == client:
                del self.model[group, queue]

    @rule(seconds=st.integers(1, 45))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def clean(self) -> None:
        self.locks.forget_lapsed()

    def _holder(self, group: str, queue: MessageQueue) -> str | None:
        holder, until = self.model.get((group, queue), (None, 0))
        return holder if self.clock.monotonic() <= until else None

    @invariant()
    def same(self) -> None:
        for group in "gh":
            holders = [self._holder(group, queue) for queue in (Q0, Q1, Q2)]
            assert [self.locks.holder(group, queue) for queue in (Q0, Q1, Q2)] == holders
            assert self.locks.are_held(group) == any(holders)


TestLocksLikeAModel = LocksLikeAModel.TestCase
TestLocksLikeAModel.settings = settings(max_examples=60, stateful_step_count=30)
