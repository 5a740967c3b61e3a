"""A broker under pressure: who is refused with which words, and that the others do not notice."""

import asyncio
import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.core.request_classes import RequestClasses
from skyrocket.broker.flow.fast_failure import SWEEP_SECONDS
from skyrocket.config.sections import BrokerConfig, FlushDiskType, StoreConfig
from skyrocket.format.record import decode_records
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ServiceNotAvailable, SystemBusy
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.consumers import GetConsumerListByGroup
from skyrocket.protocol.requests.offsets import (
    GetMaxOffset,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    UpdateConsumerOffset,
)
from skyrocket.protocol.requests.pulling import LitePullMessage
from skyrocket.protocol.requests.query import QueryMessage
from skyrocket.remoting.exchange import command_of
from skyrocket.store.index_file import IndexFile
from tests.cluster.broker.broker_fixture import (
    GROUP,
    PULL_CODES,
    SMALL,
    TOPIC,
    RunningBroker,
    heartbeat,
    message,
    pull_request,
    running_broker,
)
from tests.unit.store.stores import clean_expired
from tests.waiting import until

CLEANED = r"broker busy, start flow control for a while, period in queue: (\d+)ms, size of queue: (\d+)"
BY_KEY = QueryMessage(topic=TOPIC, key="k", max_num=32, begin_timestamp=0, end_timestamp=1 << 62)
BY_TIME = SearchOffsetByTimestamp(topic=TOPIC, queue_id=0, timestamp=0)


async def assert_others_are_served(given: RunningBroker, *, but: str = "") -> None:
    """One request of every class, except the one that is in trouble."""
    client, address = given.client, given.address
    served: dict[str, Callable[[], Any]] = {
        "send": given.send,
        "pull": given.pull,
        "lite_pull": lambda: client.call(address, lite_pull(), accepted=PULL_CODES),
        "heartbeat": lambda: client.call(address, HeartBeat(), heartbeat("other")),
        "consumer_manage": lambda: client.call(
            address, UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=0)
        ),
        "admin": lambda: client.call(address, GetMaxOffset(topic=TOPIC, queue_id=0)),
    }
    for name, ask in served.items():
        if name != but:
            await ask()  # in the three seconds of a call


def lite_pull(offset: int = 0, queue_id: int = 0, suspend_ms: int = 0) -> LitePullMessage:
    header = pull_request(offset, queue_id, suspend_ms)
    values = {field.attribute: getattr(header, field.attribute) for field in LitePullMessage.wire_fields}
    return LitePullMessage(**values)


# ── [OVERLOAD]: a class is full ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C163", "C160")
@pytest.mark.requirement("E021")
async def test_sends_beyond_the_bound_are_refused_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with running_broker(tmp_path, BrokerConfig(send_capacity=5), store) as given:
        await given.send()
        await given.pull()  # makes the group
        waiting: list[Callable[[bool], None]] = []
        monkeypatch.setattr(given.broker.store.flusher, "when_flushed", lambda _, answer: waiting.append(answer))
        sends = [asyncio.create_task(given.send()) for _ in range(5)]
        await until(lambda: given.broker.parts.classes.send.in_hand == 5)
        with pytest.raises(SystemBusy) as refused:
            await given.send()
        assert refused.value.remark == "[OVERLOAD]system busy, start flow control for a while"
        await given.client.call_oneway(given.address, message(), b"refused too, but nobody hears of it")
        await assert_others_are_served(given, but="send")
        assert given.broker.parts.classes.send.refused == 2
        for answer in waiting:
            answer(True)
        await asyncio.gather(*sends)
        monkeypatch.undo()
        assert (await given.send()).queue_offset == 6


