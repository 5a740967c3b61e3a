"""Random pops, acknowledgements, changes, waits, saves, restarts and kills against a simple model.

A message that was popped is either acknowledged in time, and then never seen again, or handed out again, but not before
its time is over. A kill may bring messages back that were touched after the last save; nothing ever gets lost.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.unit.broker.pop.pop_world import Popped, PopWorld

SETTLED_MS = 8000  # by then a message whose time is over has been revived
QUEUES = 2


@dataclass
class Known:
    """What the model knows of one message."""

    hidden_until: int = 0
    acknowledged: bool = False
    receipt: str = ""  # the one that counts
    touched_ms: int = 0  # until then something was written for it
    is_loose: bool = False  # a kill, or an acknowledgement that came late: it may come again at any time
    seen: int = 0


@dataclass
class Hand:
    """A message in a consumer's hand."""

    popped: Popped
    known: Known = field(repr=False)


class PopMachine(RuleBasedStateMachine):
    """One group that pops one topic."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.starts = 0
        self.world = PopWorld(self.folder / "0", queues=QUEUES)
        self.known: dict[bytes, Known] = {}
        self.hands: list[Hand] = []
        self.saved_ms = self.now_ms

    @property
    def now_ms(self) -> int:
        return self.world.clock.now_ms()

    @rule(queue_id=st.integers(0, QUEUES - 1), count=st.integers(1, 4))
    def put(self, queue_id: int, count: int) -> None:
        for _ in range(count):
            body = b"m%d" % len(self.known)
            self.world.put(body, queue_id)
            self.known[body] = Known()

    @rule(
        count=st.integers(1, 8),
        invisible_ms=st.sampled_from([1000, 2500, 10_000, 60_000]),
        draw=st.integers(0, 99),
        queue_id=st.sampled_from([-1, -1, 0, 1]),
    )
    def pop(self, count: int, invisible_ms: int, draw: int, queue_id: int) -> None:
        self.world.draw = draw
        for popped in self.world.pop(max_msg_nums=count, invisible_time=invisible_ms, queue_id=queue_id):
            self._see(popped, invisible_ms)

    def _see(self, popped: Popped, invisible_ms: int) -> None:
        known = self.known[popped.body]
        if not known.is_loose:
            assert not known.acknowledged, f"{popped.body!r} was acknowledged and came again"
            assert self.now_ms >= known.hidden_until, f"{popped.body!r} came again before its time was over"
            assert popped.message.reconsume_times == known.seen
        known.seen += 1
        known.acknowledged = False
        known.hidden_until = self.now_ms + invisible_ms
        known.receipt = popped.receipt.text()
        known.touched_ms = known.hidden_until + SETTLED_MS
        self.hands.append(Hand(popped, known))

    def _takes(self, index: int) -> Hand:
        return self.hands.pop(index % len(self.hands))

    @precondition(lambda self: self.hands)
    @rule(index=st.integers(0, 1000))
    def acknowledge(self, index: int) -> None:
        hand = self._takes(index)
        self.world.ack(hand.popped)
        known = hand.known
        if known.receipt != hand.popped.receipt.text():
            return  # an old receipt: it says nothing of the message that was handed out since
        known.touched_ms = max(known.touched_ms, self.now_ms)
        if self.now_ms < known.hidden_until:
            known.acknowledged = True
        else:
            known.is_loose = True

    @precondition(lambda self: self.hands)
    @rule(index=st.integers(0, 1000), invisible_ms=st.sampled_from([1000, 5000, 30_000]))
    def change(self, index: int, invisible_ms: int) -> None:
        hand = self._takes(index)
        known = hand.known
        if known.receipt != hand.popped.receipt.text():
            return
        in_time = self.now_ms < known.hidden_until
        changed = self.world.change(hand.popped, invisible_ms)
        known.hidden_until = self.now_ms + invisible_ms
        known.receipt = changed.receipt.text()
        known.touched_ms = max(known.touched_ms, known.hidden_until + SETTLED_MS)
        known.is_loose |= not in_time
        self.hands.append(Hand(changed, known))

    @rule(ms=st.sampled_from([1, 300, 1000, 3000, 12_000, 70_000]))
    def wait(self, ms: int) -> None:
        self.world.pass_time(ms)

    @rule()
    def save(self) -> None:
        self.world.save()
        self.saved_ms = self.now_ms

    @rule()
    def restart(self) -> None:
        self.world.stop()
        self.world = self.world.again()
        self.saved_ms = self.now_ms

    @rule()
    def kill(self) -> None:
        self.starts += 1
        self.world = self.world.killed(self.folder / str(self.starts))
        for known in self.known.values():
            if known.seen and known.touched_ms >= self.saved_ms:
                known.is_loose = True

    def teardown(self) -> None:
        try:
            self._nothing_is_lost()
        finally:
            self.world.store.close()
            shutil.rmtree(self.folder)

    def _nothing_is_lost(self) -> None:
        """Whatever was not acknowledged is handed out when its time is over."""
        self.world.pass_time(90_000 + SETTLED_MS, step_ms=1500)
        missing = {body for body, known in self.known.items() if not known.acknowledged and not known.is_loose}
        while popped := self.world.pop(invisible_time=600_000):
            for each in popped:
                self._see(each, 600_000)
                missing.discard(each.body)
        assert not missing, f"lost: {sorted(missing)}"
