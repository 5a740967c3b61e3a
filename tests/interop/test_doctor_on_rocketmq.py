"""The doctor in front of a healthy master and slave of Apache RocketMQ is silent, and names what is planted."""

import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skyrocket.client import ClientSettings, Message, ReceivedMessage, blocking
from skyrocket.config.sections import StoreConfig
from tests.cluster.command_line import at
from tests.interop.apache import IN_SHORT_MODE, Apache
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.rocketmq_store import settings_for
from tests.ports import free_port
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.timeout(400)]

_NEWLY_STARTED_SECONDS = 62.0  # for so long the doctor leaves a slave time to connect


@contextlib.contextmanager
def pair_of(apache: Apache, stores: Path) -> Iterator[str]:
    """The address of their name server."""
    with tempfile.TemporaryDirectory(prefix="rocketmq-home-") as scratch, contextlib.ExitStack() as running:
        home = Path(scratch)
        place_log_settings(home)
        names = free_port()
        main = "org.apache.rocketmq.namesrv.NamesrvStartup"
        server = process_of(apache, home, "namesrv", main, {"listenPort": names})
        await_port(running.enter_context(server), names, home / "namesrv.log")
        for number, role in enumerate(("ASYNC_MASTER", "SLAVE")):
            settings = _settings(apache, stores / role, names, number, role)
            name, main = role.lower(), "org.apache.rocketmq.broker.BrokerStartup"
            broker = running.enter_context(process_of(apache, home, name, main, settings))
            await_port(broker, int(str(settings["listenPort"])), home / f"{name}.log")
        yield f"127.0.0.1:{names}"


def _settings(apache: Apache, store: Path, names: int, number: int, role: str) -> dict[str, object]:
    port = free_port()
    return {
        "brokerClusterName": "DefaultCluster",
        "brokerName": "broker-a",
        "brokerId": number,
        "brokerRole": role,
        "brokerIP1": "127.0.0.1",
        "brokerIP2": "127.0.0.1",
        "namesrvAddr": f"127.0.0.1:{names}",
        "listenPort": port,
        "haListenPort": port + 1,
        "storePathRootDir": store,
        "storePathCommitLog": store / "commitlog",
        "diskMaxUsedSpaceRatio": 95,
        **settings_for(apache, StoreConfig()),
    }


def codes(names: str, *options: str) -> list[str]:
    done = at(names, "doctor", "--output", "json", *options)
    assert done.code in (0, 1), done.errors
    return [each["code"] for each in json.loads(done.output)]


@pytest.mark.parametrize("version", IN_SHORT_MODE)
def test_a_healthy_pair_is_silent_and_a_group_without_a_client_is_named(
    version: str, apache_of_version: Callable[[str], Apache], tmp_path: Path
) -> None:
    seen: list[ReceivedMessage] = []
    with pair_of(apache_of_version(version), tmp_path) as names:
        wait_until(lambda: len(json.loads(at(names, "broker", "list", "--output", "json").output)) == 2)
        began = time.monotonic()
        assert codes(names, "--notes") == ["auto-create-topics"]
        assert at(names, "topic", "create", "Orders", "--queues", "2").code == 0
        wait_until(lambda: at(names, "topic", "route", "Orders").code == 0)
        consumer = blocking.PushConsumer("Billing", client=ClientSettings(names))
        consumer.on("Orders")(seen.append)
        with consumer, blocking.Producer("Shop", names) as producer:
            producer.send(Message("Orders", b"1"))
            wait_until(lambda: len(seen) == 1)
            wait_until(lambda: codes(names) == [])
            time.sleep(max(0.0, began + _NEWLY_STARTED_SECONDS - time.monotonic()))
            assert codes(names, "--sample", "1s") == []
            told = json.loads(at(names, "doctor", "--group", "Billing", "--output", "json").output)
            assert all(step["findings"] == [] for step in told["steps"])
        with blocking.Producer("Shop", names) as producer:
            producer.send(Message("Orders", b"2"))
        wait_until(lambda: codes(names) == ["no-client"])
        told = json.loads(at(names, "doctor", "--group", "Billing", "--sample", "0", "--output", "json").output)
        assert (told["lag"], told["cause"]) == (1, "no client runs")
        assert 0 <= told["behindSeconds"] < 60, "the age of what waits, not of what was consumed"
