"""What operators changed survives `kill -9` right after the answer, in the program as its users start it."""

from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sources import parse_properties
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import TopicNotExist
from skyrocket.protocol.requests.admin_broker import GetBrokerConfig, UpdateBrokerConfig
from skyrocket.protocol.requests.admin_groups import GetSubscriptionGroupConfig, UpdateAndCreateSubscriptionGroup
from skyrocket.protocol.requests.admin_topics import DeleteTopicInBroker, GetTopicConfig
from skyrocket.protocol.requests.header import Request
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import new_topic
from tests.integration.program import SMALL_FILES, Program


def started(folder: Path, *arguments: str) -> tuple[Program, str]:
    given = ["broker", "--listen-port", "0", "--broker-ip", "127.0.0.1", "--store", str(folder / "store"), *arguments]
    for setting in SMALL_FILES:
        given += ["--set", setting]
    program = Program(*given, home=folder)
    found = program.await_line(r"The broker\[\S+, (\S+)\] boot success")
    return program, found[1]


async def ask(address: str, *asked: tuple[Request[Any], bytes]) -> list[Body]:
    async with RemotingClient() as client:
        return [(await client.call(address, request, body)).body for request, body in asked]


@pytest.mark.parametrize("with_conf", [True, False])
async def test_changes_are_there_after_a_kill(tmp_path: Path, with_conf: bool) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("# by hand\ndeleteWhen=03\n")
    arguments = ("-c", str(conf)) if with_conf else ()
    program, address = started(tmp_path, *arguments)
    with program:
        await ask(
            address,
            (new_topic("Kept", 3), b""),
            (new_topic("Gone", 3), b""),
            (
                UpdateAndCreateSubscriptionGroup(),
                SUBSCRIPTION_GROUP.encode(SubscriptionGroup("Buyers", retry_max_times=3)),
            ),
            (UpdateBrokerConfig(), b"fileReservedTime=24\nautoCreateTopicEnable=false\n"),
            (DeleteTopicInBroker(topic="Gone"), b""),
        )
        program.kill()
    program, address = started(tmp_path, *arguments)
    with program:
        config, group, text = await ask(
            address,
            (GetTopicConfig(topic="Kept"), b""),
            (GetSubscriptionGroupConfig(group="Buyers"), b""),
            (GetBrokerConfig(), b""),
        )
        assert TOPIC_CONFIG.decode(config).read_queues == 3
        assert SUBSCRIPTION_GROUP.decode(group).retry_max_times == 3
        pairs = parse_properties(bytes(text).decode())
        expected = ("24", "false", "03" if with_conf else "04")
        assert (pairs["fileReservedTime"], pairs["autoCreateTopicEnable"], pairs["deleteWhen"]) == expected
        with pytest.raises(TopicNotExist):
            await ask(address, (GetTopicConfig(topic="Gone"), b""))
        assert program.stop() == 0
