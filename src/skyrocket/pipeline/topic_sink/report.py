"""What a task tells the driver: how much it has sent, where it is, and what it found there already."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.identity import ID_SIZE


@dataclass
class TopicReport:
    """What one task has sent to one topic."""

    runs: dict[MessageQueue, list[tuple[int, int]]] = field(default_factory=dict)  # first offset and count
    claimed: bytes = b""  # ids of rows whose message was there, one behind the other
    begins: dict[MessageQueue, int] = field(default_factory=dict)  # where a reader finds all of this batch

    def claimed_ids(self) -> list[bytes]:
        return [self.claimed[at : at + ID_SIZE] for at in range(0, len(self.claimed), ID_SIZE)]


@dataclass(frozen=True)
class StagedFile:
    """What one task has put aside (outbox.py)."""

    name: str
    messages: int
    bytes: int
    topics: list[str]


@dataclass
class TaskReport(WriterCommitMessage):
    """What one task has sent; Spark carries it to the driver."""

    batch: "tuple[str, str] | None" = None  # query and batch, if records of it are kept
    was_committed: bool = False  # an earlier run had finished the batch, so nothing was sent
    messages: int = 0
    bytes: int = 0
    delayed: int = 0  # of the messages: these have no offset yet
    topics: dict[str, TopicReport] = field(default_factory=dict)
    staged: list[StagedFile] = field(default_factory=list)


def joined(reports: Iterable[TaskReport]) -> dict[str, TopicReport]:
    """What all tasks have sent, by topic."""
    topics: dict[str, TopicReport] = {}
    for report in reports:
        for topic, part in report.topics.items():
            whole = topics.setdefault(topic, TopicReport())
            whole.claimed += part.claimed
            for queue, runs in part.runs.items():
                whole.runs.setdefault(queue, []).extend(runs)
            for queue, begin in part.begins.items():
                whole.begins[queue] = min(begin, whole.begins.get(queue, begin))
    return topics


def summary(reports: list[TaskReport], topics: Mapping[str, TopicReport], copies: int) -> dict[str, Any]:
    """A batch in a few figures, for its record and the log."""
    of_queues = [sum(count for _, count in runs) for topic in topics.values() for runs in topic.runs.values()]
    return {
        "messages": sum(report.messages for report in reports),
        "bytes": sum(report.bytes for report in reports),
        "delayed": sum(report.delayed for report in reports),
        "foundStored": sum(len(topic.claimed) // ID_SIZE for topic in topics.values()),
        "copiesAdded": copies,
        "mostOfAQueue": max(of_queues, default=0),
        "leastOfAQueue": min(of_queues, default=0),
        "queues": [
            {
                "topic": queue.topic,
                "broker": queue.broker_name,
                "queueId": queue.queue_id,
                "first": min(first for first, _ in runs),
                "last": max(first + count for first, count in runs) - 1,
                "messages": sum(count for _, count in runs),
            }
            for topic in topics.values()
            for queue, runs in sorted(topic.runs.items())
            if runs
        ],
    }