@pytest.mark.requirement("E021")
async def test_a_flood_of_pulls_that_wait_leaves_the_others_served(tmp_path: Path) -> None:
    capacity, each = 10_000, 1000
    async with running_broker(tmp_path, BrokerConfig(pull_capacity=capacity, pull_wait_ms=60_000)) as given:
        await given.send()
        await given.pull()
        pulls = given.broker.parts.classes.pull
        with contextlib.ExitStack() as stack:
            for first in range(0, 3 * capacity, each):
                flood = stack.enter_context(connected(given))
                waits = [numbered(first + i, command_of(pull_request(0, 1, 60_000))) for i in range(each)]
                await asyncio.to_thread(flood.sendall, b"".join(map(encode, waits)))
            await until(lambda: pulls.refused and pulls.in_hand + pulls.refused == 3 * capacity)
            assert capacity // 2 < pulls.in_hand < capacity, "some places are left"
            assert (await given.pull()).code == 0
            waiting = asyncio.create_task(given.pull(1, suspend_ms=30_000))
            for _ in range(10):
                await assert_others_are_served(given, but="pull")
            await given.send()
            assert (await waiting).code == 0
        await until(lambda: pulls.in_hand == 0)


@contextlib.contextmanager
def connected(given: RunningBroker, receive_buffer: int = 0) -> Iterator[socket.socket]:
    sock = socket.socket()
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.connect(("127.0.0.1", given.port))
    with sock:
        yield sock


def numbered(opaque: int, command: RemotingCommand) -> RemotingCommand:
    command.opaque = opaque
    return command


async def test_lite_pulls_have_a_bound_of_their_own(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(lite_pull_capacity=1)) as given:
        await given.send()
        waiting = asyncio.create_task(given.client.call(given.address, lite_pull(0, 1, 20_000)))
        await until(lambda: given.broker.parts.classes.lite_pull.in_hand == 1)
        with pytest.raises(SystemBusy, match=r"^\[OVERLOAD\]"):
            await given.client.call(given.address, lite_pull(0, 1, 20_000))
        assert (await given.pull()).code == 0
        await given.send(b"at last", queue_id=1)
        assert [record.body for record in decode_records((await waiting).body)] == [b"at last"]


def test_every_class_has_the_bound_of_its_setting() -> None:
    keys = {
        "send": "send_capacity",
        "pull": "pull_capacity",
        "lite_pull": "lite_pull_capacity",
        "ack": "ack_capacity",
        "reply": "reply_capacity",
        "query_message": "query_capacity",
        "admin": "admin_capacity",
        "client_manager": "client_capacity",
        "heartbeat": "heartbeat_capacity",
        "consumer_manager": "offset_capacity",
        "transaction": "end_transaction_capacity",
        "load_balance": "load_balance_capacity",
    }
    numbers: dict[str, Any] = {attribute: number for number, attribute in enumerate(keys.values(), 1)}
    config = BrokerConfig(**numbers)
    bounds = {each.name: each.limit for each in RequestClasses(config)}
    assert bounds == {name: number for number, name in enumerate(keys, 1)}
    classes = RequestClasses(BrokerConfig())
    members = {code: classes.of(code).name for code in (10, 36, 11, 361, 324, 12, 33, 35, 46, 34, 38, 15, 14, 17, 9999)}
    assert members == {
        10: "send",
        36: "send",
        11: "pull",
        361: "lite_pull",
        324: "reply",
        12: "query_message",
        33: "query_message",
        35: "client_manager",
        46: "client_manager",
        34: "heartbeat",
        38: "consumer_manager",
        15: "consumer_manager",
        14: "consumer_manager",
        17: "admin",
        9999: "admin",
    }


@pytest.mark.requirement("C161")
def test_the_limits_are_those_of_rocketmq_unless_they_are_set() -> None:
    classes = RequestClasses(BrokerConfig())
    assert SWEEP_SECONDS == 0.010
    assert StoreConfig().page_cache_busy_ms == 1000
    assert (classes.send.wait_limit_ms, classes.send.limit) == (200, 10_000)
    waits = {each.name: each.wait_limit_ms for each in classes if each.wait_limit_ms is not None}
    assert waits == {
        "send": 200,
        "pull": 5000,
        "lite_pull": 5000,
        "heartbeat": 31_000,
        "transaction": 3000,
        "ack": 3000,
        "admin": 5000,
    }


