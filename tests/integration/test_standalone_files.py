"""What `skyrocket standalone` writes lies below its store, and nothing in the home directory."""

from pathlib import Path

from skyrocket.protocol.requests.kv_config import PutKvConfig
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
