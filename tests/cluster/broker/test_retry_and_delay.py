"""Delay levels, messages that consumers send back, dead letters, and waiting for the disk: through a real broker."""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.delay.delay_levels import GROUP_MESSAGES
from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.state.counters import Counters
from skyrocket.config.sections import BrokerConfig, FlushDiskType
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.record import decode_record, decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.permission import PERM_READ
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import (
    GroupNotExist,
    MessageIllegal,
    SystemFailure,
)
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.requests.messaging import (
    ConsumerSendMsgBack,
    SendBatchMessage,
    SendMessageAnswer,
    SendMessageV2,
)
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.remoting.exchange import command_of
from skyrocket.store.disk import Disk
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import (
    SMALL,
    TOPIC,
    RunningBroker,
    message,
    pull_request,
    running_broker,
)
from tests.golden_wire import CapturedFrame, capture
from tests.waiting import until

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
GROUP = "Shop"
RETRY, DLQ = f"%RETRY%{GROUP}", f"%DLQ%{GROUP}"


def stored(given: RunningBroker, topic: str = TOPIC, queue_id: int = 0) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    while (got := given.broker.store.get(topic, queue_id, len(found), 32)).count:
        found += decode_records(got.join())
    return found


async def send(given: RunningBroker, body: bytes = b"x", properties: str = "", **changes: Any) -> SendMessageAnswer:
    request = replace(message(properties=properties), **changes)
    return (await given.client.call(given.address, request, body)).header


async def send_back(
    given: RunningBroker, physical_offset: int, *, version: int = 493, **changes: Any
) -> RemotingCommand:
    values: dict[str, Any] = {"group": GROUP, "delay_level": 0, "origin_topic": TOPIC, "max_reconsume_times": 16}
    command = command_of(ConsumerSendMsgBack(offset=physical_offset, **(values | changes)))
    command.version = version
    return await given.client.invoke(given.address, command)


def place_of(answer: SendMessageAnswer) -> int:
    return int(answer.msg_id[-16:], 16)


