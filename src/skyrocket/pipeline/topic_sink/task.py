"""One task: the rows of a Spark partition, checked, encoded and sent; after a failed attempt only what is missing.

first attempt       remember where the queues end (a fence), then send
any other           read the topic from the fence on; a row whose message is there is not sent again
"""

import asyncio
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.client.core.errors import NoRoute, NotWritable
from skyrocket.client.exactly_once.read_back import ReadBackProducer
from skyrocket.clock import SystemClock
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords, Fence
from skyrocket.pipeline.topic_sink.connection import SinkClient
from skyrocket.pipeline.topic_sink.identity import ID_SIZE, IDS, Ids, Scope
from skyrocket.pipeline.topic_sink.input_columns import InputColumns, InputError
from skyrocket.pipeline.topic_sink.pacing import Pace, paced
from skyrocket.pipeline.topic_sink.queue_senders import QueueSender, QueueSenders
from skyrocket.pipeline.topic_sink.report import TaskReport, TopicReport
from skyrocket.pipeline.topic_sink.requests import ANY_QUEUE, queue_indices, requests
from skyrocket.pipeline.topic_sink.rows import RowNumbers, TopicRows, rows_of_topics
from skyrocket.pipeline.topic_sink.settings import SinkSettings
from skyrocket.pipeline.topic_sink.spreading import Spread, first_turn
from skyrocket.pipeline.topic_sink.stored_ids import StoredIds, stored_ids
from skyrocket.pipeline.topic_sink.timed_rows import TimedRows

_CLOCKS_DIFFER_MS: Final = 600_000  # at most, between the driver and the brokers


