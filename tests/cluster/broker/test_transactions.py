"""Transactions on real sockets: halves, ends, questions to producers, restarts."""

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.transactions.feature import TransactionsFeature
from skyrocket.broker.transactions.transaction_log import Decision
from skyrocket.config.sections import BrokerConfig, FlushDiskType, MetricsExporter
from skyrocket.format.record import decode_records
from skyrocket.protocol.errors import NoPermission, SystemFailure
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN
from skyrocket.remoting.errors import RemotingError
from tests.cluster.broker.broker_fixture import SMALL, RunningBroker, running_broker
from tests.cluster.broker.transaction_producer import TransactionProducer, settled
from tests.waiting import until

SOON = BrokerConfig(transaction_timeout_ms=100, transaction_check_interval_ms=150)
LATE = BrokerConfig(transaction_check_interval_ms=3_600_000)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def delivered(given: RunningBroker) -> list[bytes]:
    bodies: list[bytes] = []
    while found := [record.body for record in decode_records((await given.pull(len(bodies))).body)]:
        bodies += found
    return bodies


def open_ids(given: RunningBroker) -> list[str]:
    return [each.transaction_id for each in given.broker.feature(TransactionsFeature).log.open_transactions()]


def ended(given: RunningBroker) -> int:
    log = given.broker.feature(TransactionsFeature).log
    return log.committed.total() + log.rolled_back.total()


@pytest.mark.requirement("C078", "D009")
async def test_committed_messages_are_delivered_and_others_are_not(tmp_path: Path) -> None:
    async with running_broker(tmp_path, LATE) as given, TransactionProducer(given.address, {}) as producer:
        one = await producer.begin(b"one", now_ms())
        two = await producer.begin(b"two", now_ms())
        three = await producer.begin(b"three", now_ms())
        assert (one.queue_id, one.queue_offset, two.queue_offset) == (0, 0, 1)
        assert one.transaction_id == "U-one"
        assert await delivered(given) == []
        await producer.end_oneway(two, COMMIT)
        await producer.end(one, ROLLBACK)
        await producer.end_oneway(three, UNKNOWN)
        await settled()
        assert await delivered(given) == [b"two"]
        assert open_ids(given) == ["U-three"]


async def test_a_consumer_that_waits_is_woken_by_a_commit(tmp_path: Path) -> None:
    async with running_broker(tmp_path, LATE) as given, TransactionProducer(given.address, {}) as producer:
        await given.beat()
        half = await producer.begin(b"one", now_ms())
        waiting = asyncio.create_task(given.pull(suspend_ms=20_000))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await producer.end_oneway(half, COMMIT)
        reply = await asyncio.wait_for(waiting, 15)
        assert [record.body for record in decode_records(reply.body)] == [b"one"]


async def test_an_unknown_end_is_never_answered_even_if_an_answer_is_waited_for(tmp_path: Path) -> None:
    async with running_broker(tmp_path, LATE) as given, TransactionProducer(given.address, {}) as producer:
        half = await producer.begin(b"one", now_ms())
        with pytest.raises(RemotingError):
            await producer.client.call(given.address, producer.end_request(half, UNKNOWN), timeout_seconds=0.2)
        await producer.end(half, COMMIT)
        with pytest.raises(SystemFailure, match="has ended before, by a commit"):
            await producer.end(half, ROLLBACK)
        assert await delivered(given) == [b"one"]


@pytest.mark.parametrize("flush", list(FlushDiskType))
async def test_a_producer_is_asked_what_became_of_its_transaction(tmp_path: Path, flush: FlushDiskType) -> None:
    words: dict[bytes, int] = {b"undone": ROLLBACK}
    store = replace(SMALL, flush_disk_type=flush)
    async with (
        running_broker(tmp_path, SOON, store) as given,
        TransactionProducer(given.address, words) as producer,
    ):
        for body in (b"done", b"undone"):
            await producer.begin(body, now_ms())
        await until(lambda: producer.asked.count(b"done") >= 3)
        words[b"done"] = COMMIT
        await until(lambda: ended(given) == 2)
        asked = len(producer.asked)
        await asyncio.sleep(0.5)
        assert len(producer.asked) == asked
        assert await delivered(given) == [b"done"]
        assert b"undone" in producer.asked


