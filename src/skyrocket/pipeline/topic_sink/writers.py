"""The two classes that Spark calls: for df.write and for df.writeStream. They travel, so they hold values only.

`commit` runs once on the driver when all tasks have ended: it settles claims (settlement.py), or with exactly-once
sends what tasks have put aside (publishing.py), and writes the record. `abort` does nothing: it may run while tasks are
still sending, and what was sent cannot be taken back.
"""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from skyrocket.clock import SystemClock
from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.task_process import spare_loaded_objects
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords
from skyrocket.pipeline.topic_sink.connection import SinkClient, connection
from skyrocket.pipeline.topic_sink.identity import Scope
from skyrocket.pipeline.topic_sink.input_columns import InputColumns
from skyrocket.pipeline.topic_sink.outbox import StagingTask, refuse_times
from skyrocket.pipeline.topic_sink.publishing import BatchName, publish
from skyrocket.pipeline.topic_sink.report import TaskReport, joined, summary
from skyrocket.pipeline.topic_sink.settings import SinkSettings
from skyrocket.pipeline.topic_sink.settlement import Batch, settle
from skyrocket.pipeline.topic_sink.task import Attempt, Origin, Task, existing_ends

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger(__name__)

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"
_JOBS = "jobs"  # stands for the query of batch writes; each namespace has its own


class TopicWriter(DataSourceArrowWriter):
    """df.write: made when the write begins, which is where its queues' ends are taken."""

    def __init__(self, settings: SinkSettings, columns: InputColumns) -> None:
        refuse_times(settings, columns)
        self._settings = settings
        self._columns = columns
        run = uuid.uuid4().hex
        ends = None
        if settings.topic is not None:
            opened = connection(settings)
            ends = opened.run(existing_ends(opened.producer, settings.topic))
        jobs = settings.cluster.full(_JOBS)
        self._origin = Origin(run, jobs, settings.job_id or run, SystemClock().now_ms(), ends)

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Send the rows of one task."""
        records = BatchRecords(self._settings.location, self._origin.query) if self._settings.location else None
        return _write(self._settings, self._columns, self._origin, records, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """All tasks have ended: settle claims, write the record."""
        commit_batch(self._settings, self._origin.query, self._origin.batch, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """What was sent stays sent."""
        _log_abort(messages)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """df.writeStream: made anew for each micro-batch, whose number only tasks and `commit` are told."""

    def __init__(self, settings: SinkSettings, columns: InputColumns) -> None:
        refuse_times(settings, columns)
        self._settings = settings
        self._columns = columns
        self._run = uuid.uuid4().hex
        self._began_ms = SystemClock().now_ms()

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> WriterCommitMessage:
        """Send the rows of one task of a micro-batch."""
        context = _context()
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if not query or not batch:
            raise SkyrocketError("Spark does not tell which micro-batch this is: is the sink used outside a query?")
        origin = Origin(self._run, query, batch, self._began_ms)
        keeps_records = self._settings.is_idempotent or self._settings.is_exactly_once
        records = BatchRecords(self._settings.location, query) if keeps_records else None
        return _write(self._settings, self._columns, origin, records, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """All tasks of a micro-batch have ended: settle claims, write the record."""
        reports = [message for message in messages if isinstance(message, TaskReport)]
        query = next((report.batch[0] for report in reports if report.batch is not None), "")
        commit_batch(self._settings, query, str(batchId), messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """What was sent stays sent; the batch comes again."""
        _log_abort(messages)


def _write(
    settings: SinkSettings,
    columns: InputColumns,
    origin: Origin,
    records: BatchRecords | None,
    batches: "Iterator[pa.RecordBatch]",
) -> TaskReport:
    context = _context()
    attempt = Attempt(context.partitionId(), context.attemptNumber())
    try:
        return task_for(connection(settings), settings, columns, origin, attempt, records).run(batches)
    finally:
        spare_loaded_objects()


def task_for(
    opened: SinkClient,
    settings: SinkSettings,
    columns: InputColumns,
    origin: Origin,
    attempt: Attempt,
    records: BatchRecords | None,
) -> Task | StagingTask:
    """Who does the work of one `write()`: sends, or puts aside what the driver will send."""
    if settings.is_exactly_once:
        assert records is not None, "settings without a place for records are refused"
        return StagingTask(opened, settings, columns, origin, attempt, records)
    return Task(opened, settings, columns, origin, attempt, records)


def commit_batch(
    settings: SinkSettings, query: str, batch: str, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """What the driver does when all tasks have ended."""
    reports = [message for message in messages if isinstance(message, TaskReport)]
    if not reports or any(report.was_committed for report in reports):
        return
    if settings.is_exactly_once:
        _publish(settings, BatchName(query, batch), reports)
        return
    topics = joined(reports)
    copies = 0
    for name, topic in topics.items():
        if topic.claimed:
            opened = connection(settings)
            known = Batch(Scope(query, batch, name), topic.begins, topic.claimed_ids(), topic.runs)
            copies += opened.run(settle(opened.producer, known, settings.send_timeout))
    told = summary(reports, topics, copies)
    if reports[0].batch is not None:
        BatchRecords(settings.location, query).commit(batch, told)
    _log_sent(query, batch, told)


def _publish(settings: SinkSettings, name: BatchName, reports: list[TaskReport]) -> None:
    records = BatchRecords(settings.location, name.query)
    told = publish(connection(settings), settings, records, name, reports)
    records.commit(name.batch, told)
    _log_sent(name.query, name.batch, told)


def _log_sent(query: str, batch: str, told: Mapping[str, Any]) -> None:
    _logger.info(
        "rows were sent query=%s batch=%s messages=%d bytes=%d queues=%d most=%d least=%d",
        *(query, batch, told["messages"], told["bytes"]),
        *(len(told["queues"]), told["mostOfAQueue"], told["leastOfAQueue"]),
    )


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() is called by Spark, inside a task"
    return context


def _log_abort(messages: Sequence[WriterCommitMessage | None]) -> None:
    ended = sum(message is not None for message in messages)
    _logger.warning("a write was given up; what was sent stays tasks=%d ended=%d", len(messages), ended)
