"""What the programs say at the start, and which address clients are told."""

import socket
from pathlib import Path

import pytest

from skyrocket.protocol.bodies.route import ClusterInfo
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import pull, send_request
from tests.integration.program import Program, Standalone, output_of


@pytest.mark.requirement("B009")
def test_standalone_says_what_to_give_to_clients_and_warns_of_an_address_that_others_cannot_reach(
    tmp_path: Path,
) -> None:
    with Standalone(tmp_path) as program:
        port = program.name_server.rpartition(":")[2]
        program.await_line(rf"^Name server address for clients: 127\.0\.0\.1:{port}\. Ctrl-C stops\.$")
        program.await_line(r"^skyrocket standalone: warning: clients are told 127\.0\.0\.1, .*--broker-ip, brokerIP1")
        assert program.stop() == 0


def test_there_is_no_warning_for_what_is_meant_to_be_local(tmp_path: Path) -> None:
    with Standalone(tmp_path, "bindAddress=127.0.0.1") as program:
        assert program.stop() == 0
        assert not [line for line in program.lines if "warning" in line]


async def test_clients_are_told_a_host_name_and_reach_the_broker_by_it(tmp_path: Path) -> None:
    async def registered_and_served(name_server: str, address: str) -> tuple[set[str], list[bytes], str]:
        async with RemotingClient() as client:
            info = ClusterInfo.decode((await client.call(name_server, GetBrokerClusterInfo())).body)
            sent = await client.call(address, send_request(0), b"x")
            told = {address for broker in info.brokers.values() for address in broker.addresses.values()}
            return told, await pull(client, address, 0, 0), sent.header.msg_id

    given = ["standalone", "--namesrv-port", "0", "--listen-port", "0", "--store", str(tmp_path / "store")]
    with Program(*given, home=tmp_path, environment={"SKYROCKET_BROKER_BROKER_IP1": "localhost"}) as program:
        ready = program.await_line(r"namesrv=\S+:(\d+) broker=(localhost:\d+)$")
        told, bodies, message_id = await registered_and_served(f"127.0.0.1:{ready[1]}", ready[2])
        assert told == {ready[2]}
        assert bodies == [b"x"]
        assert message_id.startswith("7F000001")
        assert program.stop() == 0


def test_the_broker_prints_its_settings(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=shop\nlistenPort=12345\nflushDiskType=SYNC_FLUSH\n")
    done = output_of("broker", "-p", "-c", str(conf), "--listen-port", "23456", home=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert {"brokerName=shop", "listenPort=23456", "flushDiskType=SYNC_FLUSH", "fileReservedTime=72"} <= set(lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--broker-ip", "no-such-host.invalid"], "neither an IP address nor a host name", id="name"),
        pytest.param(["--broker-ip", "0.0.0.0"], "brokerIP1=0.0.0.0 is not an address to connect to", id="wildcard"),
        pytest.param(["--brokers", "0"], "Invalid value for '--brokers'", id="no-brokers"),
        pytest.param(["--brokers", "2", "--listen-port", "65530"], "would need port 65540", id="ports"),
    ],
)
def test_a_program_says_what_is_wrong_with_its_options(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = output_of("standalone", "--namesrv-port", "0", "--store", str(tmp_path / "s"), *arguments, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert not (tmp_path / "s").exists()


def test_standalone_with_its_name_servers_port_taken_names_the_option_for_another(tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        ports = ("--namesrv-port", str(port), "--listen-port", "0")
        done = output_of("standalone", *ports, "--store", str(tmp_path / "store"), home=tmp_path)
    assert done.returncode == 1
    assert f"port {port} is taken by another program" in done.stderr
    assert "choose another port with --namesrv-port" in done.stderr