# ── delay levels ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A050", "D011")
@pytest.mark.requirement("A048")
async def test_a_delayed_message_waits_in_the_schedule_topic_until_its_time_has_come(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        await send(given, b"at once")
        answer = await send(given, b"later", "TAGS\x01red\x02UNIQ_KEY\x01U1\x02DELAY\x013\x02", queue_id=2)
        # The queue is that of the client, the offset that of the queue where it was really stored.
        assert (answer.queue_id, answer.queue_offset, answer.transaction_id) == (2, 0, "U1")
        (waiting,) = stored(given, SCHEDULE, 2)
        assert waiting.physical_offset == place_of(answer)
        clock.advance(seconds=9.999)
        await asyncio.sleep(0.25)
        assert not stored(given, queue_id=2)
        pulling = asyncio.create_task(given.client.call(given.address, pull_request(0, 2, 20_000)))
        await asyncio.sleep(0.05)
        clock.advance(ms=1)
        (found,) = decode_records((await pulling).body)
        assert (found.body, found.reconsume_times, found.queue_offset) == (b"later", 0, 0)
        assert found.properties == {
            "TAGS": "red",
            "UNIQ_KEY": "U1",
            "DELAY": "3",
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
            "CLUSTER": "DefaultCluster",
            "REAL_TOPIC": TOPIC,
            "REAL_QID": "2",
        }
        progress = given.broker.feature(DelayFeature).levels.progress()[2]
        assert (progress.level, progress.delivered, progress.pending) == (3, 1, 0)


@pytest.mark.requirement("A051")
async def test_the_first_write_and_the_delivery_are_both_counted(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        await send(given, b"x", "DELAY\x011\x02")
        assert given.broker.store.statistics.put_messages == 1
        clock.advance(seconds=1)
        await until(lambda: len(stored(given)) == 1)
        assert given.broker.store.statistics.put_messages == 2


async def test_a_message_waits_for_its_level_and_not_a_millisecond_longer(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        sent_at_ms = []
        for _ in range(5):
            sent_at_ms.append(clock.now_ms())
            await send(given, b"x", "DELAY\x011\x02")
            clock.advance(ms=30)
        for number, at_ms in enumerate(sent_at_ms):
            clock.advance(ms=at_ms + 1000 - clock.now_ms())
            await until(lambda delivered=number + 1: len(stored(given)) >= delivered)  # type: ignore[misc]
        assert [found.store_timestamp - at_ms for found, at_ms in zip(stored(given), sent_at_ms, strict=True)] == [
            1000
        ] * 5


async def test_by_the_real_clock_a_message_is_never_early(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        answer = await send(given, b"x", "DELAY\x011\x02")
        await until(lambda: len(stored(given)) == 1)
        record = given.broker.store.by_physical_offset(place_of(answer))
        assert record is not None
        assert stored(given)[0].store_timestamp - decode_record(record).store_timestamp >= 1000


@pytest.mark.requirement("A046")
async def test_the_levels_are_a_setting_of_the_broker_for_all_topics(tmp_path: Path) -> None:
    clock = FakeClock()
    levels = replace(SMALL, message_delay_levels="1h 2d")
    async with running_broker(tmp_path, store=levels, clock=clock) as given:
        for topic in ("One", "Two"):
            await send(given, b"x", "DELAY\x011\x02", topic=topic)
            await send(given, b"x", "DELAY\x019\x02", topic=topic)
        assert [len(stored(given, SCHEDULE, queue_id)) for queue_id in range(3)] == [2, 2, 0]
        clock.advance(hours=1)
        await until(lambda: len(stored(given, "One")) == len(stored(given, "Two")) == 1)
        clock.advance(hours=47)
        await until(lambda: len(stored(given, "One")) == len(stored(given, "Two")) == 2)


async def test_a_delayed_batch_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        values = {field.attribute: getattr(message(), field.attribute) for field in SendMessageV2.wire_fields}
        batch = SendBatchMessage(**{**values, "batch": True, "properties": "DELAY\x012\x02"})
        body = encode_batch([BatchElement(0, b"x", b"UNIQ_KEY\x01B\x02")])
        with pytest.raises(MessageIllegal, match="the message is illegal"):
            await given.client.call(given.address, batch, body)


@pytest.mark.requirement("C132")
async def test_a_restart_forgets_no_delayed_message_and_delivers_none_twice(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        for i in range(10):
            await send(given, b"%d" % i, "DELAY\x011\x02")
        clock.advance(seconds=1)
        await until(lambda: len(stored(given)) == 10)
        await send(given, b"10", "DELAY\x012\x02")
    clock.advance(seconds=5)
    async with running_broker(tmp_path, clock=clock) as given:
        clock.advance(seconds=1)  # delivery begins a second after the start
        await until(lambda: len(stored(given)) == 11)
        await asyncio.sleep(0.2)
        assert [each.body for each in stored(given)] == [b"%d" % i for i in range(11)]


@pytest.mark.requirement("C133")
async def test_how_far_delivery_has_come_is_saved_every_interval(tmp_path: Path) -> None:
    clock = FakeClock()
    assert BrokerConfig().flush_delay_offsets_interval_ms == 10_000
    config = BrokerConfig(flush_delay_offsets_interval_ms=50)
    store = replace(SMALL, flush_interval_ms=20, flush_least_pages=0)
    async with running_broker(tmp_path, config, store, clock) as given:
        await send(given, b"x", "DELAY\x011\x02")
        clock.advance(seconds=1)
        path = tmp_path / "store" / "config" / "delayOffset.json"
        await until(lambda: path.exists() and "1:1" in path.read_text().replace("\t", ""))


async def test_thousands_that_are_due_at_once_do_not_hold_up_others(tmp_path: Path) -> None:
    clock = FakeClock()
    store = replace(SMALL, commit_log_file_size=8 << 20)
    async with running_broker(tmp_path, store=store, clock=clock) as given:
        for _ in range(4):
            await asyncio.gather(*(send(given, bytes(100), "DELAY\x011\x02") for _ in range(1000)))
        levels = given.broker.feature(DelayFeature).levels
        await until(lambda: levels.progress()[0].pending == 4000, "the last of them come when their answers have left")
        clock.advance(seconds=1)
        asked = asyncio.ensure_future(given.client.call(given.address, GetMaxOffset(topic=TOPIC, queue_id=0)))
        most = 0
        while (before := levels.progress()[0]).pending:
            await asyncio.sleep(0)  # whoever else waits for the loop has his turn as well
            most = max(most, levels.progress()[0].next_offset - before.next_offset)
        assert 0 < most <= GROUP_MESSAGES
        await asked
        await until(lambda: len(stored(given)) == 4000)


def answer_of(frame: CapturedFrame) -> CapturedFrame:
    """What the real server said to a captured request."""
    (found,) = [
        each
        for each in capture(frame.file)
        if each.is_response
        and each.connection == frame.connection
        and each.header["opaque"] == frame.header["opaque"]
        and each.peer != frame.peer
    ]
    return found


def captured_requests(name: str, *codes: int) -> list[CapturedFrame]:
    return [each for each in capture(name) if not each.is_response and each.header["code"] in codes]


def command_in(frame: CapturedFrame) -> RemotingCommand:
    (command,) = FrameReader().receive(frame.raw)
    return command


async def test_the_answers_to_delayed_sends_are_those_of_the_real_broker(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for frame in captured_requests("java54-delay-level.jsonl.gz", 310):
            answer = await given.client.invoke(given.address, command_in(frame))
            real = answer_of(frame).header
            assert (answer.code, answer.remark) == (real["code"], real.get("remark"))
            assert answer.ext_fields is not None
            assert list(answer.ext_fields) == list(real["extFields"])
            for field in ("queueId", "queueOffset", "transactionId"):
                assert answer.ext_fields[field] == real["extFields"][field]
        assert [len(stored(given, SCHEDULE, queue_id)) for queue_id in (1, 17)] == [1, 1]
        assert stored(given, SCHEDULE, 17)[0].properties["DELAY"] == "18"


# ── messages that are sent back ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C120", "B004", "C020", "C119")
@pytest.mark.requirement("C123")
@pytest.mark.requirement("C124")
async def test_a_message_sent_back_comes_again_later_and_later_and_ends_as_a_dead_letter(tmp_path: Path) -> None:

    def first(given: RunningBroker) -> StoredMessage:
        return stored(given, TOPIC, 1)[0]

    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        sent = await send(given, b"poison", "KEYS\x01k\x02UNIQ_KEY\x01U1\x02TAGS\x01red\x02", queue_id=1)
        place = place_of(sent)
        for attempt, (level, seconds) in enumerate(((3, 10), (4, 30), (5, 60)), 1):
            answer = await send_back(given, place, max_reconsume_times=3)
            assert (answer.code, answer.remark, answer.ext_fields) == (0, None, None)
            clock.advance(seconds=seconds - 0.001)
            await asyncio.sleep(0.15)
            assert len(stored(given, RETRY)) == attempt - 1
            clock.advance(ms=1)
            await until(lambda expected=attempt: len(stored(given, RETRY)) == expected)  # type: ignore[misc]
            again = stored(given, RETRY)[-1]
            assert (again.body, again.reconsume_times) == (b"poison", attempt)
            assert again.properties == {
                "KEYS": "k",
                "UNIQ_KEY": "U1",
                "TAGS": "red",
                "MSG_REGION": "DefaultRegion",
                "TRACE_ON": "true",
                "CLUSTER": "DefaultCluster",
                "RETRY_TOPIC": TOPIC,
                "ORIGIN_MESSAGE_ID": sent.msg_id,
                "WAIT": "false",
                "DELAY": str(level),
                "REAL_TOPIC": RETRY,
                "REAL_QID": "0",
            }
            assert (again.born_timestamp, again.born_host) == (first(given).born_timestamp, first(given).born_host)
            place = again.physical_offset
        assert (await send_back(given, place, max_reconsume_times=3)).code == 0
        (dead,) = stored(given, DLQ)
        assert (dead.reconsume_times, dead.properties["DELAY"], dead.properties["RETRY_TOPIC"]) == (4, "0", TOPIC)
        topic = given.broker.tables.topics.find(DLQ)
        assert topic is not None
        assert (topic.read_queues, topic.write_queues, topic.permission) == (1, 1, 6)


@pytest.mark.requirement("C126")
async def test_messages_sent_back_are_counted_by_the_topic_that_was_consumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[tuple[str, str]] = []
    real = Counters.sent_back

    def sent_back(counters: Counters, topic: str, group: str) -> None:
        counted.append((topic, group))
        real(counters, topic, group)

    monkeypatch.setattr(Counters, "sent_back", sent_back)
    async with running_broker(tmp_path) as given:
        counters = given.broker.parts.counters
        place = place_of(await send(given))
        await send_back(given, 12_345)
        with pytest.raises(SystemFailure, match="not exist"):
            counters.view("SNDBCK_PUT_NUMS", f"{TOPIC}@{GROUP}")
        await send_back(given, place)
        await send_back(given, place, delay_level=-1)
        await send_back(given, stored(given, DLQ)[0].physical_offset)
        assert counted == [(TOPIC, GROUP)] * 3
        counters.view("SNDBCK_PUT_NUMS", f"{TOPIC}@{GROUP}")


@pytest.mark.requirement("C123")
async def test_a_negative_level_means_the_dead_letter_topic_and_a_given_one_is_taken(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        place = place_of(await send(given))
        await send_back(given, place, delay_level=-1)
        assert len(stored(given, DLQ)) == 1
        await send_back(given, place, delay_level=7)
        await send_back(given, place, delay_level=40)
        assert [len(stored(given, SCHEDULE, queue_id)) for queue_id in (6, 17)] == [1, 1]


@pytest.mark.requirement("C121")
async def test_refusals_of_a_send_back_say_what_rocketmq_says(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(auto_create_group=False)) as given:
        answer = await send_back(given, 0)
        assert answer.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert answer.remark == (
            f"subscription group not exist, {GROUP} \n"
            "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
        )
        given.broker.tables.groups.update(SubscriptionGroup(GROUP))
        for place in (999_999_999, -1, 5):
            answer = await send_back(given, place)
            assert (answer.code, answer.remark) == (1, f"look message by offset failed, {place}")
            assert answer.ext_fields is None
        topic = given.broker.tables.topics.find(RETRY)
        assert topic is not None
        given.broker.tables.topics.update(replace(topic, permission=PERM_READ))
        answer = await send_back(given, 0)
        assert (answer.code, answer.remark) == (16, f"the topic[{RETRY}] sending message is forbidden")


@pytest.mark.requirement("C121")
async def test_a_broker_that_may_not_be_written_refuses_and_a_group_without_queues_drops(tmp_path: Path) -> None:
    async with running_broker(tmp_path / "closed", BrokerConfig(broker_permission=PERM_READ)) as given:
        place = place_of(await send(given))
        answer = await send_back(given, place)
        assert (answer.code, answer.remark) == (16, "the broker[127.0.0.1] sending message is forbidden")
    async with running_broker(tmp_path / "open") as given:
        place = place_of(await send(given))
        given.broker.tables.groups.update(SubscriptionGroup(GROUP, retry_queues=0))
        puts = given.broker.store.statistics.put_messages
        assert (await send_back(given, place)).code == 0
        assert (await send_back(given, 77)).code == 0  # it is not even looked for
        assert given.broker.store.statistics.put_messages == puts
        assert given.broker.tables.topics.find(RETRY) is None


async def test_a_store_that_takes_nothing_is_named_in_the_answer(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        place = place_of(await send(given))
        given.broker.store.gate.fail(OSError("the disk is gone"))
        answer = await send_back(given, place)
        assert (answer.code, answer.remark) == (1, "SERVICE_NOT_AVAILABLE")


@pytest.mark.requirement("C122")
async def test_how_often_a_message_may_come_back_is_said_by_the_group_or_by_a_new_client(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.groups.update(SubscriptionGroup(GROUP, retry_queues=3, retry_max_times=1))
        fresh = place_of(await send(given, b"0"))
        tried = place_of(await send(given, b"1", reconsume_times=1))
        await send_back(given, fresh, max_reconsume_times=0, version=120)  # too old: the group counts
        assert not stored(given, DLQ)
        await send_back(given, fresh, max_reconsume_times=0, version=121)
        assert [each.body for each in stored(given, DLQ)] == [b"0"]
        await send_back(given, tried, max_reconsume_times=None)
        assert [each.body for each in stored(given, DLQ)] == [b"0", b"1"]
        await send_back(given, tried, max_reconsume_times=2)
        assert len(stored(given, DLQ)) == 2
        topic = given.broker.tables.topics.find(RETRY)
        assert topic is not None
        assert (topic.read_queues, topic.write_queues, topic.sys_flag) == (3, 3, 0)
        await send_back(given, fresh, group="Unit", unit_mode=True)
        unit = given.broker.tables.topics.find("%RETRY%Unit")
        assert unit is not None
        assert unit.sys_flag == 2


async def test_retries_are_spread_over_the_queues_of_the_group(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.groups.update(SubscriptionGroup(GROUP, retry_queues=4))
        place = place_of(await send(given))
        for _ in range(60):
            await send_back(given, place)
        queues = Counter(each.properties["REAL_QID"] for each in stored(given, SCHEDULE, 2))
        assert set(queues) == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    "name", ["java54-consume-retry-dlq", "java49c-consume-retry-dlq", "go-consume-retry", "node-consume-retry"]
)
async def test_the_answers_to_captured_send_backs_are_those_of_the_real_broker(tmp_path: Path, name: str) -> None:
    async with running_broker(tmp_path) as given:
        requests = captured_requests(f"{name}.jsonl.gz", 36)
        assert requests
        place = place_of(await send(given))
        for frame in requests:
            command = command_in(frame)
            assert command.ext_fields is not None
            command.ext_fields["offset"] = str(place)
            answer = await given.client.invoke(given.address, command)
            real = answer_of(frame).header
            assert (answer.code, answer.remark, answer.ext_fields) == (
                real["code"],
                real.get("remark"),
                real.get("extFields"),
            )


async def test_what_is_not_there_is_refused_as_by_the_real_broker(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        frame = captured_requests("badinput49-bkreq.jsonl.gz", 36)[0]
        answer = await given.client.invoke(given.address, command_in(frame))
        real = answer_of(frame).header
        assert (answer.code, answer.remark, answer.ext_fields) == (real["code"], real["remark"], None)


# ── retries that clients send themselves ─────────────────────────────────────────────────────────────────────────────


async def test_a_retry_that_a_client_sends_itself_is_delayed_like_one_sent_back(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        properties = f"RETRY_TOPIC\x01{TOPIC}\x02ORIGIN_MESSAGE_ID\x01X\x02DELAY\x014\x02"
        await send(given, b"again", properties, topic=RETRY, reconsume_times=2, max_reconsume_times=16)
        clock.advance(seconds=30)
        await until(lambda: len(stored(given, RETRY)) == 1)
        (found,) = stored(given, RETRY)
        assert (found.reconsume_times, found.properties["RETRY_TOPIC"]) == (2, TOPIC)


@pytest.mark.requirement("C078")
@pytest.mark.parametrize("times", [2, 3])
async def test_a_client_may_retry_as_often_as_allowed_and_then_it_is_a_dead_letter(tmp_path: Path, times: int) -> None:
    async with running_broker(tmp_path) as given:
        properties = f"RETRY_TOPIC\x01{TOPIC}\x02DELAY\x014\x02"
        answer = await send(given, b"x", properties, topic=RETRY, reconsume_times=times, max_reconsume_times=2)
        if times == 2:
            assert len(stored(given, SCHEDULE, 3)) == 1
            assert given.broker.tables.topics.find(DLQ) is None
        else:
            (dead,) = stored(given, DLQ)
            assert (dead.properties["DELAY"], dead.reconsume_times) == ("-1", 3)
            assert (answer.queue_id, place_of(answer)) == (0, dead.physical_offset)


async def test_the_retries_of_a_group_that_consumes_in_order_are_dead_letters_at_once(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.locks.lock(GROUP, "one", [MessageQueue(TOPIC, "broker-a", 0)])
        await send(given, b"x", "DELAY\x014\x02", topic=RETRY, reconsume_times=1, max_reconsume_times=16)
        assert len(stored(given, DLQ)) == 1
        assert not stored(given, SCHEDULE, 3)


async def test_a_retry_for_a_group_that_may_not_be_made_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(auto_create_group=False)) as given:
        with pytest.raises(GroupNotExist, match=f"subscription group not exist, {GROUP}"):
            await send(given, b"x", topic=RETRY, reconsume_times=1)


# ── waiting for the disk ─────────────────────────────────────────────────────────────────────────────────────────────


class SlowDisk:
    """While it is held nothing is forced to disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held = threading.Event()
        self.released = threading.Event()
        self.released.set()
        real = Disk.sync

        def sync(disk: Disk, fd: int) -> None:
            self.released.wait(10)
            real(disk, fd)

        monkeypatch.setattr(Disk, "sync", sync)


@pytest.mark.requirement("C022", "C048")
async def test_under_sync_flush_only_who_waits_for_the_disk_hears_that_it_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SlowDisk(monkeypatch)
    store = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH, sync_flush_timeout_ms=1000)
    async with running_broker(tmp_path, store=store) as given:
        await send(given, b"0")
        disk.released.clear()
        began = time.monotonic()
        careless = await send(given, b"1", "WAIT\x01false\x02")  # a success: it has not waited
        assert careless.queue_offset == 1
        command = command_of(message(properties="WAIT\x01true\x02UNIQ_KEY\x01U2\x02"), b"2")
        late = await given.client.invoke(given.address, command)
        assert time.monotonic() - began >= 1.0
        # RocketMQ: a success of another kind, with everything that an answer says.
        assert (late.code, late.remark) == (ResponseCode.FLUSH_DISK_TIMEOUT, None)
        fields = SendMessageAnswer.from_fields(late.ext_fields)
        assert (fields.queue_id, fields.queue_offset, fields.transaction_id) == (0, 2, "U2")
        assert (fields.region, fields.trace_on) == ("DefaultRegion", "true")
        assert [each.body for each in stored(given)] == [b"0"]  # nobody reads what the disk does not have
        disk.released.set()
        await until(lambda: len(stored(given)) == 3)


async def test_under_sync_flush_a_message_without_waiting_is_readable_when_flushed(tmp_path: Path) -> None:
    clock = FakeClock()
    store = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with running_broker(tmp_path, store=store, clock=clock) as given:
        await send(given, b"0", "WAIT\x01false\x02")
        await until(lambda: len(stored(given)) == 1)
        await send_back(given, stored(given)[0].physical_offset, delay_level=-1)
        await until(lambda: len(stored(given, DLQ)) == 1)
        await send(given, b"1", "DELAY\x011\x02")
        clock.advance(seconds=1)
        await until(lambda: len(stored(given)) == 2)


async def test_the_queue_of_a_message_with_priority_is_told_to_its_producer(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await send(given, b"plain", queue_id=1)
        for priority, queue_id in ((0, 0), (2, 2), (5, 3)):
            answer = await send(given, b"x", f"_SYS_MSG_PRIORITY_\x01{priority}\x02", queue_id=1)
            assert answer.queue_id == queue_id
            assert stored(given, queue_id=queue_id)[-1].physical_offset == place_of(answer)
        assert (await send(given, b"plain", queue_id=1)).queue_id == 1


async def test_a_compacted_topic_takes_no_message_without_key_not_even_after_others(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.tables.topics.update(TopicConfig(TOPIC, 4, 4, 6, attributes={"+cleanup.policy": "COMPACTION"}))
        for _ in range(2):
            await send(given, b"x", "UNIQ_KEY\x01U\x02KEYS\x01k\x02")
        with pytest.raises(MessageIllegal, match="Required message key is missing"):
            await send(given, b"x", "UNIQ_KEY\x01U\x02")


async def test_a_delay_that_is_no_number_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        with pytest.raises(SystemFailure, match="a delay level is a whole number"):
            await send(given, b"x", "DELAY\x01soon\x02")
        assert not stored(given)
