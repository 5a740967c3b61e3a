"""Two stores and the HA stream between them, over real sockets in this process."""

import asyncio
import contextlib
import logging
import resource
import socket
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from skyrocket.broker.replication.ha_client import HaClient
from skyrocket.broker.replication.ha_server import MAX_CONNECTIONS, HaServer
from skyrocket.broker.replication.logs import MasterLog, SlaveLog
from skyrocket.broker.replication.master_stream import TransferRules
from skyrocket.broker.replication.replicas import Replicas
from skyrocket.broker.replication.slave_stream import ReportRules
from skyrocket.clock import SystemClock
from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.protocol.ha import REPORT, TRANSFER
from skyrocket.remoting.addresses import Address
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL
from tests.waiting import until

FAST = 0.05


class Master:
    """A store whose log is offered on a free port."""

    def __init__(self, store: MessageStore, rules: TransferRules, refusal: str | None = None) -> None:
        self.store = store
        self.replicas = Replicas()
        self.server = HaServer(MasterLog(store), self.replicas, SystemClock(), lambda _: refusal, rules)
        self.address = Address("127.0.0.1", 0)

    def put(self, count: int, size: int = 100) -> int:
        for number in range(count):
            assert self.store.put(PutMessage("Orders", number % 4, bytes(size))).physical_offset >= 0
        self.store.dispatch()
        self.server.appended()
        return self.store.commit_log.written_offset

    def log(self) -> bytes:
        return log_of(self.store)


