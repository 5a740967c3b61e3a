"""Random sends, recalls, waits, saves, clean stops and crashes against a simple model."""

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyrocket.format.timer_wheel import parked_time_ms
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import Timed, lose_timer_tail

STEP_MS = 1000
WINDOW = 6  # steps: most messages roll at least once
LOSSES = st.sampled_from(("nothing", "nothing", "wheel", "tail", "checkpoint", "counts"))


@dataclass
class Sent:
    """What the model knows of a message."""

    deliver_ms: int
    is_recalled: bool = False
    crashes: int = 0  # since it was sent


SETTINGS = settings(
    max_examples=15,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink a case takes minutes
)


class AgainstAModel(RuleBasedStateMachine):
    """Never early, late by a step at most, never lost, never twice without a crash, never after its recall."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.crashes = 0
        self.latest_ms = self.clock.now_ms()
        self.sent: dict[bytes, Sent] = {}
        # Small parts of work: many things happen in the middle of a step.
        self.patches = [
            patch("skyrocket.broker.timer.parking.PARK_GROUP", 3),
            patch("skyrocket.broker.timer.step_delivery.CHAIN_GROUP", 2),
            patch("skyrocket.broker.timer.step_delivery.GROUP_MESSAGES", 2),
        ]
        for each in self.patches:
            each.start()
        self.timed = self.open(self.folder / "0")

    def open(self, root: Path) -> Timed:
        return Timed(root, self.clock, timer_roll_window=WINDOW)

    @rule(delays_ms=st.lists(st.integers(-2000, 20_000), min_size=1, max_size=8))
    def send(self, delays_ms: list[int]) -> None:
        for delay_ms in delays_ms:
            body = b"%d" % len(self.sent)
            self.sent[body] = Sent(self.clock.now_ms() + delay_ms)
            assert self.timed.put_at(body, self.clock.now_ms() + delay_ms).ok

    @rule(number=st.integers(0, 40), delay_ms=st.integers(1, 9000))
    def send_to_one_step(self, number: int, delay_ms: int) -> None:
        self.send([delay_ms] * number)

    @rule(random=st.randoms(use_true_random=False))
    def recall(self, random: object) -> None:
        # Not of a step that was over before the clock was set back: its messages may have been delivered.
        waiting = [body for body, sent in self.sent.items() if parked_time_ms(sent.deliver_ms) + 1 > self.latest_ms]
        if waiting:
            body = random.choice(waiting)  # type: ignore[attr-defined]
            self.timed.recall(body.decode(), self.sent[body].deliver_ms)
            self.sent[body].is_recalled = True

    @rule(delays_ms=st.lists(st.integers(1, 4000), min_size=6, max_size=12), random=st.randoms(use_true_random=False))
    def recall_at_the_end_of_a_queue(self, delays_ms: list[int], random: object) -> None:
        """The cancel comes to the wheel when the step of its message may be over for long."""
        self.send(delays_ms)
        self.recall(random)
        self.wait(6000)

    @rule(ms=st.integers(0, 5000))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms=ms)
        self.latest_ms = max(self.latest_ms, self.clock.now_ms())

    @rule(times=st.integers(1, 12))
    def fire_a_little(self, times: int) -> None:
        for _ in range(times):
            self.timed.service.fire_due(self.clock.now_ms())

    @rule()
    def fire(self) -> None:
        self.timed.fire()
        counts = Counter(self.timed.bodies())
        now_ms = self.clock.now_ms()
        for body, sent in self.sent.items():
            is_over = sent.deliver_ms + STEP_MS <= now_ms
            assert sent.is_recalled or not is_over or counts[body], f"{body!r} {sent} is late at {now_ms}"

    @rule()
    def save(self) -> None:
        self.timed.service.save()

    @rule()
    def restart(self) -> None:
        self.timed.stop()
        self.timed = self.open(self.timed.root)

    @rule(loses=LOSSES)
    def crash(self, loses: str) -> None:
        self.crashes += 1
        saved = self.folder / str(self.crashes)
        self.timed.killed(saved)
        match loses:
            case "wheel":
                (saved / "timerwheel").unlink(missing_ok=True)
            case "tail":
                lose_timer_tail(saved)
            case "checkpoint":
                (saved / "config" / "timercheck").unlink(missing_ok=True)
            case "counts":
                (saved / "config" / "timermetrics").unlink(missing_ok=True)
        for sent in self.sent.values():
            sent.crashes += 1
        shutil.rmtree(self.timed.root)
        self.timed = self.open(saved)

    @rule(delays_ms=st.lists(st.integers(1, 8000), min_size=1, max_size=12), loses=LOSSES)
    def crash_soon_after_sending(self, delays_ms: list[int], loses: str) -> None:
        """Parked, but not saved."""
        self.send(delays_ms)
        self.fire_a_little(8)
        self.crash(loses)

    @rule(number=st.integers(5, 20), times=st.integers(8, 20), ends=st.sampled_from(("restart", "crash", "send")))
    def end_in_the_middle_of_a_step(self, number: int, times: int, ends: str) -> None:
        """Some of its messages are delivered."""
        self.send([1500] * number)
        self.fire()
        self.wait(3000)
        self.fire_a_little(times)
        if ends == "restart":
            self.restart()
        elif ends == "crash":
            self.save()
            self.crash("nothing")
        else:
            self.clock.set(self.clock.now_ms() - 2500)  # set back by an operator: for the step that is open
            self.send([100, 1100])
            self.wait(2500)

    @invariant()
    def nothing_early_or_twice_or_after_its_recall(self) -> None:
        records = self.timed.delivered()
        for record in records:
            sent = self.sent[record.body]
            assert not sent.is_recalled, f"{record.body!r} {sent}"
            assert record.store_timestamp >= sent.deliver_ms, f"{record.body!r} {sent} came early"
        for body, count in Counter(record.body for record in records).items():
            assert count == 1 or self.sent[body].crashes, f"{body!r} came {count} times"

    def teardown(self) -> None:
        self.clock.advance(seconds=60)
        self.fire()
        assert not self.timed.service.pending()
        assert not any(self.timed.counts.counts().values())
        self.timed.stop()
        for each in self.patches:
            each.stop()
        shutil.rmtree(self.folder)
