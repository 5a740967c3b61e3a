"""`advance` makes things happen in their order, and returns when they have happened."""

import asyncio
import contextlib
import random
import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from skyrocket.client import Message, PushConsumerSettings, ReceivedMessage
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.client import RemotingClient
from skyrocket.testing import AsyncLocalCluster, LocalCluster
from tests.waiting import wait_until

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
        assert -10_000 < late_ms < 10_000, message


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
        assert 0 <= late_ms < 20_000, message


@pytest.mark.requirement("C039")
@pytest.mark.parametrize(("most", "times"), [(6, 6), (-1, 16), (18, 18)])
def test_a_message_that_always_fails_comes_again_at_every_interval_and_then_is_a_dead_letter(
    rocketmq: LocalCluster, most: int, times: int
) -> None:
    rocketmq.create_topic("Orders", queues=1)
    calls: list[tuple[int, int]] = []
    consumer = rocketmq.push_consumer("Billing", settings=PushConsumerSettings(max_reconsume_times=most))

    def fail(message: ReceivedMessage) -> None:
        calls.append((message.reconsume_times, rocketmq.now_ms))
        raise RuntimeError("not today")

    consumer.subscribe("Orders", fail)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message("Orders", b"bad"))
        wait_until(lambda: rocketmq.messages("SCHEDULE_TOPIC_XXXX"))
        rocketmq.advance(minutes=30 if times == 6 else 600)
    assert [nth for nth, _ in calls] == list(range(times + 1))
    pauses = [(after - before) / 1000 for (_, before), (_, after) in pairwise(calls)]
    # Seconds; consumers live in real time, so a little is added. Levels from 3 on, after the last one always 2 h.
    table = [ms / 1000 for ms in DELAYS_MS[2:]] + [7200.0] * 2
    assert table[:6] == [10, 30, 60, 120, 180, 240]
    assert pauses == [pytest.approx(seconds, abs=3) for seconds in table[:times]]
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


@pytest.mark.requirement("A038", "B036")
@pytest.mark.parametrize("seconds", [15, 30])
async def test_a_pull_that_waits_is_answered_when_its_time_has_passed(seconds: int) -> None:
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
            suspend_timeout_millis=seconds * 1000,
            subscription="*",
            expression_type="TAG",
        )
        began = time.monotonic()
        address = mq.broker_addresses["broker-a"]
        waiting = asyncio.create_task(client.call(address, request, accepted=frozenset({19}), timeout_seconds=60))
        await asyncio.sleep(0.1)
        await mq.advance(seconds=seconds - 1)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await mq.advance(seconds=2)
        assert (await waiting).code == 19
        assert time.monotonic() - began < 10


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


@pytest.mark.requirement("C033")
def test_what_comes_at_its_time_stands_behind_what_was_there_before(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"timer", delay=60))
        producer.send(Message("Orders", b"level", delay_level=5))
        rocketmq.advance(seconds=50)
        for _ in range(3):
            producer.send(Message("Orders", b"backlog"))
        rocketmq.advance(seconds=20)
    arrived = bodies(rocketmq.messages("Orders"))
    assert (arrived[:3], sorted(arrived[3:])) == ([b"backlog"] * 3, [b"level", b"timer"])


@pytest.mark.requirement("C034")
def test_a_moment_is_that_of_the_brokers_clock(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    moment = datetime.now(UTC) + timedelta(minutes=10)
    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"in step", deliver_at=moment))
        assert rocketmq.messages("Orders") == []
        rocketmq.advance(minutes=5)  # the broker's clock is five minutes ahead of the client's
        began_ms = rocketmq.now_ms
        producer.send(Message("Orders", b"ahead", deliver_at=moment))
        rocketmq.advance(minutes=6)
    arrived = rocketmq.messages("Orders")
    assert bodies(arrived) == [b"in step", b"ahead"]
    assert all(290_000 < message.store_timestamp - began_ms < 310_000 for message in arrived)


@pytest.mark.requirement("C035")
@pytest.mark.rocketmq(
    settings={"mappedFileSizeCommitLog": 64 << 10, "fileReservedTime": 72, "timerMaxDelaySec": 6 * 86_400}
)
def test_a_timer_of_five_days_is_kept_for_three_days_from_its_delivery_on(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)

    def kept() -> bool:
        return b"timer" in bodies(rocketmq.messages("Orders"))

    with rocketmq.producer() as producer:
        producer.send(Message("Orders", b"timer", delay=5 * 86_400))
        rocketmq.advance(days=5, minutes=1)
        assert kept()
        for _ in range(20):  # the file that is written to always stays
            producer.send(Message("Orders", random.randbytes(10_000)))
        rocketmq.advance(days=2, hours=23)
        assert kept()
        rocketmq.advance(hours=26)
        assert not kept()


@pytest.mark.requirement("D021")
def test_one_queue_gives_one_order_for_all_whoever_consumes(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic("Orders", queues=1)
    received: list[bytes] = []
    settings = PushConsumerSettings(orderly=True)
    with rocketmq.producer() as producer, contextlib.ExitStack() as members:
        for _ in range(2):
            consumer = rocketmq.push_consumer("Billing", settings=settings)
            consumer.subscribe("Orders", lambda message: received.append(message.body))
            members.enter_context(consumer)
        for number in range(60):
            producer.send(Message("Orders", b"%d" % number, sharding_key=str(number)))
        wait_until(lambda: len(received) >= 60)
    assert received == [b"%d" % number for number in range(60)]


def test_a_month_passes_in_seconds(rocketmq: LocalCluster) -> None:
    began = time.monotonic()
    rocketmq.advance(days=30)
    assert time.monotonic() - began < 100
