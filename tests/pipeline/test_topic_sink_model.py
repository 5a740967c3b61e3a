"""The sink against any history: tasks die, answers are lost, drivers die, partitions are cut anew, rows are equal."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyrocket.client.core.errors import Attempt, SendFailed
from skyrocket.client.exactly_once.read_back import Page
from skyrocket.format.batch import decode_batch
from skyrocket.format.properties import decode_properties
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink import queue_senders, stored_ids, writers
from skyrocket.pipeline.topic_sink.connection import SinkClient
from skyrocket.remoting.errors import ConnectionLost
from tests.pipeline.sink_tasks import Died, Sink

T = TypeVar("T")
QUEUES = [MessageQueue("Orders", broker, number) for broker in ("broker-a", "broker-b") for number in range(2)]


class Stored:
    """A message as far as the sink looks at it."""

    def __init__(self, body: bytes, properties: dict[str, str], offset: int) -> None:
        self.body = body
        self.properties = properties
        self.queue_offset = offset
        self.flag = 0


class TopicInMemory:
    """Queues that lose answers, or whole requests, as `faults` say."""

    def __init__(self, faults: list[str]) -> None:
        self.queues: dict[MessageQueue, list[Stored]] = {queue: [] for queue in QUEUES}
        self._faults = faults

    async def existing_queues(self, topic: str) -> list[MessageQueue]:
        return QUEUES

    async def end_of(self, queue: MessageQueue) -> int:
        return len(self.queues[queue])

    async def page(self, queue: MessageQueue, offset: int) -> Page:
        found = self.queues[queue][offset : offset + 3]
        return Page(cast(Any, found), offset + len(found))

    async def send_encoded(self, queue: MessageQueue, body: bytes, *, timeout: float) -> Any:
        fault = self._faults.pop() if self._faults else "none"
        log = self.queues[queue]
        first = len(log)
        if fault != "request lost":
            for element in decode_batch(body):
                log.append(Stored(element.body, decode_properties(element.properties), len(log)))
        if fault != "none":
            lost = Attempt(queue.broker_name, "address", 0.1, ConnectionLost("address", fault))
            raise SendFailed("Orders", [lost], 0.1)
        return Stored(b"", {}, first)

    def bodies(self) -> Counter[str]:
        return Counter(message.body.decode() for log in self.queues.values() for message in log)


class InMemory:
    """Stands for the connection of a process."""

    def __init__(self, topic: TopicInMemory, loop: asyncio.AbstractEventLoop) -> None:
        self.producer = topic
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_ids, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(queue_senders, "_FIRST_PAUSE", 0.0)


ROWS = st.lists(st.sampled_from(["same", "equal", "a", "b", "c", "d", "e"]), min_size=1, max_size=14)
FAULTS = st.lists(st.sampled_from(["none", "none", "answer lost", "request lost"]), max_size=12)
DEATHS = st.lists(st.none() | st.integers(0, 6), min_size=3, max_size=3)  # of each partition's first attempt
RUN = st.tuples(st.integers(1, 3), st.randoms(use_true_random=False), DEATHS, st.sampled_from(["tasks", "commit"]))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, FAULTS, st.lists(RUN, min_size=1, max_size=3))
def test_whatever_happens_each_row_is_stored_once(
    monkeypatch: pytest.MonkeyPatch, rows: list[str], faults: list[str], runs: list[Any]
) -> None:
    """Every run but the last dies: in its tasks, or between the sink's copies and its record."""
    topic = TopicInMemory(list(faults))
    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner:
        connection = cast(SinkClient, InMemory(topic, runner.get_loop()))
        monkeypatch.setattr(writers, "connection", lambda _: connection)
        sink = Sink("127.0.0.1:1", place, connection=connection, maxBatchBytes="150")
        for number, (partitions, random, deaths, end) in enumerate(runs):
            is_last = number == len(runs) - 1
            sink.start_again()
            parts: list[list[str]] = [[] for _ in range(partitions)]
            for row in rows:
                parts[random.randrange(partitions)].append(row)
            reports = []
            for partition, part in enumerate(parts):
                death = deaths[partition]
                if death is not None and death < len(part):
                    with pytest.raises(Died):
                        sink.task(part, partition=partition, dies_after=death, rows_per_batch=2)
                    if not is_last and end == "tasks":
                        break
                    reports.append(sink.task(part, partition=partition, attempt=1, rows_per_batch=2))
                else:
                    reports.append(sink.task(part, partition=partition, rows_per_batch=2))
            if is_last:
                sink.commit(*reports)
            elif end == "commit" and len(reports) == partitions:
                sink.commit(*reports, leaves_record=False)
    assert topic.bodies() == Counter(rows)
