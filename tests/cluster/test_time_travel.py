"""`advance` makes things happen in their order, and returns when they have happened."""

import asyncio
import random
import time
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from skyrocket.client import Message, PushConsumerSettings, ReceivedMessage
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.client import RemotingClient
from skyrocket.testing import AsyncLocalCluster, LocalCluster

DELAYS_MS = parse_delay_levels(DEFAULT_DELAY_LEVELS)


def bodies(messages: list[ReceivedMessage]) -> list[bytes]:
    return [message.body for message in messages]


def test_delayed_messages_arrive_in_the_order_of_their_moments(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    levels = [18, 3, 9, 1, 12, 3]
    with rocketmq.producer() as producer:
        for number, level in enumerate(levels):
            producer.send(Message("Orders", b"%d" % number, delay_level=level))
    began_ms = rocketmq.now_ms
    rocketmq.advance(seconds=9)
    assert bodies(rocketmq.messages("Orders")) == [b"3"]
    rocketmq.advance(hours=2)
    arrived = rocketmq.messages("Orders")
    assert bodies(arrived) == [b"3", b"1", b"5", b"2", b"4", b"0"]
    for message in arrived:
        late_ms = message.store_timestamp - began_ms - DELAYS_MS[levels[int(message.body)] - 1]
        assert -2000 < late_ms < 2000, message


def test_timers_come_at_their_own_time_to_the_second(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    began_ms, waits = rocketmq.now_ms, [7200, 90, 30 * 3600, 1500]
    with rocketmq.producer() as producer:
        for seconds in waits:
            producer.send(Message("Orders", b"%d" % seconds, delay=seconds))
    rocketmq.advance(seconds=80)
    assert rocketmq.messages("Orders") == []
    rocketmq.advance(days=2)
    arrived = rocketmq.messages("Orders")
    assert bodies(arrived) == [b"%d" % seconds for seconds in sorted(waits)]
    for message in arrived:
        late_ms = message.store_timestamp - began_ms - int(message.body) * 1000
        assert 0 <= late_ms < 4000, message


def test_a_message_that_always_fails_comes_again_at_every_interval_and_then_is_a_dead_letter(
    rocketmq: LocalCluster,
) -> None:
    rocketmq.create_topic("Orders", queues=1)
    calls: list[tuple[int, int]] = []
    consumer = rocketmq.push_consumer("Billing", settings=PushConsumerSettings(max_reconsume_times=6))

    def fail(message: ReceivedMessage) -> None:
        calls.append((message.reconsume_times, rocketmq.now_ms))
        raise RuntimeError("not today")

    consumer.subscribe("Orders", fail)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message("Orders", b"bad"))
        deadline = time.monotonic() + 10
        while not rocketmq.messages("SCHEDULE_TOPIC_XXXX"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        rocketmq.advance(minutes=30)
    assert [times for times, _ in calls] == [0, 1, 2, 3, 4, 5, 6]
    pauses = [(after - before) / 1000 for (_, before), (_, after) in pairwise(calls)]
    # Seconds; consumers live in real time, so a little is added. Levels 3 to 8.
    assert pauses == [pytest.approx(seconds, abs=3) for seconds in (10, 30, 60, 120, 180, 240)]
    assert bodies(rocketmq.dead_letters("Billing")) == [b"bad"]


@pytest.mark.rocketmq(settings={"mappedFileSizeCommitLog": 64 << 10, "fileReservedTime": 48, "deleteWhen": "04"})
def test_files_expire_after_their_time_at_the_hour_for_it(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)

    def fill(word: bytes) -> None:
        for _ in range(20):
            producer.send(Message("Orders", word + random.randbytes(10_000)))

    with rocketmq.producer() as producer:
        fill(b"old")
        rocketmq.advance(hours=24)
        fill(b"young")
        assert len(rocketmq.messages("Orders")) == 40
        rocketmq.advance(hours=23)
        assert len(rocketmq.messages("Orders")) == 40  # not one is 48 hours old
        rocketmq.advance(hours=24)
        kept = rocketmq.messages("Orders")
    assert 15 <= len(kept) < 40
    assert sum(message.body.startswith(b"young") for message in kept) == 20
    hour = datetime.fromtimestamp(rocketmq.now_ms / 1000, UTC)
    assert (hour - datetime.now(UTC)).total_seconds() == pytest.approx(71 * 3600, abs=60)


def test_a_pull_that_waits_is_answered_when_its_time_has_passed() -> None:
    async def main() -> None:
        async with AsyncLocalCluster() as mq, RemotingClient() as client:
            await mq.create_topic("Orders")
            request = PullMessage(
                consumer_group="Billing",
                topic="Orders",
                queue_id=0,
                queue_offset=0,
                max_msg_nums=32,
                sys_flag=0x6,
                commit_offset=0,
                suspend_timeout_millis=15_000,
                subscription="*",
                expression_type="TAG",
            )
            began = time.monotonic()
            address = mq.broker_addresses["broker-a"]
            waiting = asyncio.create_task(client.call(address, request, accepted=frozenset({19}), timeout_seconds=30))
            await asyncio.sleep(0.1)
            await mq.advance(seconds=14)
            await asyncio.sleep(0.1)
            assert not waiting.done()
            await mq.advance(seconds=2)
            assert (await waiting).code == 19
            assert time.monotonic() - began < 10

    asyncio.run(main())


def test_consumers_and_their_locks_outlive_hours_that_pass_in_a_moment(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=2)
    received: list[bytes] = []
    consumer = rocketmq.push_consumer("Billing")
    consumer.subscribe("Orders", lambda message: received.append(message.body))
    with rocketmq.producer() as producer, consumer, rocketmq.admin() as admin:
        producer.send(Message("Orders", b"now"))
        rocketmq.advance(hours=5)
        assert len(admin.consumer_connections("Billing").connections) == 1
        producer.send(Message("Orders", b"later", delay_level=18))
        rocketmq.advance(hours=2)
        assert received == [b"now", b"later"]


@pytest.mark.rocketmq(brokers=2, settings={"flushDiskType": "SYNC_FLUSH"})
def test_what_is_delivered_is_readable_at_once_also_with_sync_flush_and_two_brokers(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        for number in range(4):
            producer.send(Message("Orders", b"%d" % number, delay_level=4))
    rocketmq.advance(seconds=31)
    assert sorted(bodies(rocketmq.messages("Orders"))) == [b"0", b"1", b"2", b"3"]


def test_delayed_messages_survive_a_kill_while_they_wait(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"late", delay_level=18))
    rocketmq.advance(hours=1)
    rocketmq.kill_broker()
    rocketmq.start_broker()
    rocketmq.advance(minutes=59)
    assert rocketmq.messages("Orders") == []
    rocketmq.advance(minutes=2)
    assert bodies(rocketmq.messages("Orders")) == [b"late"]


def test_a_month_passes_in_seconds(rocketmq: LocalCluster) -> None:
    began = time.monotonic()
    rocketmq.advance(days=30)
    assert time.monotonic() - began < 20