# ── [TIMEOUT_CLEAN_QUEUE]: read, but not begun in time ───────────────────────────────────────────────────────────────


@pytest.mark.requirement("E021")
async def test_slow_queries_keep_their_threads_busy_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = BrokerConfig(query_threads=1, query_capacity=2, admin_wait_ms=150)
    async with running_broker(tmp_path, config) as given:
        await given.send()
        await given.pull()
        disk_is_back = threading.Event()
        search = given.broker.store.reader.query

        def slow_search(*args: Any, **options: Any) -> Any:
            assert disk_is_back.wait(20)
            return search(*args, **options)

        monkeypatch.setattr(given.broker.store.reader, "query", slow_search)
        stuck = asyncio.create_task(given.client.invoke(given.address, command_of(BY_KEY), 20))
        behind = asyncio.create_task(given.client.invoke(given.address, command_of(BY_KEY), 20))
        await until(lambda: given.broker.parts.classes.query.in_hand == 2)
        with pytest.raises(SystemBusy, match=r"^\[OVERLOAD\]"):
            await given.client.call(given.address, BY_KEY)
        await assert_others_are_served(given)
        disk_is_back.set()
        assert ((await stuck).code, (await behind).code) == (22, 22)


async def test_a_request_that_gets_no_thread_in_time_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_broker(tmp_path, BrokerConfig(query_threads=1, admin_wait_ms=150)) as given:
        await given.send()
        disk_is_back = threading.Event()
        monkeypatch.setattr(given.broker.store.reader, "query", lambda *_, **__: disk_is_back.wait(20) and [])
        stuck = asyncio.create_task(given.client.invoke(given.address, command_of(BY_KEY), 20))
        await until(lambda: given.broker.parts.classes.query.in_hand == 1)
        with pytest.raises(SystemBusy) as refused:
            await given.client.call(given.address, BY_TIME, timeout_seconds=18)
        cleaned = re.fullmatch(r"\[TIMEOUT_CLEAN_QUEUE\]" + CLEANED, refused.value.remark or "")
        assert cleaned is not None
        assert (150 <= int(cleaned[1]) < 18_000, cleaned[2]) == (True, "0")
        disk_is_back.set()
        await stuck
        assert (await given.client.call(given.address, BY_TIME)).header.offset == 0


@pytest.mark.requirement("C161", "C160")
@pytest.mark.parametrize("enabled", [True, False])
async def test_sends_behind_answers_that_nobody_reads_are_swept_after_200_ms(tmp_path: Path, enabled: bool) -> None:
    store = replace(SMALL, commit_log_file_size=8 << 20)
    async with running_broker(tmp_path, BrokerConfig(fast_failure=enabled), store) as given:
        for _ in range(4):
            await given.send(bytes(64 << 10))
        with connected(given, receive_buffer=64 << 10) as sock:
            pulls = [numbered(i, command_of(pull_request())) for i in range(80)]
            send = numbered(1000, command_of(message(), b"behind"))
            sock.sendall(b"".join(map(encode, [*pulls, send])))
            if enabled:
                await until(lambda: given.broker.parts.classes.send.refused == 1)
            else:
                await asyncio.sleep(0.6)
            await assert_others_are_served(given)
            stored = (await given.client.call(given.address, GetMaxOffset(topic=TOPIC, queue_id=0))).header.offset
            answers = {each.opaque: each for each in await asyncio.to_thread(received, sock, 81)}
        assert all(answers[i].code == 0 for i in range(80))
        if not enabled:
            assert (answers[1000].code, stored) == (0, 5)
            return
        assert answers[1000].code == 2
        cleaned = re.fullmatch(r"\[TIMEOUT_CLEAN_QUEUE\]" + CLEANED, answers[1000].remark or "")
        assert cleaned is not None
        assert 200 <= int(cleaned[1]) < 60_000
        assert (await given.pull(5)).header.max_offset == 5  # four, and one of those that were served


