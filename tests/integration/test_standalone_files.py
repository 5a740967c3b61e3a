"""Where the name server of `skyrocket standalone` keeps its files, and where it listens."""

import socket
from pathlib import Path

import pytest

from skyrocket.protocol.requests.kv_config import PutKvConfig
from skyrocket.protocol.requests.name_server import GetBrokerClusterInfo
from tests.attack.attackers import ask, connections, frame
from tests.integration.program import Standalone


def test_the_name_servers_values_lie_below_the_store(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "store"
    home.mkdir()
    with (
        Standalone(home, arguments=("--store", str(store))) as given,
        connections(given.name_server, 1) as (connection,),
    ):
        assert ask(connection, frame(PutKvConfig(namespace="N", key="k", value="v"))).code == 0
        assert (store / "config" / "namesrv" / "kvConfig.json").exists()
        assert list(home.iterdir()) == []


def test_the_name_server_has_an_interface_of_its_own_and_the_broker_finds_it_there(tmp_path: Path) -> None:
    with Standalone(tmp_path, "bindAddress=127.0.0.1", arguments=("--namesrv-bind", "127.0.0.2")) as given:
        ready = given.await_line(r"namesrv=127\.0\.0\.2:(\d+) broker=127\.0\.0\.1:")
        with connections(f"127.0.0.2:{ready[1]}", 1) as (connection,):
            assert ask(connection, frame(GetBrokerClusterInfo())).code == 0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(ready[1]))).close()
