"""What is stored when tasks die, batches come again, partitions are cut otherwise and brokers go away."""

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from skyrocket.client import Acl, Admin, SendReceipt
from skyrocket.client.exactly_once.read_back import ReadBackProducer
from skyrocket.client.sending.queue_selector import index_by_hash
from skyrocket.client.sending.retrying_sender import RetryingSender
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink import stored_ids
from skyrocket.pipeline.topic_sink.input_columns import InputError
from skyrocket.pipeline.topic_sink.queue_senders import QueueSender, QueueSenders, SendError
from skyrocket.pipeline.topic_sink.requests import Request
from skyrocket.pipeline.topic_sink.settlement import Copy, missing
from skyrocket.pipeline.topic_sink.stored_ids import ReadBackError
from skyrocket.remoting.errors import ConnectionLost
from skyrocket.testing import LocalCluster
from tests.cluster.broker.access_fixture import ACCOUNTS, ADMIN_ACCOUNT, ALICE_ACCOUNT, WITH_ACCOUNTS
from tests.cluster.servers import cluster
from tests.pipeline.sink_tasks import Died, Sink, bodies, close_connections


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers in this process show a message as soon as they confirm it."""
    monkeypatch.setattr(stored_ids, "SETTLE_SECONDS", 0.0)


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def orders(rocketmq: LocalCluster) -> Iterator[LocalCluster]:
    rocketmq.create_topic("Orders", queues=4)
    yield rocketmq
    close_connections()


def numbered(count: int, begin: int = 0) -> list[str]:
    return [f"row {number}" for number in range(begin, begin + count)]


def once(*rows: str) -> Counter[str]:
    return Counter(rows)


@pytest.mark.parametrize("guarantee", ["idempotent", "at-least-once"])
def test_a_task_that_is_tried_again_sends_only_what_is_missing(
    orders: LocalCluster, place: str, guarantee: str
) -> None:
    sink = Sink(orders, place, deliveryGuarantee=guarantee)
    rows = numbered(100)
    with pytest.raises(Died):
        sink.task(rows, dies_after=37)
    assert bodies(orders) == once(*rows[:37])
    report = sink.task(rows, attempt=1)
    sink.commit(report)
    copies = 1 if guarantee == "idempotent" else 2
    assert bodies(orders) == once(*rows[:37] * copies, *rows[37:])
    assert report.messages == 100


def test_a_batch_that_comes_again_in_other_partitions_is_stored_once(orders: LocalCluster, place: str) -> None:
    rows = numbered(120)
    sink = Sink(orders, place)
    sink.task(rows[:60], partition=0)
    with pytest.raises(Died):
        sink.task(rows[60:], partition=1, dies_after=20)
    sink.start_again()
    random.Random(7).shuffle(rows)
    reports = [sink.task(rows[part::3], partition=part) for part in range(3)]
    sink.commit(*reports)
    assert bodies(orders) == once(*rows)
    record = json.loads(next(Path(place).rglob("0.committed")).read_text())
    assert (record["messages"], record["foundStored"], record["copiesAdded"]) == (120, 80, 0)
    assert sum(queue["messages"] for queue in record["queues"]) == 40
    assert not list(Path(place).rglob("*.fence"))


def test_a_committed_batch_is_sent_nothing_of_again(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place)
    rows = numbered(30)
    sink.commit(sink.task(rows))
    sink.start_again()  # the driver died before Spark wrote down that the batch is done
    report = sink.task(["something else, as if it were not the same"], partition=5)
    sink.commit(report)
    assert report.was_committed
    assert bodies(orders) == once(*rows)
    sink.commit(sink.task(rows, batch=1), batch=1)  # the next one may have equal rows
    assert bodies(orders) == once(*rows, *rows)


def test_equal_rows_are_all_stored_although_their_ids_are_equal(orders: LocalCluster, place: str) -> None:
    """The first attempt of partition 1 sends nothing; tried again, it finds partition 0's messages."""
    sink = Sink(orders, place)
    first = sink.task(["same"] * 3 + ["mine"], partition=0)
    with pytest.raises(Died):
        sink.task(["same"] * 2, partition=1, dies_after=1)
    second = sink.task(["same"] * 2, partition=1, attempt=1)
    sink.commit(first, second)
    assert bodies(orders) == {"same": 5, "mine": 1}
    ids = {message.message_id for message in orders.messages("Orders") if message.body == b"same"}
    assert len({key[:20] + key[28:] for key in ids}) == 1


