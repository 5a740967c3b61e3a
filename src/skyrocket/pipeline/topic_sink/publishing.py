"""deliveryGuarantee=exactly-once, the driver's half: when all tasks have ended, decide, then send what they put aside.

    decide     write down which files count, and where the queues end now; nothing of the batch is in a topic before
    publish    send them, queue by queue in order
    record     the batch is committed; the files go

The decision is the commit: before it nothing was seen, after it everything will be. Whoever comes to the batch again
finds it, reads the topics from those ends on, and sends only what is missing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from skyrocket.client.exactly_once.read_back import ReadBackProducer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords, Decision
from skyrocket.pipeline.topic_sink.connection import SinkClient
from skyrocket.pipeline.topic_sink.identity import Scope
from skyrocket.pipeline.topic_sink.outbox import staged_requests
from skyrocket.pipeline.topic_sink.queue_senders import QueueSender, QueueSenders, SendError
from skyrocket.pipeline.topic_sink.report import TaskReport, TopicReport, summary
from skyrocket.pipeline.topic_sink.settings import SinkSettings
from skyrocket.pipeline.topic_sink.stored_ids import StoredIds, stored_ids
from skyrocket.pipeline.topic_sink.task import existing_ends


@dataclass(frozen=True, slots=True)
class BatchName:
    """Which batch of which query."""

    query: str
    batch: str


def publish(
    connection: SinkClient,
    settings: SinkSettings,
    records: BatchRecords,
    name: BatchName,
    reports: Sequence[TaskReport],
) -> dict[str, Any]:
    """Decide, unless somebody has, and send; returns what is known then. Raises SendError or ReadBackError."""
    decision = records.decision(name.batch)
    is_repeated = decision is not None
    if decision is None:
        files = [file for report in reports for file in report.staged]
        topics = sorted({topic for file in files for topic in file.topics})
        ends = [connection.run(existing_ends(connection.producer, topic)) for topic in topics]
        decision = Decision([file.name for file in files], sum(file.messages for file in files), _merged(ends))
        decision.bytes = sum(file.bytes for file in files)
        records.decide(name.batch, decision)
    published = connection.run(_Publishing(connection.producer, settings, decision, name).run(records, is_repeated))
    told = summary([TaskReport(messages=decision.messages, bytes=decision.bytes)], published, 0)
    return {**told, "foundStored": decision.messages - _confirmed(published) if is_repeated else 0}


def _merged(ends: Iterable[dict[MessageQueue, int]]) -> dict[MessageQueue, int]:
    return {queue: end for of_topic in ends for queue, end in of_topic.items()}


def _confirmed(published: dict[str, TopicReport]) -> int:
    return sum(count for topic in published.values() for runs in topic.runs.values() for _, count in runs)


class _Publishing:
    """The files of one decision on their way."""

    def __init__(self, producer: ReadBackProducer, settings: SinkSettings, decision: Decision, name: BatchName) -> None:
        self._producer = producer
        self._settings = settings
        self._decision = decision
        self._name = name
        self._senders: dict[str, QueueSenders] = {}
        self._by_queue: dict[MessageQueue, QueueSender] = {}
        self._stored: dict[str, StoredIds] = {}

    async def run(self, records: BatchRecords, is_repeated: bool) -> dict[str, TopicReport]:
        """Send everything that is not there, and wait for the confirmations."""
        for topic in sorted({queue.topic for queue in self._decision.ends}):
            await self._open(topic, is_repeated)
        try:
            for file in self._decision.files:
                for queue, request in staged_requests(records, file):
                    if queue.topic in self._stored:
                        request = request.without(self._stored[queue.topic].claim(request.ids))
                    if len(request):
                        await self._senders[queue.topic].put(self._sender(queue), request)
            for senders in self._senders.values():
                await senders.drained()
        except BaseException:
            for senders in self._senders.values():
                await senders.abandon()
            raise
        return {
            topic: TopicReport({sender.queue: sender.runs for sender in senders.each if sender.runs})
            for topic, senders in self._senders.items()
        }

    async def _open(self, topic: str, is_repeated: bool) -> None:
        begins = {queue: end for queue, end in self._decision.ends.items() if queue.topic == topic}
        scope = Scope(self._name.query, self._name.batch, topic)
        if is_repeated:
            self._stored[topic] = await stored_ids(self._producer, scope, begins)
        each = [QueueSender(queue, begin) for queue, begin in begins.items()]
        self._by_queue.update((sender.queue, sender) for sender in each)
        settings = self._settings
        self._senders[topic] = QueueSenders(
            self._producer,
            each,
            scope,
            most_bytes=settings.max_bytes_in_flight,
            send_timeout=settings.send_timeout,
        )

    def _sender(self, queue: MessageQueue) -> QueueSender:
        found = self._by_queue.get(queue)
        if found is None:
            raise SendError(
                f"rows were put aside for {queue}, which the topic had no more when the batch was decided: bring its "
                "broker back, or give the topic as many queues as it had; the batch is sent then"
            )
        return found
