"""Asks producers what became of transactions that nobody has ended.

    every `transactionCheckInterval`, over all halves from the oldest open one on:
        ended, or a newer copy is there      passed
        checked `transactionCheckMax` times  given up: TRANS_CHECK_MAX_TIME_TOPIC
        within its own immunity time         a copy behind all others, nobody is asked
        younger than `transactionTimeOut`    the round ends here: what follows is younger still
        all others                           a copy behind all others, and a question to a producer of its group

`check_once` makes a whole round; the service makes it in steps, so that the event loop is not held up. A question that
finds no producer is not kept: the next round asks again, and counts.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from skyrocket.broker.state.connected_producers import ConnectedProducers
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.transactions.half_message import HalfMessage, question
from skyrocket.broker.transactions.transaction_log import PutRefused, TransactionCountTable, TransactionLog
from skyrocket.clock import ServiceClock, ahead_of_wall_ms
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import DataError, StoreError
from skyrocket.protocol.errors import SystemFailure
from skyrocket.remoting.peer import Peer
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import NEVER_TAKEN

_logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.1
STEP_HALVES: Final = 16  # of one step; each is read, copied and sent, and after a start looked up in the index

_HOUR_MS: Final = 3_600_000


@dataclass(slots=True)
class CheckRound:
    """One round: where it ends, and what came of it."""

    began_ms: int
    ahead_ms: int  # of the clocks that producers go by
    end_offset: int
    asked: int = 0
    without_producer: int = 0  # a copy was put, but nobody is there to be asked
    postponed: int = 0  # within their immunity time
    given_up: int = 0
    is_over: bool = False


class TransactionCheck:
    """The check-back service of a broker."""

    def __init__(
        self,
        log: TransactionLog,
        store: MessageStore,
        producers: ConnectedProducers[Peer],
        counts: TransactionCountTable,
        config: BrokerConfig,
        identity: BrokerIdentity,
        clock: ServiceClock,
    ) -> None:
        self._log = log
        self._store = store
        self._producers = producers
        self._counts = counts
        self._config = config
        self._identity = identity
        self._host = identity.store_host
        self._clock = clock
        self.asked = 0  # since the start
        self.without_producer = 0

    def use(self, config: BrokerConfig) -> None:
        """Go by other settings, from the next look on."""
        self._config = config
        self._log.use(config)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Check, and write down what has ended, until cancelled; the first round is one interval after the start."""
        began = saved = self._clock.monotonic()
        while True:
            await self._clock.sleep_until(self._next_round_ms(began), LOOK_SECONDS)
            self._log.write_ended(self._clock.now_ms())
            self._log.settle()
            now = self._clock.monotonic()
            if now - began >= self._config.transaction_check_interval_ms / 1000:
                began = now
                await self._run_round()
            if now - saved >= self._config.flush_transaction_counts_interval_ms / 1000:
                saved = now
                await self._counts.save_beside()

    def _next_round_ms(self, began: float) -> int | None:
        """When halves are looked at next; None while there are none."""
        if self._log.half_offset >= self._log.half_end:
            return None
        passed_ms = round((self._clock.monotonic() - began) * 1000)
        return self._clock.now_ms() + max(0, self._config.transaction_check_interval_ms - passed_ms)

    async def _run_round(self) -> None:
        try:
            work = self.begin(self._clock.now_ms())
            while not work.is_over:
                self.step(work, STEP_HALVES)
                await asyncio.sleep(0)
        except (StoreError, DataError):
            _logger.exception("a round of transaction checks failed offset=%d", self._log.half_offset)

    async def close(self) -> None:
        """Leave nothing that only memory knows; for a broker that stops, before its tables are saved."""
        if self._identity.broker_id != 0:
            return  # what is done about transactions is the master's to say
        self._log.write_ended(self._clock.now_ms(), at_once=True)
        self._log.round_is_over()
        await asyncio.to_thread(self._store.flush)
        self._log.settle()
        await self._counts.save_beside()

    def ask_now(self, half: HalfMessage) -> None:
        """Ask a producer about an open half before its time; raises SystemFailure when none is there, PutRefused."""
        member = self._producers.next_of(half.producer_group)
        if member is None:
            raise SystemFailure(
                f"no producer of group {half.producer_group} is connected: start one, or end the transaction yourself"
            )
        copy = half.checked()
        placed = self._log.put_copy(half, copy)
        header, body = question(half, copy, placed, self._host, self._identity.broker_name)
        if not member.connection.send_oneway(header, body):
            raise SystemFailure(f"the producer {member.client_id} does not take the question now: try again")
        self.asked += 1
        _logger.info("an operator has a transaction checked offset=%d client=%s", half.queue_offset, member.client_id)

    # ── a round ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def check_once(self, now_ms: int) -> CheckRound:
        """A whole round at once."""
        work = self.begin(now_ms)
        while not work.is_over:
            self.step(work, STEP_HALVES)
        return work

    def begin(self, now_ms: int) -> CheckRound:
        """Start a round over what is there now."""
        return CheckRound(now_ms, ahead_of_wall_ms(self._clock), self._log.half_end)

    def step(self, work: CheckRound, most: int) -> None:
        """Look at some halves of a round."""
        try:
            for _ in range(most):
                offset = self._log.half_offset
                if offset >= work.end_offset or not self._is_settled(work, offset):
                    work.is_over = True
                    break
                self._log.pass_to(offset + 1)
        except PutRefused as error:
            _logger.error("a round of transaction checks ends early offset=%d reason=%s", self._log.half_offset, error)
            work.is_over = True
        if work.is_over:
            self._end(work)

    def _end(self, work: CheckRound) -> None:
        self._log.round_is_over()
        self.asked += work.asked
        self.without_producer += work.without_producer
        if work.asked or work.without_producer or work.given_up:
            _logger.info(
                "transactions checked asked=%d without_producer=%d postponed=%d given_up=%d next_offset=%d",
                work.asked,
                work.without_producer,
                work.postponed,
                work.given_up,
                self._log.half_offset,
            )

    def _is_settled(self, work: CheckRound, offset: int) -> bool:
        """Do what is to be done about one half; False when the round ends before it."""
        log, config = self._log, self._config
        if log.is_ended(offset):
            return True
        half = log.half_at(offset)
        if half is None or not log.is_open(half):
            return True
        if log.is_from_before_start(half) and log.is_delivered(half):
            log.end_delivered(half)
            return True
        age_ms = self._age_ms(work, half)
        if half.checks >= config.transaction_check_max or age_ms > self._store.config.file_reserved_hours * _HOUR_MS:
            self._give_up(work, half)
            return True
        if half.store_timestamp >= work.began_ms:
            return False
        immunity_ms = half.immunity_ms(config.transaction_timeout_ms)
        if immunity_ms is not None and age_ms <= immunity_ms:
            return self._postpone(work, half)
        if immunity_ms is None and 0 <= age_ms <= config.transaction_timeout_ms:
            return False
        return self._ask(work, half)

    def _age_ms(self, work: CheckRound, half: HalfMessage) -> int:
        """As RocketMQ by the producer's clock; where the clocks were set back, at least since the half was stored."""
        by_producer_ms = work.began_ms - work.ahead_ms - half.message.born_timestamp
        if not work.ahead_ms:
            return by_producer_ms
        first = half if half.first_queue_offset is None else self._log.half_at(half.first_queue_offset) or half
        return max(by_producer_ms, work.began_ms - first.store_timestamp)

    def _postpone(self, work: CheckRound, half: HalfMessage) -> bool:
        if half.first_queue_offset is not None and self._log.is_ended(half.first_queue_offset):
            return True  # RocketMQ: the producer's word was about the first copy
        return self._move(work, half, asks=False)

    def _ask(self, work: CheckRound, half: HalfMessage) -> bool:
        return self._move(work, half, asks=True)

    def _move(self, work: CheckRound, half: HalfMessage, *, asks: bool) -> bool:
        copy = half.checked() if asks else half.passed_over()
        try:
            placed = self._log.put_copy(half, copy)
        except PutRefused as error:
            if error.result.status not in NEVER_TAKEN:
                raise
            # Its properties fill the record to the brim: with a counter it can never be stored.
            _logger.error("a half message cannot be checked offset=%d reason=%s", half.queue_offset, error)
            self._give_up(work, half)
            return True
        if not asks:
            work.postponed += 1
            return True
        member = self._producers.next_of(half.producer_group)
        header, body = question(half, copy, placed, self._host, self._identity.broker_name)
        if member is not None and member.connection.send_oneway(header, body):
            work.asked += 1
        else:
            work.without_producer += 1
        return True

    def _give_up(self, work: CheckRound, half: HalfMessage) -> None:
        self._log.give_up(half)
        work.given_up += 1
        _logger.warning(
            "a transaction is given up topic=%s group=%s transaction=%s checks=%d",
            half.real_topic,
            half.producer_group,
            half.unique_key.decode("utf-8", "replace"),
            half.checks,
        )