def test_equal_rows_after_a_restart_with_other_partitions(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place)
    sink.task(["same", "same", "a"], partition=0)
    sink.start_again()
    parts = [["same"], ["same", "a"], ["same", "same", "b"]]
    sink.commit(*(sink.task(part, partition=number) for number, part in enumerate(parts)))
    assert bodies(orders) == {"same": 4, "a": 1, "b": 1}
    properties = [message.properties for message in orders.messages("Orders") if message.body == b"same"]
    assert len({len(each) for each in properties}) == 1, "a copy has what the others have"


QUEUE = MessageQueue("Orders", "broker-a", 0)


@pytest.mark.parametrize(
    ("claimed", "copies", "runs", "lacking"),
    [
        ([], [], [], {}),
        ([b"a"], [(b"a", 0)], [], {}),
        ([b"a", b"a"], [(b"a", 0)], [], {b"a": 1}),
        ([b"a"], [(b"a", 0)], [(0, 1)], {b"a": 1}),  # one was confirmed to one task, and claimed by another
        ([b"a"], [(b"a", 0), (b"a", 1)], [(0, 1)], {}),
        ([b"a"], [(b"a", 0), (b"a", 1), (b"b", 2)], [(0, 1), (1, 2)], {b"a": 1}),
        ([b"a", b"b"], [(b"a", 0), (b"a", 1), (b"b", 2)], [], {}),
    ],
)
def test_copies_are_missing_where_there_are_more_rows_than_messages(
    claimed: list[bytes], copies: list[tuple[bytes, int]], runs: list[tuple[int, int]], lacking: dict[bytes, int]
) -> None:
    found = [Copy(row_id, QUEUE, offset) for row_id, offset in copies]
    assert missing(claimed, found, {QUEUE: runs}) == lacking


@pytest.fixture
def lost_answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """The next answers do not arrive, although the broker has stored the batches."""
    left = 0
    ask = RetryingSender._ask

    async def ask_in_vain(self: RetryingSender, address: str, *rest: Any) -> SendReceipt:
        nonlocal left
        receipt = await ask(self, address, *rest)
        if left:
            left -= 1
            raise ConnectionLost(address, "the cable was cut")
        return receipt

    def lose(count: int) -> None:
        nonlocal left
        left = count

    monkeypatch.setattr(RetryingSender, "_ask", ask_in_vain)
    return lose


@pytest.mark.parametrize("guarantee", ["idempotent", "at-least-once"])
def test_a_lost_answer_stores_nothing_twice(
    orders: LocalCluster, place: str, lost_answers: Callable[[int], None], guarantee: str
) -> None:
    sink = Sink(orders, place, deliveryGuarantee=guarantee)
    rows = numbered(200)
    lost_answers(3)
    sink.commit(sink.task(rows, rows_per_batch=20))
    stored = bodies(orders)
    assert set(stored) == set(rows)
    assert sum(stored.values()) == (200 if guarantee == "idempotent" else 215)  # three requests of five rows


@pytest.mark.parametrize("end", ["kill_broker", "stop_broker"])
def test_a_broker_that_goes_and_comes_back_has_every_row_once(orders: LocalCluster, place: str, end: str) -> None:
    sink = Sink(orders, place, maxBytesInFlight="4k", maxBatchBytes="1k")
    rows = numbered(1000)
    coming = threading.Thread(target=orders.start_broker)

    def go(row: int) -> None:
        if row == 500:  # with requests under way, whose answers will not come
            getattr(orders, end)()
            coming.start()

    sink.commit(sink.task(rows, rows_per_batch=50, before_row=go))
    coming.join()
    assert bodies(orders) == once(*rows)