def received(sock: socket.socket, count: int) -> list[RemotingCommand]:
    frames = FrameReader()
    found: list[RemotingCommand] = []
    sock.settimeout(10)
    while len(found) < count:
        found += frames.receive(sock.recv(1 << 20))
    return found


@pytest.mark.requirement("E021")
async def test_a_search_in_an_old_index_file_on_a_slow_disk_does_not_hold_up_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = replace(SMALL, index_slots=10, index_entries=20, index_batch_records=1)
    async with running_broker(tmp_path, store=store) as given:
        for i in range(50):
            await given.client.call(given.address, message(properties=f"KEYS\x01k{i}\x02"), b"%d" % i)
        await given.pull()
        index, disk_is_back, is_reading = given.broker.store.index, threading.Event(), threading.Event()
        assert index is not None
        find = IndexFile.find

        def slow_find(file: IndexFile, *args: Any) -> Any:
            if file is not index._current:
                is_reading.set()
                assert disk_is_back.wait(20)
            return find(file, *args)

        monkeypatch.setattr(IndexFile, "find", slow_find)
        by_key = replace(BY_KEY, key="k3")
        search = asyncio.create_task(given.client.invoke(given.address, command_of(by_key), 20))
        await until(is_reading.is_set)
        for _ in range(20):
            await assert_others_are_served(given)
        assert not search.done()
        disk_is_back.set()
        assert [record.body for record in decode_records((await search).body)] == [b"3"]


# ── [PCBUSY_CLEAN_QUEUE] and [REJECTREQUEST]: the log cannot be written ──────────────────────────────────────────────


@pytest.mark.requirement("C161", "C160")
async def test_sends_that_waited_while_an_append_stood_still_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path, store=replace(SMALL, page_cache_busy_ms=200)) as given:
        await given.send()
        log, is_held, append_began = given.broker.store.commit_log, threading.Event(), threading.Event()
        append = log.append

        def watched_append(rows: Any) -> Any:
            append_began.set()
            return append(rows)

        monkeypatch.setattr(log, "append", watched_append)

        def slow_disk(meanwhile: socket.socket) -> None:
            with log.lock:  # an append takes it, so the event loop's thread stands still as on a slow disk
                is_held.set()
                assert append_began.wait(20)
                meanwhile.sendall(encode(numbered(2, command_of(message(), b"meanwhile"))))
                time.sleep(0.5)

        with connected(given) as first, connected(given) as second:
            disk = threading.Thread(target=slow_disk, args=(second,))
            disk.start()
            assert is_held.wait(20)
            first.sendall(encode(numbered(1, command_of(message(), b"slow"))))
            (slow,) = await asyncio.to_thread(received, first, 1)
            (refused,) = await asyncio.to_thread(received, second, 1)
            disk.join()
        assert slow.code == 0
        assert refused.code == 2
        cleaned = re.fullmatch(r"\[PCBUSY_CLEAN_QUEUE\]" + CLEANED, refused.remark or "")
        assert cleaned is not None
        assert 400 <= int(cleaned[1]) < 60_000
        await until(lambda: not given.broker.parts.classes.send.is_rejecting)
        assert (await given.send()).queue_offset == 2


@pytest.mark.requirement("C162", "C160")
async def test_sends_are_rejected_while_no_transient_buffer_is_free(tmp_path: Path) -> None:
    store = replace(SMALL, transient_pool=True, transient_pool_size=3)
    async with running_broker(tmp_path, store=store) as given:
        await given.send()
        pool = given.broker.store.pool
        assert pool is not None
        borrowed = [pool.borrow() for _ in range(pool.free)]
        await given.send()  # its buffer has room: from now on it is known that there is no other
        for _ in range(2):
            with pytest.raises(SystemBusy) as refused:
                await given.send()
            assert refused.value.remark == "[REJECTREQUEST]system busy, start flow control for a while"
        await assert_others_are_served(given, but="send")
        for buffer in borrowed:
            pool.give_back(buffer)
        await until(lambda: not given.broker.parts.classes.send.is_rejecting)
        await given.send()


