"""Connections of this process, kept from task to task.

Spark reuses worker processes, so what a micro-batch has connected serves the next one. Nobody closes these: a worker is
ended by its Spark. A process that was forked begins with none.
"""

import asyncio
import hashlib
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from skyrocket.client import Admin
from skyrocket.client.consumer.queue_ranges import RangeReader
from skyrocket.client.core.instance import ClientInstance
from skyrocket.errors import ConfigError
from skyrocket.pipeline.topic_source.cluster import Cluster

T = TypeVar("T")


class SourceClient:
    """Our client for one cluster."""

    def __init__(self, instance: ClientInstance, admin: Admin) -> None:
        self.instance = instance
        self.admin = admin
        self.granted: dict[str, int] = {}  # how much each broker gives at once

    def reader(self) -> RangeReader:
        """Reads ranges of queues."""
        return RangeReader(self.instance, self.granted)

    async def close(self) -> None:
        """Leave the cluster."""
        await self.admin.stop()
        await self.instance.release()


class _Process:
    """The event loop thread and the connections of this process."""

    def __init__(self) -> None:
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: dict[Cluster, SourceClient] = {}

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _new_loop()
                threading.Thread(target=self._loop.run_forever, name="rocketmq-source", daemon=True).start()
            return self._loop

    async def connection(self, cluster: Cluster) -> SourceClient:
        known = self._connections.get(cluster)
        if known is None:
            made = await _connected(cluster)
            known = self._connections.setdefault(cluster, made)
            if known is not made:  # of two tasks that began together
                await made.close()
        return known

    async def close(self) -> None:
        while self._connections:
            await self._connections.popitem()[1].close()


async def _connected(cluster: Cluster) -> SourceClient:
    name = hashlib.sha256(repr((cluster, cluster.secret_key)).encode()).hexdigest()[:8]
    try:
        settings = cluster.client_settings(f"spark-{os.getpid()}-{name}")
    except OSError as error:
        raise ConfigError(f"the TLS options name files that cannot be used: {error}") from error
    instance = await ClientInstance.acquire(settings)
    admin = Admin(client=settings)
    await admin.start()
    return SourceClient(instance, admin)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


_PROCESS = _Process()


async def connected(cluster: Cluster) -> SourceClient:
    """The connection of this process to a cluster; to be awaited on the process's own loop."""
    return await _PROCESS.connection(cluster)


def submit(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Begin it on the process's loop."""
    return asyncio.run_coroutine_threadsafe(work, _PROCESS.loop())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do it on the process's loop and wait; every request in it has its own timeout."""
    return submit(work).result()


def close_connections() -> None:
    """Leave all clusters; for whoever ends before his process does."""
    run(_PROCESS.close())