def test_rows_of_a_key_are_in_javas_queue_in_row_order(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place, maxBatchBytes="1k")
    rows = [{"body": f"{number}", "shardingKey": f"o-{number % 7}"} for number in range(700)]
    sink.commit(sink.task(rows, rows_per_batch=50))
    seen: dict[str, list[int]] = {}
    for message in sorted(orders.messages("Orders"), key=lambda each: (each.queue_id, each.queue_offset)):
        assert message.sharding_key is not None
        assert message.queue_id == index_by_hash(message.sharding_key, 4)
        seen.setdefault(message.sharding_key, []).append(int(message.body))
    assert seen == {f"o-{key}": list(range(key, 700, 7)) for key in range(7)}


@pytest.mark.rocketmq(brokers=2)
def test_rows_without_a_key_are_spread_over_all_queues_of_all_brokers(orders: LocalCluster, place: str) -> None:
    """Small writes too: four of five rows each reach both brokers and every queue."""
    sink = Sink(orders, place)
    for batch in range(4):
        sink.commit(*(sink.task(numbered(5, 5 * part), partition=part, batch=batch) for part in range(8)), batch=batch)
    got = Counter((message.broker_name, message.queue_id) for message in orders.messages("Orders"))
    assert len(got) == 8
    assert max(got.values()) <= 1.1 * 160 / 8
    record = json.loads((Path(place) / "rocketmq-sink" / "query" / "3.committed").read_text())
    assert (record["mostOfAQueue"], record["leastOfAQueue"]) == (5, 5)


def test_rows_with_and_without_a_key_meet_in_one_write(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place)
    rows = [{"body": str(n), "shardingKey": "vip" if n % 2 else None} for n in range(80)]
    sink.commit(sink.task(rows, rows_per_batch=7))
    found = orders.messages("Orders")
    keyed = [message for message in found if message.sharding_key == "vip"]
    assert {message.queue_id for message in keyed} == {index_by_hash("vip", 4)}
    assert [int(message.body) for message in sorted(keyed, key=lambda each: each.queue_offset)] == list(range(1, 80, 2))
    free = Counter(message.queue_id for message in found if message.sharding_key is None)
    assert set(free.values()) == {10}


def test_rows_to_be_delivered_later_are_stored_once_and_come_at_their_time(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place)
    due = orders.now_ms + 60_000
    rows = [{"body": body, "deliverTimestamp": due} for body in [*numbered(20), "same", "same"]]
    with pytest.raises(Died):
        sink.task(rows, dies_after=15)
    report = sink.task(rows, attempt=1)
    sink.commit(report)
    assert (report.delayed, report.messages) == (22, 22)
    assert bodies(orders) == {}
    orders.advance(minutes=2)
    assert bodies(orders) == once(*numbered(20), "same", "same")


def test_rows_with_a_time_are_sent_portion_by_portion(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place)
    rows = [{"body": body, "sendAfter": after} for body, after in [("a", 0), ("b", 0), ("c", 40), ("", 80), ("d", 80)]]
    with pytest.raises(InputError, match="row 3 of partition 0 has an empty body"):
        sink.task(rows)
    assert bodies(orders) == once("a", "b", "c"), "they were confirmed before the last portion was looked at"


def test_a_topic_that_does_not_exist_and_the_next_step_are_named(orders: LocalCluster, place: str) -> None:
    sink = Sink(orders, place, topic="Oders")
    with pytest.raises(InputError, match=r"topic Oders does not exist .* create it with Admin.create_topic\('Oders'\)"):
        sink.task(numbered(1))


@pytest.mark.rocketmq(brokers=2)
def test_nothing_is_sent_again_while_a_broker_that_may_have_it_is_away(
    rocketmq: LocalCluster, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_ids, "_PAUSE", 0.01)
    rocketmq.create_topic("Orders", queues=2)
    rows = numbered(40)
    Sink(rocketmq, place, maxBatchBytes="200").task(rows)
    away = rocketmq.broker_names[1]
    there = len(bodies(rocketmq))
    rocketmq.kill_broker(away)
    sink = Sink(rocketmq, place)
    with pytest.raises(ReadBackError, match="A broker that is away must come back first"):
        sink.task(rows)
    assert 0 < sum(bodies(rocketmq).values()) < there
    rocketmq.start_broker(away)
    sink.commit(sink.task(rows, attempt=1))
    assert bodies(rocketmq) == once(*rows)
    close_connections()


