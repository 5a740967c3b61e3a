"""The console beside a standalone's servers, when it cannot go on."""

from pathlib import Path
from typing import NoReturn

import pytest

from skyrocket.cli.console_beside import Pages, console_beside
from skyrocket.cli.program.settings import sections_from
from skyrocket.config.sections import BrokerConfig, TlsConfig
from skyrocket.console.server import Console
from skyrocket.remoting.services import ServiceFailed
from skyrocket.schemas.catalog import Catalog
from skyrocket.testing.async_cluster import AsyncLocalCluster
from tests.waiting import until


async def test_a_console_that_ends_says_so_and_the_servers_beside_it_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def failed(_: Console) -> NoReturn:
        raise ServiceFailed("console-recorder died 6 times")

    monkeypatch.setattr(Console, "failed", failed)
    sections = sections_from({"storePathRootDir": str(tmp_path)}, (BrokerConfig, TlsConfig))
    said: list[str] = []

    def ended() -> bool:
        said.append(capsys.readouterr().err)
        return "the console has ended, and all else goes on" in said[-1]

    async with (
        AsyncLocalCluster() as cluster,
        console_beside(Pages("127.0.0.1", 0, Catalog()), cluster.name_server_address, sections),
    ):
        await until(ended)
        await cluster.create_topic("Orders")
