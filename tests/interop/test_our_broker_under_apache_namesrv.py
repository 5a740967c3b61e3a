"""Our broker registers at Apache's name server; Apache's client and mqadmin find it there, and miss it when it left."""

import base64
import contextlib
import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.program import SMALL_FILES, Program
from tests.interop.apache import Apache
from tests.interop.apache_admin import admin_output
from tests.interop.rocketmq_broker import RunningBroker, await_port, place_log_settings, process_of

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


@contextlib.contextmanager
def apaches_name_server(apache: Apache) -> Iterator[str]:
    """Apache's own, on a free port."""
    with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as scratch, socket.create_server(("", 0)) as probe:
        home, port = Path(scratch), probe.getsockname()[1]
        probe.close()
        place_log_settings(home)
        main_class = "org.apache.rocketmq.namesrv.NamesrvStartup"
        with process_of(apache, home, "namesrv", main_class, {"listenPort": port}) as process:
            await_port(process, port, home / "namesrv.log")
            yield f"127.0.0.1:{port}"


def test_our_broker_is_at_home_under_apaches_name_server(tmp_path: Path, apache: Apache) -> None:
    with apaches_name_server(apache) as name_server:
        given = ["broker", "-n", name_server, "--listen-port", "0", "--broker-ip", "127.0.0.1"]
        given += ["--store", str(tmp_path / "store"), *(t for setting in SMALL_FILES for t in ("--set", setting))]
        with Program(*given, home=tmp_path) as broker:
            ready = broker.await_line(rf"The broker\[broker-a, (\S+)\] boot success.* name server is {name_server}$")
            address = ready[1]
            _send_and_receive(RunningBroker(apache, name_server))
            cluster, route = admin_output(
                apache, [f"clusterList -n {name_server}", f"topicRoute -n {name_server} -t Orders"]
            ).values()
            assert re.search(rf"DefaultCluster +broker-a +0 +{re.escape(address)}", cluster)
            assert re.search(rf'"brokerAddrs":\s*{{\s*"?0"?:\s*"{re.escape(address)}"', route)
            assert broker.stop() == 0
        gone = admin_output(apache, [f"clusterList -n {name_server}"])
        assert not any("broker-a" in text for text in gone.values())


def _send_and_receive(client: RunningBroker) -> None:
    bodies = [base64.b64encode(body).decode() for body in (b"first", "zweite – ✓".encode(), bytes(5000))]
    sent = client.exchange([], [{"topic": "Orders", "body": body, "keys": "k", "tags": "t"} for body in bodies])
    assert [line["status"] for line in sent.of("sent")] == ["SEND_OK"] * len(bodies)
    pulled = client.exchange(["Orders"], [])
    assert sorted(line["body"] for line in pulled.messages) == sorted(bodies)
