"""A master and its slave as processes, a wire between them that can be broken, and senders that never give up.

senders ─▶ master ═══ wire ═══▶ slave         the wire is a proxy for the HA connection: cut, frozen, or slow
             │                     │
           store                 store        kill -9, SIGSTOP, a store that is thrown away, a disk that is full or slow

Each store lies on a small file system of its own, in memory, where this machine lets us mount one.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from skyrocket.protocol.bodies.replication import HaStatus
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerHaStatus
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.faults import slow_disk
from tests.faults.broker_load import QUEUES, Ledger, send_request
from tests.integration.program import SMALL_FILES, Program
from tests.ports import free_port
from tests.waiting import SECONDS

_logger = logging.getLogger(__name__)

BROKER: Final = "broker-a"
SLAVE_TIMEOUT_MS: Final = 1500
_REST_SECONDS: Final = 0.05
_CHUNK: Final = 16 << 10
_DISK_BYTES: Final = 512 << 20  # at most, of memory
_QUICK = (
    f"slaveTimeout={SLAVE_TIMEOUT_MS}",
    "haHousekeepingInterval=3000",
    "haSendHeartbeatInterval=500",
    "slaveReadEnable=true",
    "cleanFileForciblyEnable=false",  # or the oldest files of a full disk go, whether they are read or not
)


class Wire:
    """A proxy on loopback for the slave's connection to its master."""

    def __init__(self) -> None:
        self.target = 0  # the master's HA port
        self.port = 0
        self.is_cut = False
        self.pause_seconds = 0.0  # for each chunk
        self._open = asyncio.Event()
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """End what is connected, and whoever comes."""
        self.is_cut = True
        for writer in self._writers:
            writer.transport.abort()

    def freeze(self) -> None:
        """Keep connections, and let no byte through in either direction: a partition."""
        self._open.clear()

    def mend(self) -> None:
        self.is_cut, self.pause_seconds = False, 0.0
        self._open.set()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self.is_cut:
                return
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            self._writers.add(far_writer)
            try:
                both = [
                    asyncio.create_task(self._pipe(reader, far_writer)),
                    asyncio.create_task(self._pipe(far_reader, writer)),
                ]
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pipe in both:
                        pipe.cancel()
                    await asyncio.gather(*both, return_exceptions=True)
            finally:
                self._writers.discard(far_writer)
                far_writer.transport.abort()
        except OSError:
            pass  # the master is not there: the slave hears the end of its connection
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._open.wait()
                if self.pause_seconds:
                    await asyncio.sleep(self.pause_seconds)
                writer.write(data)
                await writer.drain()

    async def close(self) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
        self._open.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class ReplicatedPair:
    """The processes; a broker that is started again has the ports that it had."""

    def __init__(self, folder: Path, role: str, *settings: str) -> None:
        """`settings` are of both brokers."""
        self.folder = folder
        self.role = role
        self._settings = settings
        self.wire = Wire()
        self.client = RemotingClient()
        self.master_at = self.slave_at = ""
        self._ports: dict[Path, tuple[int, int]] = {}  # of each store's broker: for clients and for slaves
        self._disks = contextlib.ExitStack()
        self._processes = contextlib.ExitStack()
        self.has_disks = shutil.which("mount") is not None
        self.master_store = self.slave_store = folder

    async def __aenter__(self) -> Self:
        await self.wire.listen()
        names = self._processes.enter_context(
            Program("namesrv", "--listen-port", "0", "--bind-address", "127.0.0.1", home=self.folder)
        )
        self.name_server = "127.0.0.1:" + names.await_line(r":(\d+)")[1]
        self.master_store, self.slave_store = self._new_store(), self._new_store()
        await self.start_master()
        await self.start_slave()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.wire.close()
        await asyncio.to_thread(self._processes.close)
        await asyncio.to_thread(self._disks.close)

    def _new_store(self) -> Path:
        disk = self.folder / f"disk-{len(self._ports) + 1}"
        disk.mkdir()
        if self.has_disks:
            self.has_disks = self._mount(disk)
        store = disk / "store"
        self._ports[store] = (free_port(), free_port())
        return store

    def _mount(self, disk: Path) -> bool:
        size = f"size={_DISK_BYTES}"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(disk)], capture_output=True, text=True)
        if done.returncode:
            _logger.warning("no full disks here: %s", done.stderr.strip())
            return False
        self._disks.callback(subprocess.run, ["umount", "-l", str(disk)], check=True)
        return True

    async def start_master(self) -> None:
        self.master, self.master_at = await self._start(self.master_store, (f"brokerRole={self.role}", "brokerId=0"))
        self.wire.target = self._ports[self.master_store][1]

    async def start_slave(self) -> None:
        wire = f"haMasterAddress=127.0.0.1:{self.wire.port}"
        self.slave, self.slave_at = await self._start(self.slave_store, ("brokerRole=SLAVE", "brokerId=1", wire))

    async def _start(self, store: Path, settings: tuple[str, ...]) -> tuple[Program, str]:
        port, ha_port = self._ports[store]
        given = ["broker", "-n", self.name_server, "--broker-ip", "127.0.0.1", "--store", str(store)]
        given += ["--listen-port", str(port), "--set", f"haListenPort={ha_port}"]
        for setting in (f"brokerName={BROKER}", *SMALL_FILES, *_QUICK, *self._settings, *settings):
            given += ["--set", setting]
        slow_sync = {slow_disk.FILE_VARIABLE: str(_slow_sync_file(store))}
        program = self._processes.enter_context(
            Program(*given, home=self.folder, environment=slow_sync, module=slow_disk.__name__)
        )
        ready = await asyncio.to_thread(program.await_line, rf"The broker\[{BROKER}, (\S+)\] boot success")
        return program, ready[1]

    # ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def restart_slave(self) -> None:
        """kill -9, and again."""
        await asyncio.to_thread(self.slave.kill)
        await self.start_slave()

    async def restart_master(self) -> None:
        await asyncio.to_thread(self.master.kill)
        await self.start_master()

    async def pause(self, program: Program, seconds: float) -> None:
        """SIGSTOP: it is there, and does nothing."""
        program.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            program.process.send_signal(signal.SIGCONT)

    async def fill(self, store: Path, seconds: float) -> None:
        """Leave no room on the disk of a store for a while."""
        filler = store.parent / "filler"
        room = os.statvfs(store.parent)
        with filler.open("wb") as opened:
            with contextlib.suppress(OSError):  # somebody was quicker
                os.posix_fallocate(opened.fileno(), 0, max(room.f_bavail * room.f_frsize, 1))
            try:
                await asyncio.sleep(seconds)
            finally:
                filler.unlink()

    @contextlib.contextmanager
    def slow_disk(self, store: Path, sync_seconds: float) -> Iterator[None]:
        """Each fsync of a store's broker takes so long."""
        file = _slow_sync_file(store)
        new = file.with_suffix(".new")
        new.write_text(str(sync_seconds))
        new.replace(file)  # never half a number
        try:
            yield
        finally:
            file.unlink()

    async def starve(self, program: Program, seconds: float) -> None:
        """Let it work in short pulses alone, as one that waits for its machine most of the time."""
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            await self.pause(program, 0.08)
            await asyncio.sleep(0.02)

    async def lose_master(self) -> None:
        """kill -9 of the master, its store is gone; the slave becomes the master, a new slave begins with nothing."""
        await asyncio.to_thread(self.master.kill)
        await asyncio.to_thread(shutil.rmtree, self.master_store)
        await asyncio.to_thread(self.slave.kill)
        self.master_store, self.slave_store = self.slave_store, self._new_store()
        await self.start_master()
        await self.start_slave()

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def status(self) -> HaStatus:
        """What the master says of its slaves."""
        return HaStatus.decode(bytes((await self.client.call(self.master_at, GetBrokerHaStatus())).body))

    async def in_sync(self) -> HaStatus:
        """Wait until the slave lacks nothing; what the master says then."""
        async with asyncio.timeout(SECONDS):
            while True:
                with contextlib.suppress(RemotingError, RequestError):
                    status = await self.status()
                    if status.in_sync_slaves and all(each.lag_bytes == 0 for each in status.connections):
                        return status
                await asyncio.sleep(0.05)


