"""deliveryGuarantee=exactly-once, the tasks' half: rows are not sent but put aside, as requests ready to be sent.

    <location>/rocketmq-sink/<query>/
        <batch>.<run>.<partition>.<attempt>.staged      what one attempt of a task would send
        <batch>.decided                                 which of these count, and where the queues ended before
        <batch>.committed                               all of it is in the topics

A task that dies, that is tried again or that Spark runs twice leaves a file more, and the decision does not name it. So
a row needs no content by which it would be known again: its id is its place in its file.
"""

import secrets
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords
from skyrocket.pipeline.topic_sink.connection import SinkClient
from skyrocket.pipeline.topic_sink.identity import IDS, Scope
from skyrocket.pipeline.topic_sink.input_columns import InputColumns, InputError
from skyrocket.pipeline.topic_sink.report import StagedFile, TaskReport
from skyrocket.pipeline.topic_sink.requests import Request, queue_indices, requests
from skyrocket.pipeline.topic_sink.rows import RowNumbers, TopicRows, rows_of_topics
from skyrocket.pipeline.topic_sink.settings import SinkSettings
from skyrocket.pipeline.topic_sink.spreading import Spread, first_turn
from skyrocket.pipeline.topic_sink.task import Attempt, Origin, queues_of

STAGED: Final = pa.schema(
    {
        "topic": pa.string(),
        "broker": pa.string(),
        "queueId": pa.int32(),
        "ids": pa.binary(),
        "ends": pa.binary(),
        "body": pa.binary(),
    }
)


_TIMES: Final = ("delayLevel", "deliverTimestamp", "sendAfter")


def refuse_times(settings: SinkSettings, columns: InputColumns) -> None:
    """Raises InputError for columns that exactly-once cannot keep its promise with."""
    given = [columns.names[name] for name in _TIMES if columns.has(name)] if settings.is_exactly_once else []
    if given:
        raise InputError(
            f'column "{given[0]}" does not go with deliveryGuarantee "exactly-once": rows are sent when the batch is '
            "committed, and brokers do not show what they are to deliver later, so it cannot be read back. Drop it, or "
            'write with "idempotent"'
        )


class OpenTopic(NamedTuple):
    """What a task knows of a topic."""

    scope: Scope
    queues: list[MessageQueue]
    spread: Spread


class StagingTask:
    """The work of one `write()`."""

    def __init__(
        self,
        connection: SinkClient,
        settings: SinkSettings,
        columns: InputColumns,
        origin: Origin,
        attempt: Attempt,
        records: BatchRecords,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._columns = columns
        self._origin = origin
        self._attempt = attempt
        self._records = records
        self._topics: dict[str, OpenTopic] = {}
        place = (origin.batch, origin.run, str(attempt.partition), secrets.token_hex(8))
        self._name = f"{'.'.join(place)}.staged"

    def run(self, batches: "Iterator[pa.RecordBatch]") -> TaskReport:
        """Put all rows aside; nothing is sent. Raises InputError."""
        report = TaskReport((self._origin.query, self._origin.batch))
        report.was_committed = self._records.is_committed(self._origin.batch)
        if report.was_committed or self._records.decision(self._origin.batch) is not None:
            for _ in batches:  # an earlier run has decided what the batch is; Spark wants to get rid of these
                continue
            return report
        first = next(batches, None)
        if first is None:
            return report
        with self._records.written(self._name) as stream, pa.ipc.new_stream(stream, STAGED) as file:
            batch: pa.RecordBatch | None = first
            while batch is not None:
                file.write_batch(self._staged(batch, report))
                batch = next(batches, None)
        report.staged.append(StagedFile(self._name, report.messages, report.bytes, sorted(self._topics)))
        return report

    def _staged(self, batch: "pa.RecordBatch", report: TaskReport) -> "pa.RecordBatch":
        numbers = RowNumbers(self._attempt.partition, report.messages)
        made = []
        for rows in rows_of_topics(batch, self._columns, self._settings, numbers):
            made += self._rows(rows)
            report.bytes += pc.sum(pc.binary_length(rows.body)).as_py() or 0
        report.messages += len(batch)
        return pa.RecordBatch.from_pylist(made, STAGED)

    def _rows(self, rows: TopicRows) -> list[dict[str, object]]:
        name = self._settings.cluster.full(rows.topic)
        topic = self._topics.get(name) or self._opened(name)
        indices = queue_indices(rows, [queue.queue_id for queue in topic.queues], self._attempt.partition)
        ids = topic.scope.ids_of(f"{self._name} {number}".encode() for number in rows.numbers.tolist())
        return [
            {
                "topic": name,
                "broker": topic.queues[index].broker_name,
                "queueId": topic.queues[index].queue_id,
                "ids": request.ids.tobytes(),
                "ends": request.element_ends.astype("<i8").tobytes(),
                "body": bytes(request.body),
            }
            for index, request in requests(rows, ids, topic.spread.chosen(indices), self._settings.max_batch_bytes)
        ]

    def _opened(self, name: str) -> OpenTopic:
        queues = self._connection.run(queues_of(self._connection.producer, name))
        write = f"{self._origin.query} {self._origin.batch} {name}"
        scope = Scope(self._origin.query, self._origin.batch, name)
        self._topics[name] = OpenTopic(scope, queues, Spread(queues, first_turn(write, self._attempt.partition)))
        return self._topics[name]


def staged_requests(records: BatchRecords, name: str) -> Iterator[tuple[MessageQueue, Request]]:
    """What a task has put aside, in its order."""
    with records.opened(name) as stream, pa.ipc.open_stream(stream) as file:
        for batch in file:
            for row in batch.to_pylist():
                request = Request(
                    memoryview(row["body"]), np.frombuffer(row["ids"], IDS), np.frombuffer(row["ends"], "<i8")
                )
                yield MessageQueue(row["topic"], row["broker"], row["queueId"]), request
