"""A whole cluster in the test's process: what it serves, shows, loses and keeps."""

import asyncio
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skyrocket.client import Message, ReceivedMessage
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.testing import AsyncLocalCluster, LocalCluster
from tests.waiting import wait_until


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return [message.body for message in messages]


COLD_START = """
import time
began = time.process_time()
from skyrocket.testing import LocalCluster
cluster = LocalCluster()
loaded = time.process_time()
with cluster:
    ready = time.process_time()
print(loaded - began, ready - loaded)
"""


def test_it_is_ready_in_less_than_a_second_also_the_first_one(capsys: pytest.CaptureFixture[str]) -> None:
    # Of the processor's time: others may use the machine.
    done = subprocess.run([sys.executable, "-c", COLD_START], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    loaded, ready = map(float, done.stdout.split())
    with capsys.disabled():
        print(f"\nmodules loaded in {loaded * 1000:.0f} ms, LocalCluster ready in {ready * 1000:.0f} ms")  # noqa: T201
    assert ready < 1.0
    with LocalCluster() as mq:
        assert 0 < mq.ready_seconds < 60


def test_messages_are_sent_consumed_and_shown(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    received: list[bytes] = []
    consumer = rocketmq.push_consumer("Billing")
    consumer.subscribe("Orders", lambda message: received.append(message.body))
    with rocketmq.producer() as producer, consumer:
        for number in range(6):
            producer.send(Message("Orders", b"%d" % number, tags="paid" if number % 2 else "new"))
        wait_until(lambda: len(received) == 6)
    shown = rocketmq.messages("Orders")
    assert bodies(shown) == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [message.tags for message in shown[:2]] == ["new", "paid"]
    assert sorted(received) == bodies(shown)
    committed = rocketmq.offsets("Billing")
    assert sum(committed.get(MessageQueue("Orders", "broker-a", queue), 0) for queue in range(2)) == 6
    assert rocketmq.messages("Nothing") == []


@pytest.mark.rocketmq(brokers=3)
def test_several_brokers_share_a_topic(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    assert rocketmq.broker_names == ["broker-a", "broker-b", "broker-c"]
    with rocketmq.producer() as producer:
        receipts = [producer.send(Message("Orders", b"%d" % number)) for number in range(6)]
    assert {receipt.queue.broker_name for receipt in receipts} == set(rocketmq.broker_names)
    assert sorted(bodies(rocketmq.messages("Orders"))) == [b"%d" % number for number in range(6)]


async def test_the_asyncio_form_runs_in_the_callers_loop() -> None:
    threads = asyncio.all_tasks()
    async with LocalCluster() as mq:
        assert isinstance(mq, AsyncLocalCluster)
        assert len(asyncio.all_tasks()) > len(threads)
        topic = await mq.unique_topic("Orders")
        async with mq.producer() as producer:
            await producer.send(Message(topic, b"later", delay_level=2))
            assert mq.messages(topic) == []
            await mq.advance(seconds=5)
        assert bodies(mq.messages(topic)) == [b"later"]


# ── brokers that go and come ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_restart_keeps_address_messages_groups_and_offsets(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    queue = MessageQueue("Orders", "broker-a", 0)
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        producer.send(Message("Orders", b"before"))
        admin.create_group("Billing")
        admin.set_offset("Billing", queue, 1)
        address = rocketmq.broker_addresses
        rocketmq.restart_broker()
        assert rocketmq.broker_addresses == address
        assert rocketmq.offsets("Billing") == {queue: 1}
        producer.send(Message("Orders", b"after"))
    assert bodies(rocketmq.messages("Orders")) == [b"before", b"after"]


def test_a_killed_broker_keeps_what_it_acknowledged_and_its_store_is_not_closed(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        for number in range(100):
            producer.send(Message("Orders", b"%d" % number))
        rocketmq.kill_broker()
        assert (rocketmq.directory / "broker-a" / "abort").exists()
        assert not _is_open(rocketmq.broker_addresses["broker-a"])
        rocketmq.start_broker()
        producer.send(Message("Orders", b"after"))
    assert bodies(rocketmq.messages("Orders")) == [b"%d" % number for number in range(100)] + [b"after"]


@pytest.mark.requirement("C127")
def test_offsets_that_were_only_in_memory_are_lost_by_a_kill_but_not_after_some_time(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    queue = MessageQueue("Orders", "broker-a", 0)
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        producer.send(Message("Orders", b"one"))
        admin.create_group("Billing")
        admin.set_offset("Billing", queue, 1)
        rocketmq.kill_broker()
        rocketmq.start_broker()
        assert rocketmq.offsets("Billing") == {}
        admin.set_offset("Billing", queue, 1)
        rocketmq.advance(seconds=6)  # flushConsumerOffsetInterval is 5 s
        rocketmq.kill_broker()
        rocketmq.start_broker()
        assert rocketmq.offsets("Billing") == {queue: 1}


def _is_open(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


# ── wrong use ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_wrong_use_is_told() -> None:
    cluster = LocalCluster()
    with pytest.raises(SkyrocketError, match="does not run: enter it with `with`"):
        cluster.create_topic("Orders")
    with cluster as mq:
        with pytest.raises(ValueError, match="there is no broker 'broker-x'; this cluster has broker-a"):
            mq.stop_broker("broker-x")
        with pytest.raises(SkyrocketError, match="runs already: stop it first"):
            mq.start_broker()
        mq.stop_broker()
        with pytest.raises(SkyrocketError, match=r"does not run: start it with start_broker\('broker-a'\)"):
            mq.kill_broker()
        mq.start_broker()
        with pytest.raises(ValueError, match="time goes on, not back"):
            mq.advance(hours=-1)
        with pytest.raises(InvalidParameter, match="illegal"):
            mq.create_topic("a topic?")
        with pytest.raises(SkyrocketError, match="started only once"):
            mq.start()
    with pytest.raises(SkyrocketError, match="does not run any more"):
        cluster.messages("Orders")
    cluster.stop()  # again


def test_settings_that_nobody_knows_or_that_are_not_to_be_chosen_are_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'autoCreateTopicEnable'"):
        LocalCluster(settings={"autoCreateTopicEnabled": False}).start()
    with pytest.raises(ConfigError, match="'listenPort' is chosen by the cluster itself"):
        LocalCluster(settings={"listenPort": 10911}).start()
    with pytest.raises(ValueError, match="at least one broker"):
        LocalCluster(brokers=0).start()


def test_a_start_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("skyrocket.testing.broker_host._free_port", lambda: 1 << 17)
    with pytest.raises(ConfigError, match="listenPort"):
        LocalCluster().start()
    assert list(tmp_path.iterdir()) == []


def test_leaving_while_clients_are_still_connected_takes_a_moment(rocketmq_session: LocalCluster) -> None:
    with LocalCluster() as mq:
        mq.create_topic("Orders")
        consumer = mq.push_consumer("Billing")
        consumer.subscribe("Orders", lambda message: None)
        consumer.start()
        producer = mq.producer()
        producer.start()
        producer.send(Message("Orders", b"x"))
        began = time.monotonic()
    assert time.monotonic() - began < 25
    producer.stop()
    consumer.stop()
    assert rocketmq_session.broker_names == ["broker-a"]  # other clusters of the process are not touched
