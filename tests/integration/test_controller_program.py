"""`skyrocket controller`, and `skyrocket namesrv` with one in it, as programs."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.protocol.requests.controller import GetControllerMetadata, GetControllerMetadataAnswer
from skyrocket.remoting.client import RemotingClient
from tests.integration.program import Program
from tests.ports import free_port


def metadata(address: str) -> GetControllerMetadataAnswer:
    async def asked() -> GetControllerMetadataAnswer:
        async with RemotingClient() as client:
            return (await client.call(address, GetControllerMetadata(), timeout_seconds=30)).header

    return asyncio.run(asked())


def test_a_controller_of_rocketmq_s_file_says_where_it_keeps_its_decisions(tmp_path: Path) -> None:
    port = free_port()
    conf = tmp_path / "controller.conf"
    conf.write_text(
        f"controllerDLegerGroup = group1\ncontrollerDLegerPeers = n0-127.0.0.1:{port}\ncontrollerDLegerSelfId = n0\n"
        "controllerStorePath = /unused\nenableElectUncleanMaster = false\n"
    )
    with Program("controller", "-c", str(conf), "--set", "bindAddress=127.0.0.1", home=tmp_path) as program:
        line = program.await_line("boot success")
        assert "not replicated" in line.string
        found = metadata(f"127.0.0.1:{port}")
        assert (found.group, found.is_leader, found.controller_leader_id) == ("group1", True, "n0")
        assert (tmp_path / "controller" / "replica-sets").exists()
        assert program.stop() == 0


def test_two_controllers_do_not_share_a_file(tmp_path: Path) -> None:
    given = ("--store", f"file:{tmp_path / 'sets'}", "--set", "bindAddress=127.0.0.1")
    with Program("controller", "--peers", f"n0-127.0.0.1:{free_port()}", *given, home=tmp_path) as first:
        first.await_line("boot success")
        with Program("controller", "--peers", f"n0-127.0.0.1:{free_port()}", *given, home=tmp_path) as second:
            second.await_line("used by another controller")
            assert second.process.wait(60) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--store", "redis://x/y"), "zookeeper://"),
        (("--peers", "n0-127.0.0.1:1;n1-127.0.0.1:2"), "ZooKeeper or etcd"),
        (("--peers", "n1-127.0.0.1:1"), "controllerDLegerSelfId=n0"),
        (("--set", "enableElectUncleanMastr=true"), "enableElectUncleanMaster"),
    ],
)
def test_wrong_settings_are_named_with_what_to_write(tmp_path: Path, given: tuple[str, ...], words: str) -> None:
    with Program("controller", *given, home=tmp_path) as program:
        program.await_line(words)
        assert program.process.wait(60) == 2


def test_a_name_server_with_a_controller_answers_on_both_ports(tmp_path: Path) -> None:
    port = free_port()
    settings = (
        "enableControllerInNamesrv=true",
        f"controllerDLegerPeers=n0-127.0.0.1:{port}",
        f"controllerStore=file:{tmp_path / 'sets'}",
    )
    options = [part for setting in settings for part in ("--set", setting)]
    with Program("namesrv", "--listen-port", "0", "--bind-address", "127.0.0.1", *options, home=tmp_path) as program:
        program.await_line("Name Server boot success")
        assert metadata(f"127.0.0.1:{port}").is_leader
        assert program.stop() == 0
    shown = Program("namesrv", "--print", *options, home=tmp_path)
    with shown as program:
        program.await_line("enableElectUncleanMaster=false")
