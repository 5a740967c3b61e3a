"""Transactions against a simple model: random beginnings, ends, checks, restarts, kills, while the clock stands still.

A transaction is delivered if and only if it was committed, and once; a producer is asked at the right time, at most as
often as it is set, and never about what has ended.
"""

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from skyrocket.config.sections import BrokerConfig
from skyrocket.format.config_files import CONSUMER_OFFSETS
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.transacting import Transacting

TIMEOUT_MS = 6000
MOST_CHECKS = 4
CONFIG = BrokerConfig(transaction_timeout_ms=TIMEOUT_MS, transaction_check_max=MOST_CHECKS, ended_batch_bytes=32)

OPEN, GIVEN_UP = 0, -1


@dataclass
class Transaction:
    """What the model knows of one."""

    body: bytes
    born_ms: int
    immunity_ms: int | None
    places: list[int]  # physical offsets of its copies
    newest: int  # queue offset of its newest copy
    state: int = OPEN  # or GIVEN_UP, COMMIT, ROLLBACK
    checks: int = 0
    asked_ms: list[int] = field(default_factory=list)


class TransactionsAgainstAModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FakeClock()
        self.kills = 0
        self.all: list[Transaction] = []
        self.queue: list[tuple[Transaction, int]] = []  # the half queue: whose copy, stored when
        self.position = 0
        self.given = Transacting(self.folder / "0", self.clock, CONFIG)

    # ── what a producer does ─────────────────────────────────────────────────────────────────────────────────────────

    @rule(count=st.integers(1, 3), immunity=st.sampled_from([None, None, None, 10, 40]))
    def begin(self, count: int, immunity: int | None) -> None:
        for _ in range(count):
            properties: dict[str, Any] = {}
            if immunity is not None:
                properties["CHECK_IMMUNITY_TIME_IN_SECONDS"] = str(immunity)
            body = b"%d" % len(self.all)
            result = self.given.begin(body, **properties)
            assert result.ok
            assert result.queue_offset == len(self.queue)
            immunity_ms = None if immunity is None else immunity * 1000
            each = Transaction(body, self.clock.now_ms(), immunity_ms, [result.physical_offset], result.queue_offset)
            self.all.append(each)
            self.queue.append((each, self.clock.now_ms()))

    @precondition(lambda self: self.all)
    @rule(data=st.data(), word=st.sampled_from([COMMIT, ROLLBACK]))
    def end(self, data: st.DataObject, word: int) -> None:
        """By any copy, by the producer itself or after a question; who has ended says the same again."""
        each = data.draw(st.sampled_from(self.all))
        if each.state in (COMMIT, ROLLBACK):
            word = each.state
        place = data.draw(st.sampled_from(each.places))
        is_late = each.immunity_ms is not None and self.clock.now_ms() - each.born_ms > each.immunity_ms
        self.given.end(place, word, from_check=is_late)
        if each.state == OPEN or word == COMMIT:
            each.state = word

    # ── what time brings ─────────────────────────────────────────────────────────────────────────────────────────────

    @rule(deed=st.sampled_from(["write ends", "flush", "save"]), ms=st.sampled_from([0, 500, 3000]))
    def keep_house(self, deed: str, ms: int) -> None:
        self.clock.advance(ms=ms)
        if deed == "write ends":
            self.given.transactions.log.write_ended(self.clock.now_ms())
        elif deed == "flush":
            self.given.store.flush()
            self.given.transactions.log.settle()
        else:
            self.given.offsets.save()

    @rule(ms=st.sampled_from([0, 1, 6001, 30_000, 30_000]), is_there=st.sampled_from([True, True, True, False]))
    def check(self, ms: int, is_there: bool) -> None:
        """A round; without a producer it counts as well, and the next asks again."""
        self.clock.advance(ms=ms)
        expected = self._expected_questions()
        if not is_there:
            for each in expected:
                each.asked_ms.pop()
            expected = []
        self.given.producer.is_open = is_there
        before = len(self.given.producer.questions)
        self.given.check()
        self.given.producer.is_open = True
        questions = self.given.producer.questions[before:]
        assert [question.message.body for question in questions] == [each.body for each in expected]
        halves = self.given.halves()
        assert len(halves) == len(self.queue)
        for half, (each, _) in zip(halves, self.queue, strict=True):
            assert half.body == each.body
            if half.physical_offset not in each.places:
                each.places.append(half.physical_offset)
        assert [question.header.tran_state_table_offset for question in questions] == [each.newest for each in expected]
        assert self.given.transactions.log.half_offset == self.position

    def _expected_questions(self) -> list[Transaction]:
        now_ms = self.clock.now_ms()
        asked = []
        end = len(self.queue)
        while self.position < end:
            each, stored_ms = self.queue[self.position]
            if each.state == OPEN and each.newest == self.position:
                age_ms = now_ms - each.born_ms
                if each.checks >= MOST_CHECKS:
                    each.state = GIVEN_UP
                elif stored_ms >= now_ms or (each.immunity_ms is None and age_ms <= TIMEOUT_MS):
                    break
                else:
                    each.checks += 1
                    each.newest = len(self.queue)
                    self.queue.append((each, now_ms))
                    if each.immunity_ms is None or age_ms > each.immunity_ms:
                        asked.append(each)
                        each.asked_ms.append(now_ms)
            self.position += 1
        return asked

    # ── what happens to a broker ─────────────────────────────────────────────────────────────────────────────────────

    @rule(cleanly=st.booleans())
    def stop(self, cleanly: bool) -> None:
        if not cleanly:
            self._kill()
            return
        self.given.stop()
        self.given = Transacting(self.given.root, self.clock, CONFIG)
        assert self.given.transactions.log.half_offset == self.position

    def _kill(self) -> None:
        """What the page cache has survives, and the table of offsets as it was saved last."""
        self.kills += 1
        saved = self.folder / str(self.kills)
        shutil.copytree(self.given.root, saved, ignore=shutil.ignore_patterns("*.tmp"))
        written = {int(number) for body in self.given.ends() for number in body.split(b",") if number}
        self.given.store.close()
        path = saved / "config" / "consumerOffset.json"
        table = CONSUMER_OFFSETS.decode(path.read_bytes()).offsets if path.exists() else {}
        self.position = table.get("RMQ_SYS_TRANS_HALF_TOPIC@CID_RMQ_SYS_TRANS", {}).get(0, 0)
        for each in self.all:
            # Nobody but memory knew that it was rolled back, or where it was given up.
            if each.newest >= self.position and (
                each.state == GIVEN_UP or (each.state == ROLLBACK and each.newest not in written)
            ):
                each.state = OPEN
        self.given = Transacting(saved, self.clock, CONFIG)

    # ── what always holds ────────────────────────────────────────────────────────────────────────────────────────────

    @invariant()
    def delivered_if_and_only_if_committed_and_once(self) -> None:
        delivered = Counter(self.given.delivered())
        for each in self.all:
            assert delivered[each.body] == (each.state == COMMIT), each

    @invariant()
    def asked_in_time_and_not_too_often(self) -> None:
        for each in self.all:
            assert len(each.asked_ms) <= MOST_CHECKS
            quiet_ms = TIMEOUT_MS if each.immunity_ms is None else each.immunity_ms
            assert all(asked_ms - each.born_ms > quiet_ms for asked_ms in each.asked_ms)

    @invariant()
    def operators_see_what_is_open(self) -> None:
        seen = {each.transaction_id for each in self.given.transactions.log.open_transactions()}
        assert seen == {f"U{each.body.decode()}" for each in self.all if self._is_listed(each)}

    def _is_listed(self, each: Transaction) -> bool:
        return each.state == OPEN or (
            # Committed before a kill: the next check finds it in its topic.
            each.state == COMMIT and each.newest >= self.position and not self._knows_end_of(each)
        )

    def _knows_end_of(self, each: Transaction) -> bool:
        return self.given.transactions.log.is_ended(each.newest)

    def teardown(self) -> None:
        self.given.stop()
        shutil.rmtree(self.folder)