def _slow_sync_file(store: Path) -> Path:
    """Beside the disk of a store, not on it: that may be full."""
    return store.parent.with_suffix(".slow")


class Senders:
    """Several connections with several sends each; what is not acknowledged is forgotten, and the next one is sent.

    A connection on which an answer is missing is given up, and the next one is another producer: what the old one had
    sent may still lie in the broker's buffers, and is stored behind the first messages of the new one.
    """

    def __init__(self, pair: ReplicatedPair, ledger: Ledger, connections: int, on_their_way: int, pause: float) -> None:
        self._pair = pair
        self._ledger = ledger
        self._connections = connections
        self._on_their_way = on_their_way
        self._pause = pause
        self._tasks: list[asyncio.Task[None]] = []
        self._lives = 0
        self.refused = 0

    async def __aenter__(self) -> Self:
        self._lives += 1
        for number in range(self._connections):
            self._tasks.append(asyncio.create_task(self._connect_again(f"{self._lives}.{number}", number % QUEUES)))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        failed = [each for each in ended if isinstance(each, Exception)]
        if failed and kind is None:
            raise failed[0]

    async def _connect_again(self, name: str, queue_id: int) -> None:
        for attempt in itertools.count():
            bodies = self._ledger.bodies(f"{name}.{attempt}")
            given_up = asyncio.Event()
            async with RemotingClient() as client, asyncio.TaskGroup() as group:
                for _ in range(self._on_their_way):
                    group.create_task(self._send_on(client, queue_id, bodies, given_up))
            await asyncio.sleep(_REST_SECONDS)

    async def _send_on(
        self, client: RemotingClient, queue_id: int, bodies: Iterator[bytes], given_up: asyncio.Event
    ) -> None:
        queue = self._ledger.queues[queue_id]
        while not given_up.is_set():
            body = next(bodies)
            try:
                reply = await client.call(self._pair.master_at, send_request(queue_id), body, timeout_seconds=4)
            except RemotingError:
                self.refused += 1
                given_up.set()
            except RequestError:  # FLUSH_SLAVE_TIMEOUT and the like: nobody promised anything
                self.refused += 1
                await asyncio.sleep(_REST_SECONDS)
            else:
                queue.keep(queue.acknowledged, reply.header.queue_offset, body)
                await asyncio.sleep(self._pause)


@contextlib.asynccontextmanager
async def acknowledging(senders: Senders, ledger: Ledger, at_least: int) -> AsyncIterator[None]:
    """While senders run; at the end of it they have been heard at least so often."""
    before = ledger.acknowledged_count
    async with senders:
        yield
        async with asyncio.timeout(SECONDS):
            while ledger.acknowledged_count < before + at_least:
                await asyncio.sleep(0.02)