@dataclass(frozen=True, slots=True)
class Origin:
    """Which write a task is part of; equal for all its tasks."""

    run: str  # one life of the write: a restarted batch is another run of the same batch
    query: str
    batch: str
    began_ms: int
    ends: dict[MessageQueue, int] | None = None  # where queues ended when a batch write began


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which of its tasks, for the how many-th time."""

    partition: int
    number: int


class Task:
    """The work of one `write()`."""

    def __init__(
        self,
        connection: SinkClient,
        settings: SinkSettings,
        columns: InputColumns,
        origin: Origin,
        attempt: Attempt,
        records: BatchRecords | None,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._columns = columns
        self._origin = origin
        self._attempt = attempt
        self._records = records
        self._topics: dict[str, TopicOfTask] = {}

    def run(self, batches: "Iterator[pa.RecordBatch]") -> TaskReport:
        """Send all rows and wait for their confirmations; raises InputError, SendError or ReadBackError."""
        report = TaskReport((self._origin.query, self._origin.batch) if self._records is not None else None)
        if self._records is not None and self._records.is_committed(self._origin.batch):
            for _ in batches:  # Spark wants to get rid of them
                continue
            report.was_committed = True
            return report
        run = self._connection.run
        try:
            for batch in paced(batches, self._columns, Pace(SystemClock()), self._drain):
                numbers = RowNumbers(self._attempt.partition, report.messages)
                parts = rows_of_topics(batch, self._columns, self._settings, numbers)
                # All rows of the batch are found good before the first of them is sent.
                planned = [(self._topic(rows.topic), rows) for rows in parts if len(rows)]
                queues = [topic.queues_of(rows) for topic, rows in planned]
                for (topic, rows), indices in zip(planned, queues, strict=True):
                    run(topic.send(rows, indices))
                    report.bytes += pc.sum(pc.binary_length(rows.body)).as_py()
                report.messages += len(batch)
            self._drain()
        except BaseException:
            for topic in self._topics.values():
                run(topic.senders.abandon())
            raise
        for name, topic in self._topics.items():
            report.topics[name] = topic.report()
            report.delayed += topic.timed.count
        return report

    @property
    def topics(self) -> "list[TopicOfTask]":
        """Those that rows were sent to so far."""
        return list(self._topics.values())

    def _drain(self) -> None:
        for topic in self._topics.values():
            self._connection.run(topic.senders.drained())

    def _topic(self, name: str) -> "TopicOfTask":
        name = self._settings.cluster.full(name)
        found = self._topics.get(name)
        if found is None:
            found = self._connection.run(self._opened(name))
            self._topics[name] = found
        return found

    async def _opened(self, name: str) -> "TopicOfTask":
        producer, settings = self._connection.producer, self._settings
        queues = await queues_of(producer, name)
        # Without a scope ids may be any, and nothing is ever compared.
        scope = Scope(self._origin.query, self._origin.batch, name) if settings.is_idempotent else None
        ends = dict.fromkeys(queues, 0)
        begins: dict[MessageQueue, int] = {}
        stored = None
        if scope is not None:
            ends = await ends_of(producer, queues)
            begins, is_repeated = await self._begins(producer, name, ends)
            if is_repeated:
                stored = await stored_ids(producer, scope, begins)
        senders = QueueSenders(
            producer,
            [QueueSender(queue, ends[queue]) for queue in queues],
            scope,
            most_bytes=settings.max_bytes_in_flight,
            send_timeout=settings.send_timeout,
        )
        numbered = scope or Scope(os.urandom(16).hex())
        timed = TimedRows(producer, numbered, self._attempt.partition, settings.send_timeout)
        first = first_turn(f"{self._origin.query} {self._origin.batch} {name}", self._attempt.partition)
        parts = TopicParts(senders, timed, Spread(queues, first))
        return TopicOfTask(parts, scope, stored, begins, self._attempt, settings)

    async def _begins(
        self, producer: ReadBackProducer, topic: str, ends: dict[MessageQueue, int]
    ) -> tuple[dict[MessageQueue, int], bool]:
        """From where on this batch can be in the topic, and whether an earlier attempt may have sent some of it."""
        origin, attempt = self._origin, self._attempt
        if self._records is None:
            if attempt.number == 0:
                return ends, False
            if origin.ends is not None:
                return lowest([origin.ends], ends), True
            since_ms = origin.began_ms - _CLOCKS_DIFFER_MS
            return {queue: await producer.offset_at(queue, since_ms) for queue in ends}, True
        fences = self._records.fences(origin.batch, topic)
        earlier = any(fence.run != origin.run or fence.partition == attempt.partition for fence in fences)
        if not earlier:
            mine = Fence(origin.run, attempt.partition, ends)
            self._records.add_fence(origin.batch, topic, mine)
            return ends, attempt.number > 0
        return lowest([fence.ends for fence in fences], ends), True


def lowest(fences: Sequence[Mapping[MessageQueue, int]], now: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
    """Where to begin to read back. A queue that came later is read from its beginning. One whose broker is away counts
    as well: nobody knows what it has, so reading fails, and nothing is sent twice."""
    queues = {*now, *(queue for fence in fences for queue in fence)}
    return {queue: min(fence.get(queue, 0) for fence in fences) for queue in sorted(queues)}


class TopicParts(NamedTuple):
    """What a task sends the rows of one topic with."""

    senders: QueueSenders
    timed: TimedRows
    spread: Spread


class TopicOfTask:
    """The rows of one topic on their way."""

    def __init__(
        self,
        parts: TopicParts,
        scope: Scope | None,
        stored: StoredIds | None,
        begins: dict[MessageQueue, int],
        attempt: Attempt,
        settings: SinkSettings,
    ) -> None:
        self.senders, self.timed, self._spread = parts
        self._scope = scope
        self._stored = stored
        self._begins = begins
        self._claimed: list[Ids] = []
        self._partition = attempt.partition
        self._most_bytes = settings.max_batch_bytes
        self._queue_ids = [sender.queue.queue_id for sender in self.senders.each]

    def queues_of(self, rows: TopicRows) -> npt.NDArray[np.int64]:
        """The index of each row's queue; raises InputError."""
        return queue_indices(rows, self._queue_ids, self._partition)

    async def send(self, rows: TopicRows, queues: npt.NDArray[np.int64]) -> None:
        """Hand rows over to the senders; waits while these are full."""
        if rows.timed.any():
            later, now = np.flatnonzero(rows.timed), np.flatnonzero(~rows.timed)
            await self._send_timed(rows.take(later), queues[later])
            rows, queues = rows.take(now), queues[now]
        if self._scope is None:
            ids = np.frombuffer(os.urandom(ID_SIZE * len(rows)), IDS)
        else:
            ids = self._scope.ids(rows.contents())
        if self._stored is not None:
            claimed = self._stored.claim(ids)
            self._claimed.append(ids[claimed])
            left = np.flatnonzero(~claimed)
            rows, ids, queues = rows.take(left), ids[left], queues[left]
        for queue, request in requests(rows, ids, self._spread.chosen(queues), self._most_bytes):
            await self.senders.put(self.senders.each[queue], request)

    async def _send_timed(self, rows: TopicRows, indices: npt.NDArray[np.int64]) -> None:
        # A repetition must meet the same queue, so the row's content decides, not whose turn it is.
        spread = np.array([hash_of(content) for content in rows.contents().to_pylist()]) % len(self._queue_ids)
        chosen = np.where(indices == ANY_QUEUE, spread, indices)
        await self.timed.send(rows, [self.senders.each[int(index)].queue for index in chosen])

    def report(self) -> TopicReport:
        claims = [*self._claimed, *(ids for sender in self.senders.each for ids in sender.claimed)]
        return TopicReport(
            {sender.queue: sender.runs for sender in self.senders.each if sender.runs},
            b"".join(ids.tobytes() for ids in claims),
            self._begins,
        )


def hash_of(content: bytes) -> int:
    """A hash that is equal in every process, unlike Python's own."""
    return zlib.crc32(content)


async def queues_of(producer: ReadBackProducer, topic: str) -> list[MessageQueue]:
    """The writable queues of a topic that exists; raises InputError."""
    try:
        return await producer.existing_queues(topic)
    except NotWritable as error:
        raise InputError(str(error)) from error
    except NoRoute as error:
        raise InputError(
            f"topic {topic} does not exist (name server {error.name_servers} knows no broker for it), and the sink "
            f"makes no topics: check the name, or create it with Admin.create_topic({topic!r}) or mqadmin updateTopic"
        ) from error


async def ends_of(producer: ReadBackProducer, queues: list[MessageQueue]) -> dict[MessageQueue, int]:
    """Where queues end now."""
    return dict(zip(queues, await asyncio.gather(*map(producer.end_of, queues)), strict=True))


async def existing_ends(producer: ReadBackProducer, topic: str) -> dict[MessageQueue, int]:
    """Where the queues of a topic end now; raises InputError for a topic that does not exist."""
    return await ends_of(producer, await queues_of(producer, topic))
