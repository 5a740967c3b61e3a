"""Apache's broker registers at our name server; Apache's client and mqadmin find it there."""

import base64
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.apache_admin import BROKER_NAME, admin_output, running_apache_broker
from tests.interop.rocketmq_broker import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

REGISTRATION_SECONDS = 40.0


@contextlib.contextmanager
def our_name_server(home: Path) -> Iterator[str]:
    """The program itself, on a free port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "skyrocket", "namesrv", "--listen-port", "0", "--set", "orderMessageEnable=true"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(home)},
    )
    try:
        assert process.stdout is not None
        ready = re.search(r"address=\S+:(\d+)", process.stdout.readline())
        assert ready is not None
        yield f"127.0.0.1:{ready[1]}"
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.requirement("A039", "B015", "C058", "E001")
def test_apaches_broker_client_and_tools_work_with_our_name_server(tmp_path: Path, apache: Apache) -> None:
    with our_name_server(tmp_path) as name_server:
        with running_apache_broker(apache, tmp_path / "store", name_server) as broker:
            bodies = [_base64(body) for body in (b"first", "zweite – ✓".encode(), bytes(5000))]
            client = RunningBroker(apache, name_server)
            _await_broker(apache, name_server)
            send = [{"topic": "Orders", "body": body, "keys": "k", "tags": "t"} for body in bodies]
            sent = client.exchange([], send)
            assert [line["status"] for line in sent.of("sent")] == ["SEND_OK"] * len(bodies)
            pulled = client.exchange(["Orders"], [])
            assert sorted(line["body"] for line in pulled.messages) == sorted(bodies)
            _check_tools(apache, name_server, broker)
        gone = admin_output(apache, [f"clusterList -n {name_server}", f"topicList -n {name_server}"])
        assert not any(BROKER_NAME in text or "Orders" in text for text in gone.values())


def _check_tools(apache: Apache, name_server: str, broker: str) -> None:
    at = f"-n {name_server}"
    printed = admin_output(
        apache,
        [
            f"clusterList {at}",
            f"topicRoute {at} -t Orders",
            f"topicList {at}",
            f"getNamesrvConfig {at}",
            f"updateKvConfig {at} -s TestNs -k k1 -v v1",
            f"deleteKvConfig {at} -s TestNs -k k1",
            f"updateOrderConf {at} -t Orders -v {BROKER_NAME}:4 -m put",
            f"updateOrderConf {at} -t Orders -m get",
            f"wipeWritePerm {at} -b {BROKER_NAME}",
            f"addWritePerm {at} -b {BROKER_NAME}",
        ],
    )
    cluster, route, topics, settings, put_kv, delete_kv, put_order, get_order, wipe, add = printed.values()
    assert re.search(rf"DefaultCluster +{BROKER_NAME} +0 +{re.escape(broker)}", cluster)
    assert re.search(rf'"brokerAddrs":\s*{{\s*"?0"?:\s*"{re.escape(broker)}"', route)
    assert {"Orders", "TBW102", BROKER_NAME, "DefaultCluster"} <= set(topics.split())
    assert re.search(r"orderMessageEnable += +true", settings)
    assert "create or update kv config to namespace success" in put_kv
    assert "delete kv config from namespace success" in delete_kv
    assert "update orderConf success" in put_order
    assert f"{BROKER_NAME}:4" in get_order
    assert re.search(rf"wipe write perm of broker\[{BROKER_NAME}\] in name server\[.*\] OK, \d+", wipe)
    assert re.search(rf"add write perm of broker\[{BROKER_NAME}\] in name server\[.*\] OK, \d+", add)


def _await_broker(apache: Apache, name_server: str) -> None:
    command = f"clusterList -n {name_server}"
    deadline = time.monotonic() + REGISTRATION_SECONDS
    while BROKER_NAME not in admin_output(apache, [command])[command]:
        assert time.monotonic() < deadline, "the broker does not register"


def _base64(body: bytes) -> str:
    return base64.b64encode(body).decode()
