"""A store that cannot be written: whoever asks hears why, and it ends by itself when the reason does."""

import errno
import json
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker, CannotStart
from skyrocket.config.sections import BrokerConfig, MetricsExporter
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.client import RemotingClient
from skyrocket.store.disk import Disk
from tests.cluster.broker.broker_fixture import SMALL, message
from tests.waiting import until

STORE = replace(SMALL, queue_flush_interval_ms=50, checkpoint_interval_ms=50, queue_flush_least_pages=0)


class Troubled(Disk):
    """A disk with an error of choice."""

    def __init__(self) -> None:
        super().__init__()
        self.error = 0

    def _check(self) -> None:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))

    def create(self, path: str, size: int) -> int:
        self._check()
        return super().create(path, size)

    def allocate(self, fd: int, position: int, length: int) -> None:
        self._check()
        super().allocate(fd, position, length)

    def open(self, path: str) -> int:
        self._check()
        return super().open(path)

    def sync_directory(self, path: str) -> None:
        self._check()
        super().sync_directory(path)

    def make_directory(self, path: str) -> None:
        self._check()
        super().make_directory(path)


def config(folder: Path) -> BrokerConfig:
    return BrokerConfig(
        listen_port=0,
        bind_address="127.0.0.1",
        broker_ip="127.0.0.1",
        store_root=str(folder / "store"),
        metrics_exporter=MetricsExporter.PROM,
        metrics_port=0,
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errno.ENOSPC, "disk full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EMFILE, "no file descriptors are left"),
    ],
)
async def test_while_sends_are_refused_everybody_hears_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, error: int, words: str
) -> None:
    disk = Troubled()
    async with Broker(config(tmp_path), STORE, disk=disk) as broker, RemotingClient() as client:
        address = str(await broker.start())
        await client.call(address, message(), b"x")
        disk.error = error
        heard: list[str] = []
        while len(heard) < 5:  # until the log needs another file
            try:
                await client.call(address, message(), bytes(100_000))
            except RequestError as refusal:
                heard.append(str(refusal))
        assert all(words in text for text in heard), heard
        status, page = get_page(broker, "/ready")
        assert status == 503
        assert words in json.loads(page)["reasons"]["store"]
        assert "skyrocket_store_writable{" in (metrics := get_page(broker, "/metrics")[1])
        assert " 0\n" in metrics[metrics.index("skyrocket_store_writable{") :].partition("\n")[0] + "\n"
        lines = [r for r in caplog.records if r.levelno >= logging.ERROR and "messages wait" in r.getMessage()]
        assert len(lines) == 1, "once a minute"
        disk.error = 0
        await until(lambda: get_page(broker, "/ready")[0] == 200, "ready again, though nobody sent anything")
        await client.call(address, message(), b"y")
        assert broker.store.failure is None


def get_page(broker: Broker, path: str) -> tuple[int, str]:
    page = broker.http.page(path)
    return page.status, page.body.decode()


async def test_a_store_that_cannot_be_written_at_the_start_is_named_with_the_remedy(tmp_path: Path) -> None:
    disk = Troubled()
    disk.error = errno.EROFS
    async with Broker(config(tmp_path), STORE, disk=disk) as broker:
        with pytest.raises(CannotStart, match=r"store.* cannot be written: Read-only file system\. .*--store"):
            await broker.start()