class UnflushedLog:
    """A log of which the disk has nothing yet."""

    def __init__(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.safe_offset = 0

    def append(self, offset: int, data: bytes | memoryview) -> None:
        raise AssertionError(f"{len(data)} bytes came for {offset}")


def has_end(store: MessageStore, end_offset: int) -> bool:
    return store.commit_log.written_offset == end_offset


def log_of(store: MessageStore) -> bytes:
    """All bytes of a log, file ends among them."""
    log, at, found = store.commit_log, store.commit_log.min_offset, b""
    while piece := log.raw(at, 1 << 20):
        found += piece
        at += len(piece)
    return found


@contextlib.asynccontextmanager
async def running_master(
    directory: Path, rules: TransferRules | None = None, refusal: str | None = None
) -> AsyncIterator[Master]:
    with MessageStore(directory, SMALL) as store:
        master = Master(store, rules or TransferRules(from_first_file=True), refusal)
        master.address = await master.server.listen("127.0.0.1", 0)
        try:
            yield master
        finally:
            master.server.stop()
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def following(directory: Path, master: Address, config: StoreConfig = SMALL) -> AsyncIterator[MessageStore]:
    with MessageStore(directory, config) as store:
        client = HaClient(SlaveLog(store), SystemClock(), lambda: master, rules=ReportRules(retry_seconds=FAST))
        task = asyncio.create_task(client.run())
        try:
            yield store
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_slave_has_its_masters_log_byte_for_byte_and_builds_its_own_queues(tmp_path: Path) -> None:
    async with running_master(tmp_path / "master") as master:
        master.put(500)
        async with following(tmp_path / "slave", master.address) as slave:
            end = master.put(500, size=3000)  # several files of 1 MiB
            await until(lambda: slave.commit_log.written_offset == end)
            assert log_of(slave) == master.log()
            slave.dispatch()
            assert [slave.max_offset("Orders", queue) for queue in range(4)] == [250] * 4
            await until(lambda: master.replicas.held_by(end) == 2)


async def test_what_is_appended_within_a_moment_goes_together_where_nobody_waits_for_it(tmp_path: Path) -> None:
    """With a transfer for each turn of the loop an asynchronous slave cost senders a tenth more."""
    rules = TransferRules(from_first_file=True, gather_seconds=0.2)
    async with running_master(tmp_path / "master", rules) as master:
        reader, writer = await asyncio.open_connection(*master.address)
        writer.write(REPORT.pack(0))
        await until(lambda: list(master.server.slaves()))
        for _ in range(20):
            end = master.put(1)
            await asyncio.sleep(0)
        offset, transfers = 0, 0
        while offset < end:
            start, size = TRANSFER.unpack(await reader.readexactly(TRANSFER.size))
            assert start == offset
            offset += len(await reader.readexactly(size))
            transfers += 1
            writer.write(REPORT.pack(offset))
        assert transfers < 20
        await until(lambda: master.replicas.held_by(end) == 2)
        writer.close()


async def test_what_is_much_already_waits_for_no_more(tmp_path: Path) -> None:
    rules = TransferRules(
        from_first_file=True,
        batch_bytes=1000,
        catch_up_bytes=1000,
        gather_seconds=3600.0,
        heartbeat_seconds=3600.0,
        silence_seconds=3600.0,
        look_seconds=3600.0,
    )
    async with running_master(tmp_path / "master", rules) as master:
        reader, writer = await asyncio.open_connection(*master.address)
        writer.write(REPORT.pack(0))
        await until(lambda: list(master.server.slaves()))
        end = master.put(1, size=2000)
        start, size = TRANSFER.unpack(await reader.readexactly(TRANSFER.size))
        assert (start, len(await reader.readexactly(size))) == (0, 1000)
        assert end > 2000
        writer.close()


async def test_a_slave_that_comes_back_goes_on_where_its_log_ends(tmp_path: Path) -> None:
    async with running_master(tmp_path / "master") as master:
        for _ in range(3):
            end = master.put(100, size=2000)
            async with following(tmp_path / "slave", master.address) as slave:
                await until(partial(has_end, slave, end))
        with MessageStore(tmp_path / "slave", SMALL) as store:
            assert log_of(store) == master.log()


async def test_a_slave_that_flushes_each_write_acknowledges_what_its_disk_has(tmp_path: Path) -> None:
    config = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with (
        running_master(tmp_path / "master") as master,
        following(tmp_path / "slave", master.address, config) as slave,
    ):
        end = master.put(10)
        await until(lambda: master.replicas.held_by(end) == 2)
        assert slave.commit_log.flushed_offset == end


async def test_a_stranger_is_let_go_with_a_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_master(tmp_path / "master", refusal="192.0.2.1 is not of this set") as master:
        reader, writer = await asyncio.open_connection(master.address.host, master.address.port)
        assert await reader.read() == b""
        writer.close()
    assert "is not of this set" in caplog.text


async def test_garbage_and_a_log_that_is_ahead_change_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running_master(tmp_path / "master") as master:
        before = (master.put(5), master.log())
        for hello in (b"GET / HTTP/1.1\r\n\r\n", REPORT.pack(-5), REPORT.pack(1 << 40), b"\xff" * 64):
            reader, writer = await asyncio.open_connection(master.address.host, master.address.port)
            writer.write(hello)
            assert await reader.read() == b""
            writer.close()
        assert (master.store.commit_log.written_offset, master.log()) == before
    assert "it has records that this master lost or never had" in caplog.text


async def test_no_more_slaves_than_the_bound_are_taken(tmp_path: Path) -> None:
    async with running_master(tmp_path / "master") as master:
        end = master.put(1)
        held = []
        for _ in range(MAX_CONNECTIONS):
            reader, writer = await asyncio.open_connection(master.address.host, master.address.port)
            writer.write(REPORT.pack(end))
            held.append((reader, writer))
        await until(lambda: len(list(master.server.slaves())) == MAX_CONNECTIONS)
        reader, writer = await asyncio.open_connection(master.address.host, master.address.port)
        assert await reader.read() == b""
        for _, one in [*held, (reader, writer)]:
            one.close()


async def test_who_only_connects_keeps_no_slave_out(tmp_path: Path) -> None:
    async with running_master(tmp_path / "master") as master:
        end = master.put(1)
        silent = [
            await asyncio.open_connection(master.address.host, master.address.port) for _ in range(MAX_CONNECTIONS)
        ]
        async with following(tmp_path / "slave", master.address) as slave:
            await until(lambda: slave.commit_log.written_offset == end)
        for _, writer in silent:
            writer.close()


async def crowd(tmp_path: Path, connections: int, caplog: pytest.LogCaptureFixture) -> None:
    """Connections that stay open at their end: a third says nothing, a third garbage, a third a log that is ahead."""
    hellos = (b"", b"GET / HTTP/1.1\r\n\r\n", REPORT.pack(1 << 40))
    async with running_master(tmp_path / "master") as master:
        before = (master.put(5), master.log())
        memory, sockets = resident_bytes(), []
        loop = asyncio.get_running_loop()
        try:
            for number in range(connections):
                one = socket.socket()
                sockets.append(one)
                one.setblocking(False)
                await loop.sock_connect(one, tuple(master.address))
                with contextlib.suppress(ConnectionError):
                    await loop.sock_sendall(one, hellos[number % 3])
                assert len(master.server._links) <= MAX_CONNECTIONS
            async with following(tmp_path / "slave", master.address) as slave:
                await until(partial(has_end, slave, before[0]))
            grown = resident_bytes() - memory
        finally:
            for one in sockets:
                one.close()
        assert (master.store.commit_log.written_offset, master.log()) == before
    assert grown < 32 << 20, f"{grown >> 20} MiB for {connections} connections"
    reasons = [each for each in caplog.messages if "slave let go" in each]
    assert any("it has records that this master lost or never had" in each for each in reasons)
    assert len(reasons) < 10, "one line for each reason"


def resident_bytes() -> int:
    """Of this process, in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def test_three_hundred_connections_keep_no_slave_out_and_fill_neither_memory_nor_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await crowd(tmp_path, 300, caplog)


@pytest.mark.slow
async def test_ten_thousand_connections_keep_no_slave_out_and_fill_neither_memory_nor_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if limit != resource.RLIM_INFINITY and limit < 10_500:
        pytest.skip(f"this process may have {limit} open files, ten thousand connections need more")
    await crowd(tmp_path, 10_000, caplog)


async def test_a_master_that_sends_other_bytes_is_left_and_nothing_is_appended(tmp_path: Path) -> None:
    async def wrong(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (asked,) = REPORT.unpack(await reader.readexactly(8))
        writer.write(TRANSFER.pack(asked + 4096, 4) + b"oops")
        await reader.read()
        writer.close()

    async with running_master(tmp_path / "master") as master:
        end = master.put(5)
        async with following(tmp_path / "slave", master.address) as slave:
            await until(lambda: slave.commit_log.written_offset == end)
    server = await asyncio.start_server(wrong, "127.0.0.1", 0)
    async with server:
        address = Address(*server.sockets[0].getsockname()[:2])
        with MessageStore(tmp_path / "slave", SMALL) as store:
            client = HaClient(SlaveLog(store), SystemClock(), lambda: address, rules=ReportRules(retry_seconds=FAST))
            task = asyncio.create_task(client.run())
            await until(lambda: "bytes of offset" in (client.trouble or ""))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert store.commit_log.written_offset == end


async def test_a_slave_that_waits_for_its_disk_reports_nothing_before_the_disk_has_its_whole_log(
    tmp_path: Path,
) -> None:
    reports: list[int] = []
    callbacks: list[Callable[[bool], None]] = []

    async def heard(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reports.append(*REPORT.unpack(await reader.readexactly(8)))
        await reader.read()
        writer.close()

    async with await asyncio.start_server(heard, "127.0.0.1", 0) as server:
        address = Address(*server.sockets[0].getsockname()[:2])
        log = UnflushedLog(1000)
        client = HaClient(
            log,
            SystemClock(),
            lambda: address,
            rules=ReportRules(retry_seconds=FAST),
            when_flushed=lambda _, told: callbacks.append(told),
        )
        task = asyncio.create_task(client.run())
        await until(lambda: callbacks)
        assert reports == []
        log.safe_offset = 1000
        callbacks[0](True)
        await until(lambda: reports)
        assert reports == [1000]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_master_that_is_not_found_at_once_is_told_when_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    clock, asked = FakeClock(), 0

    def nobody() -> None:
        nonlocal asked
        asked += 1

    client = HaClient(UnflushedLog(0), clock, nobody, rules=ReportRules(retry_seconds=0.01))
    following = asyncio.create_task(client.run())
    await until(lambda: asked > 5)
    assert client.trouble == "the address of the master's HA port is not known", "/ready says it at once"
    assert not caplog.messages, "every start of a set begins so"
    clock.advance(seconds=3)
    await until(lambda: caplog.messages)
    before = asked
    await until(lambda: asked > before + 5)
    assert caplog.messages == ["not following reason=the address of the master's HA port is not known"]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_somebody_who_looks_whether_the_port_is_open_and_goes_at_once_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_master(tmp_path / "master") as master:
        end = master.put(10)
        with socket.create_connection((master.address.host, master.address.port)) as look:
            look.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        async with following(tmp_path / "slave", master.address) as slave:
            await until(lambda: has_end(slave, end))
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
