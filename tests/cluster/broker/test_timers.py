"""Timers and their recall through a real broker: over sockets, beside captured answers of a real one, after a kill."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.statistics.feature import StatisticsFeature
from skyrocket.broker.timer.feature import TimerFeature
from skyrocket.config.sections import BrokerConfig, FlushDiskType, StoreConfig
from skyrocket.format.config_files import TIMERS
from skyrocket.format.record import decode_records
from skyrocket.format.timer_checkpoint import decode_timer_checkpoint
from skyrocket.model.message import StoredMessage
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import (
    IllegalOperation,
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    ServiceNotAvailable,
    SystemFailure,
    TopicNotExist,
)
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.requests.admin_broker import GetTimerCheckPoint, GetTimerMetrics, SwitchTimerEngine
from skyrocket.protocol.requests.messaging import RecallMessage, SendMessage, SendMessageAnswer
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, TOPIC, RunningBroker, message, pull_request, running_broker
from tests.golden_wire import CapturedFrame, capture
from tests.waiting import until

RECALLING = BrokerConfig(recall=True)
CAPTURE = "java54-timer-recall.jsonl.gz"


def stored(given: RunningBroker, topic: str = TOPIC, queue_id: int = 0) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    while (got := given.broker.store.get(topic, queue_id, len(found), 32)).count:
        found += decode_records(got.join())
    return found


async def send(given: RunningBroker, body: bytes = b"x", properties: str = "", **changes: Any) -> SendMessageAnswer:
    request = replace(message(properties=properties), **changes)
    return (await given.client.call(given.address, request, body)).header


async def recall(given: RunningBroker, handle: str | None, topic: str = TOPIC) -> str | None:
    request = RecallMessage(topic=topic, recall_handle=handle or "", producer_group="Producers")
    return (await given.client.call(given.address, request)).header.msg_id


def timer_of(given: RunningBroker) -> Any:
    service = given.broker.feature(TimerFeature).service
    assert service is not None
    return service


# ── delivery ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_timer_wakes_the_consumer_that_waits_when_its_time_has_come(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        answer = await send(given, b"later", "UNIQ_KEY\x01U1\x02TIMER_DELAY_MS\x0110000\x02", queue_id=2)
        assert (answer.queue_id, answer.queue_offset, answer.transaction_id) == (2, 0, "U1")
        clock.advance(ms=9999)
        await asyncio.sleep(0.3)
        assert not stored(given, queue_id=2)
        pulling = asyncio.create_task(given.client.call(given.address, pull_request(0, 2, 20_000)))
        await asyncio.sleep(0.05)
        clock.advance(ms=1)
        (found,) = decode_records((await pulling).body)
        assert (found.body, found.properties["TIMER_OUT_MS"]) == (b"later", "1760000009000")


@pytest.mark.requirement("C030")
async def test_a_timer_is_never_early_and_late_by_its_precision_at_most(tmp_path: Path) -> None:
    clock = FakeClock()
    precision_ms = 100
    async with running_broker(tmp_path, store=replace(SMALL, timer_precision_ms=precision_ms), clock=clock) as given:
        wanted = [clock.now_ms() + 300 + 137 * number for number in range(8)]
        for number, at_ms in enumerate(wanted):
            await send(given, b"%d" % number, f"TIMER_DELIVER_MS\x01{at_ms}\x02")
        for number, at_ms in enumerate(wanted):
            clock.advance(ms=at_ms + precision_ms - clock.now_ms())  # and not a millisecond more until it is there
            await until(lambda delivered=number + 1: len(stored(given)) >= delivered)  # type: ignore[misc]
        for found in stored(given):
            assert 0 <= found.store_timestamp - wanted[int(found.body)] <= precision_ms


async def test_by_the_real_clock_a_timer_is_never_early(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=replace(SMALL, timer_precision_ms=100)) as given:
        wanted = int(time.time() * 1000) + 300
        await send(given, b"x", f"TIMER_DELIVER_MS\x01{wanted}\x02")
        await until(lambda: len(stored(given)) == 1)
        assert stored(given)[0].store_timestamp >= wanted


async def test_timers_that_wait_survive_a_stop_and_are_listed_and_counted(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        for number in range(3):
            await send(
                given, b"%d" % number, f"KEYS\x01k\x02UNIQ_KEY\x01U{number}\x02TIMER_DELAY_SEC\x01{9 - number}\x02"
            )
        await until(lambda: len(given.broker.feature(TimerFeature).pending()) == 3)
    async with running_broker(tmp_path, clock=clock) as given:
        pending = given.broker.feature(TimerFeature).pending()
        assert [(each.unique_key, each.due_ms - clock.now_ms(), each.keys) for each in pending] == [
            ("U2", 6000, "k"),
            ("U1", 7000, "k"),
            ("U0", 8000, "k"),
        ]
        assert {(each.topic, each.queue_id, each.cancels, each.rolls) for each in pending} == {(TOPIC, 0, False, False)}
        assert given.broker.feature(TimerFeature).pending(clock.now_ms() + 7500, 1)[0].unique_key == "U1"
        assert given.broker.feature(TimerFeature).counts.counts() == {TOPIC: 3}
        clock.advance(seconds=20)
        await until(lambda: len(stored(given)) == 3)
        assert [each.body for each in stored(given)] == [b"2", b"1", b"0"]
        assert given.broker.feature(TimerFeature).pending() == []


async def test_with_sync_flush_timers_and_recalls_are_taken_and_met(tmp_path: Path) -> None:
    clock = FakeClock()
    store = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with running_broker(tmp_path, RECALLING, store, clock) as given:
        await send(given, b"stays", "TIMER_DELAY_SEC\x015\x02")
        answer = await send(given, b"goes", "TIMER_DELAY_SEC\x015\x02")
        await recall(given, answer.recall_handle)
        clock.advance(seconds=6)
        await until(lambda: len(stored(given)) == 1)
        await until(lambda: timer_of(given).totals.cancelled == 1)
        assert stored(given)[0].body == b"stays"


async def test_a_committed_transaction_and_a_retry_are_no_timers_again(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        await send(given, b"x", "TIMER_DELAY_SEC\x011\x02")
        clock.advance(seconds=2)
        await until(lambda: len(stored(given)) == 1)
        text = "".join(f"{name}\x01{value}\x02" for name, value in stored(given)[0].properties.items())
        answer = await send(given, b"again", text)
        assert answer.recall_handle is None
        assert len(stored(given)) == 2


# ── recall ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_recall_is_confirmed_and_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, RECALLING, clock=clock) as given:
        answer = await send(given, b"x", "UNIQ_KEY\x01U1\x02TIMER_DELAY_SEC\x015\x02", queue_id=3)
        assert await recall(given, answer.recall_handle) == "U1"
        (_, cancel) = stored(given, "rmq_sys_wheel_timer")
        assert cancel.body == b"0"
        assert cancel.properties == {
            "TAGS": "_RECALL_TAG_",
            "TIMER_DEL_UNIQKEY": "U1",
            "UNIQ_KEY": "U1",
            "TIMER_DELIVER_MS": "1760000004001",
            "BORN_TIMESTAMP": "1760000000000",
            "PGROUP": "Producers",
            "TIMER_OUT_MS": "1760000004000",
            "REAL_TOPIC": TOPIC,
            "REAL_QID": "0",
        }
        clock.advance(seconds=10)
        await until(lambda: timer_of(given).totals.cancelled == 1)
        assert not stored(given, queue_id=3)


async def test_a_recall_that_cannot_be_is_refused_in_the_words_of_the_real_broker(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, RECALLING, clock=clock) as given:
        handle = (await send(given, b"x", "TIMER_DELAY_SEC\x015\x02")).recall_handle
        await send(given, topic="Other")
        other = (await send(given, b"x", "TIMER_DELAY_SEC\x0130\x02")).recall_handle
        for kind, remark, text, topic in (
            (TopicNotExist, "recall failed, the topic[Nowhere] not exist", handle, "Nowhere"),
            (IllegalOperation, "recall handle is invalid", "no handle", TOPIC),
            (IllegalOperation, "recall failed, topic not match", handle, "Other"),
        ):
            with pytest.raises(kind) as refused:
                await recall(given, text, topic)
            assert refused.value.remark == remark
        with pytest.raises(IllegalOperation, match="recall failed, broker service not available"):
            await recall(given, "djEgT3JkZXJzIGVsc2V3aGVyZSAxNzYwMDAwMDA0MDAxIFUx")
        clock.advance(seconds=6)
        with pytest.raises(IllegalOperation, match="recall failed, timestamp invalid"):
            await recall(given, handle)
        assert await recall(given, other)


async def test_a_recall_is_forbidden_unless_the_operator_allows_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        handle = (await send(given, b"x", "TIMER_DELAY_SEC\x015\x02")).recall_handle
        assert handle is not None
        with pytest.raises(NoPermission, match="recall failed, operation is forbidden"):
            await recall(given, handle)
    not_writable = BrokerConfig(recall=True, recall_when_not_writable=False, broker_permission=4)
    async with running_broker(tmp_path, not_writable) as given:
        with pytest.raises(ServiceNotAvailable, match="recall failed, broker service not available"):
            await recall(given, handle)


# ── refusals and questions ───────────────────────────────────────────────────────────────────────────────────────────


async def test_limits_can_be_changed_while_the_broker_runs(tmp_path: Path) -> None:
    async with running_broker(tmp_path, clock=FakeClock()) as given:
        with pytest.raises(MessageIllegal, match="should not be bigger than the max delay 259200000ms"):
            await send(given, b"x", "TIMER_DELAY_SEC\x013456000\x02")
        change = given.broker.settings.changed_by("timerMaxDelaySec=3456000")
        given.broker.settings.apply(change)
        assert (await send(given, b"x", "TIMER_DELAY_SEC\x013456000\x02")).recall_handle


async def test_a_broker_without_a_timer_says_so(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=replace(SMALL, timer_wheel=False)) as given:
        assert given.broker.tables.topics.find("rmq_sys_wheel_timer") is None
        with pytest.raises(SystemFailure, match="accurate timer message is not enabled, timerWheelEnable is false"):
            await send(given, b"x", "TIMER_DELAY_SEC\x015\x02")
        for request, remark in (
            (GetTimerCheckPoint(), "The checkpoint is null"),
            (GetTimerMetrics(), "The timer message store is null"),
        ):
            with pytest.raises(SystemFailure, match=remark):
                await given.client.call(given.address, request)
        with pytest.raises(InvalidParameter, match="broker timerWheelEnable is false"):
            await given.client.call(given.address, SwitchTimerEngine(engine="F"))
    assert not (tmp_path / "store" / "timerwheel").exists()


async def test_slaves_and_operators_are_told_how_the_timer_stands(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=replace(SMALL, timer_flush_interval_ms=20)) as given:
        await send(given, b"x", "TIMER_DELAY_SEC\x01500\x02")
        await until(lambda: timer_of(given)._files.checkpoint.queue_offset == 1)
        reply = await given.client.call(given.address, GetTimerCheckPoint())
        assert len(reply.body) == 56
        assert decode_timer_checkpoint(bytes(reply.body)).log_flushed_position == 52
        reply = await given.client.call(given.address, GetTimerMetrics())
        assert TIMERS.decode(bytes(reply.body)).topics[TOPIC].count == 1
        rows = given.broker.feature(StatisticsFeature).runtime_info.table()
        assert (rows["timerCongestNum"], rows["timerOffsetBehind"], rows["timerReadBehind"]) == ("1", "0", "0")
        names = {metric.name for metric in given.broker.feature(TimerFeature).metrics()}
        assert {"rocketmq_timing_messages", "rocketmq_timer_enqueue_total"} <= names
        for engine, remark in (
            ("R", "timerUseRocksDB muse be configured true when broker start"),
            ("X", "param error"),
        ):
            with pytest.raises(InvalidParameter, match=remark):
                await given.client.call(given.address, SwitchTimerEngine(engine=engine))
        command = RemotingCommand(RequestCode.SWITCH_TIMER_ENGINE, 1, 0, ext_fields={"E_T": "F"})
        answer = await given.client.invoke(given.address, command)
        assert (answer.code, answer.remark) == (0, "switch timer engine success")


async def test_slaves_of_a_master_without_timers_are_told_that_all_was_delivered_up_to_now(tmp_path: Path) -> None:
    async with running_broker(tmp_path, clock=FakeClock()) as given:
        clock = given.broker.parts.clock
        reply = await given.client.call(given.address, GetTimerCheckPoint())
        told = decode_timer_checkpoint(bytes(reply.body))
        assert clock.now_ms() - 1000 < told.last_read_time_ms <= clock.now_ms()
        assert told.queue_offset == 0


async def test_the_long_form_of_a_send_can_ask_for_a_timer_too(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        short = message(properties="TIMER_DELAY_SEC\x015\x02")
        fields = {name: getattr(short, name) for name in SendMessage.__dataclass_fields__ if hasattr(short, name)}
        answer = (await given.client.call(given.address, SendMessage(**fields), b"x")).header
        assert answer.recall_handle


# ── what a real broker answered ──────────────────────────────────────────────────────────────────────────────────────


def command_in(frame: CapturedFrame) -> RemotingCommand:
    (command,) = FrameReader().receive(frame.raw)
    return command


def answer_of(frame: CapturedFrame) -> CapturedFrame:
    (found,) = [
        each
        for each in capture(CAPTURE)
        if each.is_response
        and each.connection == frame.connection
        and each.header["opaque"] == frame.header["opaque"]
        and each.peer != frame.peer
    ]
    return found


async def test_answers_and_delivered_messages_are_those_of_the_real_broker(tmp_path: Path) -> None:
    frames = capture(CAPTURE)
    asked = [each for each in frames if not each.is_response and each.header["code"] in (310, 370)]
    began_ms = int(asked[0].header["extFields"]["g"])
    clock = FakeClock(began_ms)
    async with running_broker(tmp_path, replace(RECALLING, broker_name="broker-a"), clock=clock) as given:
        for frame in asked:
            born = frame.header["extFields"].get("g")
            if born is not None:
                clock.set(int(born))
            answer = await given.client.invoke(given.address, command_in(frame))
            real = answer_of(frame).header
            assert (answer.code, answer.remark) == (real["code"], real.get("remark"))
            ours, theirs = answer.ext_fields or {}, real["extFields"]
            assert list(ours) == list(theirs)
            for name in ours.keys() - {"msgId", "queueOffset"}:
                assert ours[name] == theirs[name]
        clock.advance(seconds=30)
        real_records = [
            record
            for each in frames
            if each.is_response and each.in_reply_to == "PULL_MESSAGE" and each.header["code"] == 0
            for record in decode_records(each.body)
        ]
        ours_by_body: dict[bytes, StoredMessage] = {}
        await until(lambda: timer_of(given).next_due_ms() is None)
        for queue_id in range(4):
            ours_by_body |= {record.body: record for record in stored(given, "TopicTimer", queue_id)}
        assert ours_by_body.keys() == {record.body for record in real_records}
        for real_record in real_records:
            our_record = ours_by_body[real_record.body]
            assert (our_record.queue_id, our_record.flag) == (real_record.queue_id, real_record.flag)
            assert our_record.properties.keys() == real_record.properties.keys()
            for name in our_record.properties.keys() - {"TIMER_DEQUEUE_MS", "TIMER_ENQUEUE_MS"}:
                assert our_record.properties[name] == real_record.properties[name], name


def test_the_defaults_are_those_of_rocketmq() -> None:
    config = StoreConfig()
    assert (config.timer_wheel, config.timer_precision_ms, config.timer_max_delay_seconds) == (True, 1000, 259_200)
    assert (config.timer_roll_window, config.timer_slot_limit, BrokerConfig().recall) == (172_800, 2**31 - 1, False)
