"""The sink's tasks as Spark would run them, without Spark: partitions, attempts, runs and commits are at hand."""

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from skyrocket.pipeline.topic_sink.batch_records import BatchRecords
from skyrocket.pipeline.topic_sink.connection import SinkClient
from skyrocket.pipeline.topic_sink.input_columns import InputColumns
from skyrocket.pipeline.topic_sink.report import TaskReport
from skyrocket.pipeline.topic_sink.settings import SinkSettings, sink_settings
from skyrocket.pipeline.topic_sink.task import Attempt, Origin, Task
from skyrocket.pipeline.topic_sink.writers import commit_batch, task_for
from skyrocket.testing import LocalCluster

QUERY = "query"


class Died(Exception):
    """The task ended in the middle."""


class Sink:
    """One query; `run` is its life since the last start."""

    def __init__(
        self,
        mq: LocalCluster | str,
        location: str,
        *,
        topic: str = "Orders",
        connection: SinkClient | None = None,
        **options: str,
    ) -> None:
        name_servers = mq if isinstance(mq, str) else mq.client_settings.name_servers
        assert isinstance(name_servers, str)
        given = {"namesrvAddr": name_servers, "topic": topic, "checkpointLocation": location, **options}
        self.settings: SinkSettings = sink_settings(given, is_stream=True)
        self.connection = connection or _opened(self.settings)
        self.location = location
        self.run = uuid.uuid4().hex

    def start_again(self) -> None:
        """The driver died, and another one begins."""
        self.run = uuid.uuid4().hex

    def task(
        self,
        rows: Sequence[Any],
        *,
        partition: int = 0,
        attempt: int = 0,
        batch: int = 0,
        dies_after: int | None = None,
        rows_per_batch: int = 10,
        before_row: Callable[[int], None] = lambda _: None,
    ) -> TaskReport:
        """Send rows (texts, or dicts of columns); raises Died after so many, confirmed by the broker."""
        keeps = self.settings.is_idempotent or self.settings.is_exactly_once
        records = BatchRecords(self.location, QUERY) if keeps else None
        origin = Origin(self.run, QUERY, str(batch), 0)
        columns = {"body"} | {name for row in rows if isinstance(row, dict) for name in row}
        names = InputColumns({name: name for name in columns})
        work = task_for(self.connection, self.settings, names, origin, Attempt(partition, attempt), records)

        def batches() -> Iterator[pa.RecordBatch]:
            given = [row if isinstance(row, dict) else {"body": row} for row in rows]
            most = len(given) if dies_after is None else dies_after
            for at in range(0, most, rows_per_batch):
                before_row(at)
                yield pa.RecordBatch.from_pylist(given[at : min(at + rows_per_batch, most)], _schema(columns))
            if dies_after is not None:
                for topic in work.topics if isinstance(work, Task) else ():
                    self.connection.run(topic.senders.drained())
                raise Died

        return work.run(batches())

    def commit(self, *reports: TaskReport, batch: int = 0, leaves_record: bool = True) -> None:
        """As the driver does; without a record it died just before it."""
        if not leaves_record:
            reports = tuple(replace(report, batch=None) for report in reports)
        commit_batch(self.settings, QUERY, str(batch), reports)


_connections: list[SinkClient] = []


def _opened(settings: SinkSettings) -> SinkClient:
    _connections.append(SinkClient(settings))
    return _connections[-1]


def close_connections() -> None:
    """Those of all sinks, while their cluster still runs."""
    while _connections:
        _connections.pop().close()


def _schema(columns: set[str]) -> pa.Schema:
    kinds = {"body": pa.string(), "shardingKey": pa.string(), "deliverTimestamp": pa.int64(), "queueId": pa.int32()}
    kinds["sendAfter"] = pa.int64()
    return pa.schema([(name, kinds.get(name, pa.string())) for name in sorted(columns)])


def bodies(mq: LocalCluster, topic: str = "Orders") -> Counter[str]:
    """How often each body is stored."""
    return Counter(message.body.decode() for message in mq.messages(topic))
