"""Gives messages that were popped and not acknowledged in time to the group again, by way of its retry topic.

    revive log, one queue at a time
      ck           a check point is read: its messages may be handed out again at its revive time
      ack, bAck    bits of a check point that was read before
    all that is due by a check point's revive time has been read        two seconds later, and the timer is not behind
      ▼  for every message without a bit
    %RETRY%group_topic, consumed once more often
      ▼
    offset of CID_RMQ_SYS_REVIVE_GROUP: everything up to and including it is done

What was read and is not done stays in memory and is read again after a restart. A message that was put and whose offset
was not saved comes again after a kill; none is lost.

A slave that acts as master puts check points and retries elsewhere (`rules.special_services`). So a check point may
name another broker: its message is fetched from there first, and hidden again while nobody there answers.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from skyrocket.broker.pop.foreign_records import ForeignRecords
from skyrocket.broker.pop.pop_reader import split_records
from skyrocket.broker.pop.revive_log import AHEAD_MS, ReviveLog
from skyrocket.broker.rules.put_rules import PutRules, with_replaced
from skyrocket.broker.rules.special_services import OtherBrokers, Puts, put_elsewhere, put_here
from skyrocket.broker.rules.stored_copy import stored_copy
from skyrocket.broker.state.live_settings import LiveSettings
from skyrocket.broker.state.tables import Tables
from skyrocket.clock import ServiceClock
from skyrocket.errors import DataError, StoreError
from skyrocket.format.properties import MAX_BYTES, find_property, whole_number
from skyrocket.format.property_bytes import ORIGIN_GROUP
from skyrocket.format.record import decode_record
from skyrocket.format.revive_log import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CHECK_POINT_TAG,
    CheckPoint,
    CheckPointKey,
    decode_acknowledgement,
    decode_check_point,
)
from skyrocket.model import property_names as names
from skyrocket.model.pop_retry import is_ambiguous, normal_topic, pop_retry_topic
from skyrocket.protocol.errors import RequestError
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import NEVER_TAKEN, GetStatus, PutResult

_logger = logging.getLogger(__name__)

REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"
SLACK_MS: Final = 2000  # acknowledgements arrive at the revive time, or a little later
QUIET_MS: Final = 3000  # after so long without news the clock itself tells how far the revive log is
REST_SECONDS: Final = 10.0  # after an error that nobody expected
MAX_POINTS: Final = 10_000  # of one queue that is stuck
MAX_EARLY: Final = 1000
READ_AT_ONCE: Final = 256  # messages of one queue in one step, so that the event loop is not held up
# By how much longer a message is hidden that could not be put, by the number of attempts.
AGAIN_SECONDS: Final = (10, 20, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
# A message is refused for good, or only now.


@dataclass(slots=True)
class ReviveQueue:
    """One queue of the revive log: what was read of it and is not done."""

    queue_id: int
    next_offset: int = -1  # to read; -1 before the first look
    end_ms: int = 0  # everything that was due before has been read
    foreign_ms: int = 0  # when something came last from another broker, whose timer may be behind
    points: dict[CheckPointKey, tuple[int, CheckPoint]] = field(default_factory=dict)  # by the offset they stand at
    # Acknowledgements whose check point was not read yet: a timer that is behind lets a late one overtake it.
    early: dict[CheckPointKey, list[int]] = field(default_factory=dict)
    is_stuck: bool = False  # the store does not take what must be revived next
    rests_until: float = 0.0  # monotonic
    counts: Counter[str] = field(default_factory=Counter)  # messages read by tag, revived, refused

    def begin_again(self) -> None:
        """Forget what was read: others have gone on since."""
        self.next_offset, self.end_ms, self.is_stuck = -1, 0, False
        self.points.clear()
        self.early.clear()


class ReviveService:
    """Reads the revive log, and puts what was not acknowledged in time into retry topics."""

    def __init__(
        self,
        store: MessageStore,
        tables: Tables,
        revive_log: ReviveLog,
        broker_host: bytes,
        clock: ServiceClock,
        settings: LiveSettings,
        rules: PutRules,
        broker_name: str = "",
    ) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._offsets = tables.offsets
        self._revive_log = revive_log
        self._broker_host = broker_host
        self._clock = clock
        self._settings = settings
        self._rules = rules
        self.queues = [ReviveQueue(number) for number in range(settings.broker.revive_queues)]
        self.revived: Counter[tuple[str, str]] = Counter()  # messages by group and topic
        self.foreign = ForeignRecords(revive_log.special)
        self._broker_name = broker_name

    async def run(self) -> None:
        """Revive until cancelled."""
        while True:
            now_ms = self._clock.now_ms()
            more = self.revive_once(now_ms)
            if more or await self.foreign.fetch():
                await asyncio.sleep(0)
                continue
            await self._pause(now_ms)

    async def run_acting(self) -> None:
        """Revive to other brokers whenever this one acts as master, until cancelled."""
        special = self._revive_log.special
        while True:
            others = await special.begin()
            with special.at_work():
                for queue in self.queues:
                    queue.begin_again()
                while special.acts:
                    now_ms = self._clock.now_ms()
                    more = [await self._step_elsewhere(queue, now_ms, others) for queue in self.queues]
                    if not any(more) and not await self.foreign.fetch():
                        await self._pause(now_ms)

    async def _pause(self, now_ms: int) -> None:
        await self._clock.sleep_until(self.next_due_ms(now_ms), self._settings.broker.revive_interval_ms / 1000)

    def revive_once(self, now_ms: int) -> bool:
        """One step of every queue; whether there is more to do at once."""
        more = [put_here(self._step(queue, now_ms), self._put) for queue in self.queues]
        return any(more)

    async def _step_elsewhere(self, queue: ReviveQueue, now_ms: int, others: OtherBrokers) -> bool:
        return await put_elsewhere(self._step(queue, now_ms), others)

    def _put(self, messages: Sequence[PutMessage]) -> Sequence[PutResult]:
        if messages[0].topic == self._revive_log.topic:
            return self._revive_log.put(messages)
        self._revive_log.is_ahead_of_disk = True
        return self._store.intake.put_group(list(messages))

    def next_due_ms(self, now_ms: int) -> int | None:
        """When the next message may be revived, as far as check points were read."""
        due = [
            point.revive_time + SLACK_MS + QUIET_MS - AHEAD_MS + 1
            for queue in self.queues
            for _, point in islice(queue.points.values(), 1)
        ]
        return max(min(due), now_ms) if due else None

    def lag(self, queue: ReviveQueue) -> int:
        """How many messages of a queue are not done."""
        return max(self._store.max_offset(self._revive_log.topic, queue.queue_id) - 1 - self._done(queue), 0)

    def latency_ms(self, queue: ReviveQueue, now_ms: int) -> int:
        """By how much the oldest check point of a queue is overdue."""
        first = next(iter(queue.points.values()), None)
        return 0 if first is None else max(now_ms - first[1].revive_time, 0)

    def _done(self, queue: ReviveQueue) -> int:
        committed = self._offsets.committed(REVIVE_GROUP, self._revive_log.topic, queue.queue_id)
        return -1 if committed is None else committed

    # ── one queue ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _step(self, queue: ReviveQueue, now_ms: int) -> Puts[bool]:
        if self._clock.monotonic() < queue.rests_until:
            return False
        try:
            return (yield from self._work(queue, now_ms))
        except (StoreError, DataError):
            _logger.exception("a revive queue failed queue=%d offset=%d", queue.queue_id, queue.next_offset)
            queue.rests_until = self._clock.monotonic() + REST_SECONDS
            return False

    def _work(self, queue: ReviveQueue, now_ms: int) -> Puts[bool]:
        if queue.next_offset < 0:
            queue.next_offset = self._done(queue) + 1
        if queue.is_stuck and len(queue.points) >= MAX_POINTS:
            yield from self._revive_due(queue)  # memory has a bound: read on when the store takes messages again
            return False
        read = self._read(queue)
        quiet_ms = now_ms - max(queue.end_ms, queue.foreign_ms)
        if not read and queue.points and quiet_ms > QUIET_MS and not self._rules.timers.is_behind:
            queue.end_ms = now_ms
        yield from self._revive_due(queue)
        return read >= READ_AT_ONCE

    def _read(self, queue: ReviveQueue) -> int:
        topic = self._revive_log.topic
        end = self._store.max_offset(topic, queue.queue_id)
        if queue.next_offset >= end:
            return 0
        result = self._store.get(topic, queue.queue_id, queue.next_offset, READ_AT_ONCE)
        if not result.count:
            if result.status is GetStatus.OFFSET_TOO_SMALL or result.next_offset > queue.next_offset:
                queue.next_offset = result.next_offset  # the log has lost its beginning
                return 1
            return 0
        offsets, records = split_records(result.slices)
        for offset, record in zip(offsets, records, strict=True):
            self._note(queue, offset, record)
        queue.next_offset = result.next_offset
        return len(offsets)

    def _note(self, queue: ReviveQueue, offset: int, record: memoryview) -> None:
        try:
            message = decode_record(record, check_crc=True)
            deliver_ms = whole_number(message.properties.get(names.TIMER_DELIVER_MS, "").encode())
            if deliver_ms is not None:
                queue.end_ms = max(queue.end_ms, deliver_ms)
            tag = message.tags or ""
            queue.counts[tag] += 1
            if tag == CHECK_POINT_TAG:
                point = decode_check_point(message.body)
                if self._is_foreign(point.key):
                    queue.foreign_ms = self._clock.now_ms()
                for queue_offset in queue.early.pop(point.key, ()):
                    point.acknowledge(queue_offset)
                # After a kill the timer may deliver one twice: what was said of the first counts for both.
                queue.points.setdefault(point.key, (offset, point))[1].add(point.distances)
            elif tag in (ACK_TAG, BATCH_ACK_TAG):
                ack = decode_acknowledgement(message.body)
                known = queue.points.get(ack.key)
                if known is None:
                    queue.early.setdefault(ack.key, []).extend(ack.queue_offsets)
                    if len(queue.early) > MAX_EARLY:  # most came too late: their messages have been revived
                        del queue.early[next(iter(queue.early))]
                    return
                for queue_offset in ack.queue_offsets:
                    known[1].acknowledge(queue_offset)
        except DataError as error:
            _logger.error(
                "a message of the revive log cannot be read queue=%d offset=%d reason=%s", queue.queue_id, offset, error
            )

    def _revive_due(self, queue: ReviveQueue) -> Puts[None]:
        """In the order of the log: an offset says that everything before it is done."""
        done = -1
        queue.is_stuck = False
        for key, (offset, point) in list(queue.points.items()):
            if queue.end_ms - point.revive_time <= SLACK_MS:
                break
            if not (yield from self._revive(queue, point)):
                queue.is_stuck = True
                break
            del queue.points[key]
            done = offset
        if not queue.points:
            done = queue.next_offset - 1  # acknowledgements without a check point are of no use to anybody
        if done > self._done(queue):
            self._offsets.commit(REVIVE_GROUP, self._revive_log.topic, queue.queue_id, done)

    # ── one check point ──────────────────────────────────────────────────────────────────────────────────────────────

    def _revive(self, queue: ReviveQueue, point: CheckPoint) -> Puts[bool]:
        """Put what was not acknowledged into the retry topic; False when that must be tried again."""
        offsets = point.unacknowledged()
        topic, group = point.key.topic, point.key.group
        is_foreign = self._is_foreign(point.key)
        is_known = self._topics.find(normal_topic(topic, group)) is not None and self._groups.find(group) is not None
        if not offsets or not (is_known or is_foreign):
            return True
        if is_foreign and not self.foreign.has_all(point.key, offsets):
            return False  # it is being fetched
        for offset in offsets:
            if is_foreign and self.foreign.is_unreachable(point.key, offset):
                is_done = yield from self._hide_again(queue, point, offset)
            else:
                message = self._again(point, offset, is_foreign=is_foreign)
                is_done = message is None or (yield from self._put_again(queue, point, offset, message))
            if not is_done:
                return False
            self.foreign.forget(point.key, offset)
            point.acknowledge(offset)  # its copy counts from now on
        return True

    def _is_foreign(self, key: CheckPointKey) -> bool:
        return bool(self._broker_name) and key.broker_name not in ("", self._broker_name)

    def _put_again(self, queue: ReviveQueue, point: CheckPoint, offset: int, message: PutMessage) -> Puts[bool]:
        topic, group = point.key.topic, point.key.group
        result = (yield [message])[0]
        if result.ok:
            queue.counts["revived"] += 1
            self.revived[group, normal_topic(topic, group)] += 1
        elif result.status in NEVER_TAKEN:
            queue.counts["refused"] += 1
            _logger.error(
                "a popped message could not be revived topic=%s group=%s queue=%d offset=%d reason=%s %s",
                topic,
                group,
                point.key.queue_id,
                offset,
                result.status.value,
                result.remark,
            )
            return (yield from self._hide_again(queue, point, offset))
        return result.ok

    def _again(self, point: CheckPoint, offset: int, *, is_foreign: bool) -> PutMessage | None:
        """The message as it goes to the retry topic; None when it is no longer there."""
        key = point.key
        try:
            record = self.foreign.record(key, offset) if is_foreign else self._own_record(key, offset)
            message = stored_copy(record).message
        except DataError as error:
            _logger.warning(
                "a popped message cannot be revived topic=%s group=%s queue=%d offset=%d reason=%s",
                key.topic,
                key.group,
                key.queue_id,
                offset,
                error,
            )
            return None
        properties = with_replaced(message.properties, ORIGIN_GROUP, key.group.encode())
        if message.reconsume_times == 0 or find_property(properties, b"1ST_POP_TIME") is None:
            properties = with_replaced(properties, b"1ST_POP_TIME", b"%d" % key.pop_time)
        if len(properties) <= MAX_BYTES:  # better without these than not at all
            message.properties = properties
        message.reconsume_times += 1
        message.born_host = self._broker_host
        message.topic, message.queue_id = self._retry_place(key)
        return message

    def _own_record(self, key: CheckPointKey, offset: int) -> memoryview:
        result = self._store.get(key.topic, key.queue_id, offset, 1)
        if not result.count:
            raise DataError(f"the queue has no such message: {result.status.value}")
        return result.slices[0]

    def _retry_place(self, key: CheckPointKey) -> tuple[str, int]:
        settings = self._settings.broker
        v2 = settings.pop_retry_v2 or is_ambiguous(
            key.group, key.topic, lambda name: self._groups.find(name) is not None
        )
        name = pop_retry_topic(key.group, key.topic, v2=v2)
        queues = 1
        if settings.pop_separate_retry_queues:
            origin = self._topics.find(normal_topic(key.topic, key.group))
            queues = origin.write_queues if origin is not None else 1
        config = self._topics.ensure(name, max(queues, 1))
        if config.write_queues < queues:
            config = replace(config, read_queues=queues, write_queues=queues)
            self._topics.update(config)
        for queue_id in range(config.read_queues):
            if self._offsets.committed(key.group, name, queue_id) is None:
                self._offsets.commit(key.group, name, queue_id, 0)
        keeps_queue = settings.pop_separate_retry_queues and key.queue_id < config.write_queues
        return name, key.queue_id if keeps_queue else 0

    def _hide_again(self, queue: ReviveQueue, point: CheckPoint, offset: int) -> Puts[bool]:
        """A check point of its own for a message that the store does not take, to be tried later."""
        attempt = point.put_again or 0
        if attempt >= len(AGAIN_SECONDS) and self._settings.broker.pop_drops_unrevivable:
            return True
        longer_ms = AGAIN_SECONDS[min(attempt, len(AGAIN_SECONDS) - 1)] * 1000
        key = point.key._replace(start_offset=offset)
        single = CheckPoint(key, point.invisible_ms + longer_ms, (0,), put_again=attempt + 1)
        try:
            return (yield [self._revive_log.check_point(single, queue.queue_id)])[0].ok
        except RequestError as error:
            _logger.error("a check point was refused reason=%s", error)
            return False
