"""A broker that takes connections and never answers, as a stopped process: it costs a command its time-out once."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from skyrocket.cli.nouns.operator import Operator
from skyrocket.cli.nouns.watching import repeat
from skyrocket.client import ClientSettings, Message
from skyrocket.client.core.instance import ClientInstance
from skyrocket.testing import LocalCluster
from tests.cluster.broken_brokers import registered
from tests.cluster.command_line import skyrocket


@pytest.fixture
def hanging(rocketmq: LocalCluster) -> Iterator[str]:
    """Its address. The kernel takes connections for it, as for a process that was stopped with SIGSTOP."""
    rocketmq.create_topic("Orders", queues=1)
    for group in ("Billing", "Audit"):
        rocketmq.create_group(group)
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        producer.send(Message("Orders", b"x", keys="o-1"))
        (queue,) = admin.queues("Orders")
        for group in ("Billing", "Audit"):
            admin.set_offset(group, queue, 0)
    with socket.create_server(("127.0.0.1", 0)) as never_accepts:
        address = f"127.0.0.1:{never_accepts.getsockname()[1]}"
        topics = ("Orders", "%RETRY%Billing", "%RETRY%Audit")
        with registered(rocketmq, "broker-z", address, *topics):
            yield address


@pytest.fixture
def waits(hanging: str, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each question to the hanging broker may wait, in seconds."""
    found: list[float] = []
    ask = ClientInstance.ask

    async def asked(self: ClientInstance, address: str, *arguments: Any, timeout: float, **named: Any) -> Any:
        if address == hanging:
            found.append(timeout)
        return await ask(self, address, *arguments, timeout=timeout, **named)

    monkeypatch.setattr(ClientInstance, "ask", asked)
    return found


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("topic describe Orders", "Billing"),
        ("topic pause Orders --yes", "Orders"),
        ("group describe Billing", "Billing"),
        ("group list", "Billing"),
        ("msg find Orders o-1", "o-1"),
    ],
)
def test_it_is_waited_for_once_and_the_others_are_shown(
    rocketmq: LocalCluster, hanging: str, waits: list[float], command: str, shown: str
) -> None:
    done = skyrocket(rocketmq, *command.split())
    assert done.code == 3, (done.output, done.errors)
    assert shown in done.output
    assert f"broker-z ({hanging}) failed" in done.errors
    assert "no answer within" in done.errors, "how long it was waited for, not that it was not asked again"
    assert waits == [5.0]


def test_doctor_waits_for_it_once(rocketmq: LocalCluster, hanging: str, waits: list[float]) -> None:
    done = skyrocket(rocketmq, "doctor")
    assert done.code == 1
    assert hanging in done.output
    assert waits == [5.0]


def test_who_is_a_member_may_be_known_to_it_alone(rocketmq: LocalCluster, hanging: str) -> None:
    done = skyrocket(rocketmq, "group", "members", "Billing")
    assert done.code == 3, (done.output, done.errors)
    assert f"broker-z ({hanging}) failed" in done.errors


def test_a_look_that_is_repeated_asks_it_again(
    rocketmq: LocalCluster, hanging: str, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(range(2))
    operator = Operator(ClientSettings(rocketmq.name_server_address))

    def stop(_: float) -> None:
        if next(looks) == 1:
            raise KeyboardInterrupt

    def look() -> None:
        operator.ask(lambda admin: admin.topic_table())

    monkeypatch.setattr("time.sleep", stop)
    with pytest.raises(typer.Exit):
        repeat(look, 1.0, operator)
    assert waits == [5.0, 5.0]