async def test_another_producer_of_the_group_is_asked_when_the_sender_is_gone(tmp_path: Path) -> None:
    async with running_broker(tmp_path, SOON) as given:
        async with TransactionProducer(given.address, {}, "first") as first:
            await first.begin(b"one", now_ms())
        async with (
            TransactionProducer(given.address, {b"one": COMMIT}, "other", "Others") as other,
            TransactionProducer(given.address, {b"one": COMMIT}, "second") as second,
        ):
            await until(lambda: ended(given) == 1)
            assert (set(second.asked), other.asked) == ({b"one"}, [])
        assert await delivered(given) == [b"one"]


async def test_open_transactions_outlive_the_broker_and_ended_ones_stay_ended(tmp_path: Path) -> None:
    async with running_broker(tmp_path, LATE) as given, TransactionProducer(given.address, {}) as producer:
        for body, word in ((b"one", COMMIT), (b"two", UNKNOWN), (b"three", ROLLBACK)):
            await producer.end_oneway(await producer.begin(body, now_ms()), word)
        await settled()
    async with running_broker(tmp_path, SOON) as given:
        assert open_ids(given) == ["U-two"]
        async with TransactionProducer(given.address, dict.fromkeys((b"one", b"two", b"three"), COMMIT)) as producer:
            await until(lambda: ended(given) == 1)
            await asyncio.sleep(0.4)
            assert set(producer.asked) == {b"two"}
        assert await delivered(given) == [b"one", b"two"]


@pytest.mark.requirement("C080")
async def test_half_messages_can_be_forbidden_while_the_broker_runs(tmp_path: Path) -> None:
    async with running_broker(tmp_path, LATE) as given, TransactionProducer(given.address, {}) as producer:
        half = await producer.begin(b"one", now_ms())
        change = given.broker.settings.changed_by("rejectTransactionMessage=true")
        given.broker.settings.apply(change)
        with pytest.raises(NoPermission, match=r"the broker\[127.0.0.1\] sending transaction message is forbidden"):
            await producer.begin(b"two", now_ms())
        await producer.end(half, COMMIT)  # what is open can still end
        assert await delivered(given) == [b"one"]


async def test_an_operator_ends_what_nobody_else_does(tmp_path: Path) -> None:
    async with running_broker(tmp_path, LATE) as given, TransactionProducer(given.address, {}) as producer:
        await producer.begin(b"one", now_ms() - 5000)
        (found,) = given.broker.feature(TransactionsFeature).log.open_transactions()
        assert 5000 <= found.age_ms < 20_000
        given.broker.feature(TransactionsFeature).log.end_by_operator(found.queue_offset, Decision.COMMIT)
        await settled()
        assert await delivered(given) == [b"one"]


async def test_metrics_show_transactions(tmp_path: Path) -> None:
    observed = replace(LATE, metrics_exporter=MetricsExporter.PROM, metrics_port=0)
    async with running_broker(tmp_path, observed) as given, TransactionProducer(given.address, {}) as producer:
        halves = [await producer.begin(b"%d" % number, now_ms()) for number in range(3)]
        await producer.end(halves[0], COMMIT)
        await producer.end(halves[1], ROLLBACK)
        reader, writer = await asyncio.open_connection("127.0.0.1", given.broker.metrics_port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        page = (await reader.read(-1)).decode()
        writer.close()
        for name in ("half_messages", "commit_messages_total", "rollback_messages_total"):
            assert re.search(rf'rocketmq_{name}{{[^}}]*topic="Orders"[^}}]*}} 1\b', page), page
