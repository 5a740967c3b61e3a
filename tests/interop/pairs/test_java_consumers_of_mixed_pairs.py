"""RocketMQ's own push consumer with a pair of two makers: it goes on at the slave without a master, and comes back."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.apache import Apache
from tests.interop.client_kinds import JAVA_49, JAVA_54, ClientKind, launch_of
from tests.interop.client_program import running_client
from tests.interop.pairs.members import NameServer
from tests.interop.pairs.test_long_pairs import OURS, Pair, await_same_end, member
from tests.interop.test_java_consumer_and_slaves import GROUP, TOPIC, await_bodies, send, send_when_found
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

CASES = [
    (Pair("5.4.0", OURS), JAVA_54),
    (Pair(OURS, "5.4.0"), JAVA_54),
    (Pair("4.9.7", OURS), JAVA_49),
    (Pair(OURS, "4.9.7"), JAVA_49),
]
HEARD_SECONDS = 60.0  # slaves take over topics and offsets every ten seconds


@pytest.mark.parametrize(("pair", "kind"), CASES, ids=lambda value: str(value))
def test_a_java_consumer_goes_on_at_the_slave_of_another_maker_and_comes_back(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], pair: Pair, kind: ClientKind
) -> None:
    launch = launch_of(kind)
    if isinstance(launch, str):
        pytest.skip(f"no {kind} client: {launch}")
    first, second, third = ([f"{part}-{number}" for number in range(20)] for part in ("first", "second", "third"))
    with NameServer(tmp_path) as names, contextlib.ExitStack() as stack:
        master = member(pair.master, (tmp_path, "master"), pair.role, names.address, apache_of_version)
        slave = member(pair.slave, (tmp_path, "slave"), "SLAVE", names.address, apache_of_version)
        for each in (master, slave):
            stack.callback(each.kill)
            each.start()
        await_same_end(master, slave)
        client = stack.enter_context(
            running_client(launch.command(names.address, tmp_path), launch.environment, tmp_path)
        )
        send(client, first)
        client.consume("at the master", GROUP, TOPIC)
        await_bodies(client, "at the master", first)
        client.stop("at the master")
        send(client, second)
        await_same_end(master, slave)
        wait_until(lambda: _knows(slave.store, TOPIC, GROUP), "the slave has heard of both", seconds=HEARD_SECONDS)
        master.kill()
        client.consume("at the slave", GROUP, TOPIC)
        await_bodies(client, "at the slave", second)
        master.start()
        send_when_found(client, third)
        await_bodies(client, "at the slave", third)


def _knows(store: Path, topic: str, group: str) -> bool:
    """Whether a broker has written down a topic and how far a group has consumed it."""
    files = [store / "config" / name for name in ("topics.json", "consumerOffset.json")]
    if not all(file.exists() for file in files):
        return False
    topics, offsets = (file.read_text(encoding="utf-8") for file in files)
    return f'"{topic}"' in topics and f"{topic}@{group}" in offsets