def test_nothing_of_an_arrow_batch_is_sent_when_one_row_of_any_topic_is_wrong(orders: LocalCluster, place: str) -> None:
    orders.create_topic("Bills", queues=2)
    sink = Sink(orders, place, topic="")
    rows = [{"body": "good", "topic": "Orders", "queueId": 3}, {"body": "bad", "topic": "Bills", "queueId": 2}]
    with pytest.raises(InputError, match=r"row 1 of partition 0 has queueId 2; topic Bills has the queues \[0, 1\]"):
        sink.task(rows)
    assert not bodies(orders)
    rows[1]["queueId"] = 1
    sink.commit(sink.task(rows, attempt=1))
    assert [message.queue_id for topic in ("Orders", "Bills") for message in orders.messages(topic)] == [3, 1]


async def test_rows_wait_while_the_broker_does_not_answer() -> None:
    class SilentProducer:
        def __init__(self) -> None:
            self.answering = asyncio.Event()
            self.asked = 0

        async def send_encoded(self, queue: MessageQueue, body: bytes, *, timeout: float) -> Any:
            self.asked += 1
            await self.answering.wait()
            return SimpleNamespace(queue_offset=self.asked)

    producer = SilentProducer()
    queues = [QueueSender(QUEUE, 0), QueueSender(QUEUE._replace(queue_id=1), 0)]
    senders = QueueSenders(cast(ReadBackProducer, producer), queues, None, most_bytes=100, send_timeout=60)
    request = Request(memoryview(bytes(40)), np.array([b"id"], "S12"), np.array([40]))
    await senders.put(queues[0], request)
    await senders.put(queues[1], request)
    third = asyncio.create_task(senders.put(queues[0], request))
    await asyncio.sleep(0.05)
    assert not third.done()
    assert [sender.held_bytes for sender in queues] == [40, 40]
    assert producer.asked == 2
    producer.answering.set()
    await third
    await senders.drained()
    assert sum(count for sender in queues for _, count in sender.runs) == 3


async def test_an_account_that_may_send_and_read_is_enough_and_another_hears_why(tmp_path: Path, place: str) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    config = replace(WITH_ACCOUNTS, acl_config_path=str(tmp_path))
    alice: dict[str, Any] = {"accessKey": ALICE_ACCOUNT.access_key, "secretKey": ALICE_ACCOUNT.secret_key}

    def write(names: str) -> None:
        sink = Sink(names, place, topic="TopicAllowed", consumerGroup="CG_acl", **alice)
        with pytest.raises(Died):
            sink.task(numbered(30), dies_after=20)
        with pytest.raises(ReadBackError, match="and idempotent writing needs the right to read the topic"):
            Sink(names, place, topic="TopicAllowed", **alice).task(numbered(30), attempt=1)
        report = sink.task(numbered(30), attempt=1)
        sink.commit(report)
        assert len(report.topics["TopicAllowed"].claimed_ids()) == 20
        wrong: dict[str, Any] = {**alice, "secretKey": "wrong12345"}
        options: dict[str, Any]
        for options in ({}, wrong):
            guarantee: dict[str, Any] = {"deliveryGuarantee": "at-least-once"}
            with pytest.raises(SendError, match="5 rows could not be sent"):
                Sink(names, place, topic="TopicAllowed", **options, **guarantee).task(numbered(10))
        close_connections()

    async with cluster(tmp_path, config=config) as given:
        root = Acl(ADMIN_ACCOUNT.access_key, ADMIN_ACCOUNT.secret_key)
        async with Admin(given.names, credentials=root) as admin:
            await admin.create_topic("TopicAllowed", 2)
            await admin.create_group("CG_acl")
        await asyncio.to_thread(write, given.names)