async def test_the_store_itself_says_so_when_it_finds_no_buffer(tmp_path: Path) -> None:
    small_files = replace(SMALL, transient_pool=True, transient_pool_size=4, commit_log_file_size=16 << 10)
    async with running_broker(tmp_path, store=replace(small_files, commit_interval_ms=60_000)) as given:
        await given.send()
        await asyncio.sleep(0.1)  # the next file is made ready meanwhile
        pool = given.broker.store.pool
        assert pool is not None
        with connected(given) as sock:
            await until(lambda: given.broker.parts.server.connection_count == 2)
            for _ in range(pool.free):
                pool.borrow()
            # In one turn with that, so that nobody has looked at the pool in between.
            sends = [numbered(i, command_of(message(), bytes(5 << 10))) for i in range(10)]
            sock.sendall(b"".join(map(encode, sends)))
            answers = await asyncio.to_thread(received, sock, 10)
        remarks = {answer.remark for answer in answers if answer.code == 2}
        assert "[PC_SYNCHRONIZED]broker busy, start flow control for a while" in remarks
        assert any(answer.code == 0 for answer in answers)


@pytest.mark.requirement("C162")
async def test_sends_are_rejected_while_an_append_of_another_thread_stands_still(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send()
        log, clock = given.broker.store.commit_log, time
        log.append_began_ms = int(clock.time() * 1000) - 1500  # as an append has it that began then
        await given.client.call(given.address, GetMaxOffset(topic=TOPIC, queue_id=0))
        with pytest.raises(SystemBusy, match=r"^\[REJECTREQUEST\]"):
            await given.send()
        log.append_began_ms = 0
        await until(lambda: not given.broker.parts.classes.send.is_rejecting)
        await given.send()


# ── other refusals of the store ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A100")
async def test_a_disk_that_is_90_percent_full_takes_no_messages_but_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"kept")
        store = given.broker.store
        monkeypatch.setattr(store.disk, "used_ratio", lambda _: 0.91)
        await asyncio.to_thread(clean_expired, store)
        with pytest.raises(ServiceNotAvailable) as refused:
            await given.send()
        assert re.fullmatch(
            r"service not available now\. It may be caused by one of the following reasons: the broker's disk is "
            r"full \[CL: +\d+\.\d\d CQ: +\d+\.\d\d INDEX: +\d+\.\d\d\], messages are put to the slave, "
            r"message store has been shut down, etc\.",
            refused.value.remark or "",
        )
        assert [record.body for record in decode_records((await given.pull()).body)] == [b"kept"]
        monkeypatch.setattr(store.disk, "used_ratio", lambda _: 0.5)
        await asyncio.to_thread(clean_expired, store)
        await given.send()


async def test_an_unknown_group_asks_in_vain_while_its_class_is_free(tmp_path: Path) -> None:
    """The bounds are counted back: refusals of handlers leave nothing in hand."""

    async with running_broker(tmp_path) as given:
        for _ in range(50):
            answer = await given.client.invoke(
                given.address, command_of(GetConsumerListByGroup(consumer_group="Nobody"))
            )
            assert answer.code in (0, 1)
            query = QueryConsumerOffset(consumer_group="Nobody", topic=TOPIC, queue_id=0, set_zero_if_not_found=False)
            assert (await given.client.invoke(given.address, command_of(query))).code == 22
            await given.client.invoke(given.address, command_of(BY_KEY))
        assert all(each.in_hand == 0 for each in given.broker.parts.classes)
