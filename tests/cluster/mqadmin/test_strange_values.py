"""What users mistype and strangers send: mqadmin refuses it in a line, or shows it, and falls over nothing."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import Message, ReceivedMessage
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.frames import encode
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import Done, skyrocket
from tests.waiting import wait_until


def run(rocketmq: LocalCluster, command: str) -> Done:
    return skyrocket(rocketmq, "mqadmin", *command.split())


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("printMsg -t Orders -c hex", "charset 'hex' is not known"),
        ("printMsg -t Orders -c undefined", "charset 'undefined' is not known"),
        ("printMsg -t Orders -b 99999999999999999999", "is beyond 9223372036854775807"),
        ("resetOffsetByTime -g Billing -t Orders -s 99999999999999999999", "is beyond 9223372036854775807"),
        ("resetOffsetByTime -g Billing -t Orders -s 2026-01-31", "is not a time"),
        ("queryMsgByOffset -t Orders -b broker-a -i 1_0 -o 0", "'1_0' is not a number"),
        ("queryMsgByOffset -t Orders -b broker-a -i ٣ -o 0", "'٣' is not a number"),
        ("checkMsgSendRT -t Orders -s 99999999999", "is not a number of bytes"),
        ("checkMsgSendRT -t Orders -s 0", "is not a number of bytes"),
        ("clusterList -i 0", "is not a number of seconds"),
        ("clusterList -i -5", "is not a number of seconds"),
        ("clusterRT -i 0", "is not a number of seconds"),
        ("getControllerMetaData -a ;", "names nobody"),
    ],
)
def test_a_value_that_cannot_be_meant_is_wrong_usage(rocketmq: LocalCluster, command: str, words: str) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    done = run(rocketmq, command)
    assert done.code == 2, done
    assert words in done.errors
    assert done.output == ""


@pytest.mark.parametrize("content", ["secret", "[a, b]", "7"])
def test_a_file_of_the_tools_account_that_is_no_list_of_settings_is_wrong_usage(
    rocketmq: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text(content)
    monkeypatch.setenv("ROCKETMQ_HOME", str(tmp_path))
    done = run(rocketmq, "topicList")
    assert done.code == 2
    assert "accessKey" in done.errors


@pytest.mark.parametrize("born_ms", [(1 << 63) - 1, -(1 << 62), 300_000_000_000_000])
def test_a_message_that_was_born_when_no_calendar_was_is_shown(rocketmq: LocalCluster, born_ms: int) -> None:
    rocketmq.create_topic("Orders", queues=1)
    request = SendMessageV2(
        producer_group="Shop",
        topic="Orders",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=born_ms,
        flag=0,
        properties="KEYS\x01o-1\x02UNIQ_KEY\x017F000001000078BF00000000000A0001",
        reconsume_times=0,
        unit_mode=False,
        max_reconsume_times=16,
        batch=False,
        broker_name="broker-a",
    )

    async def send() -> None:
        async with RemotingClient() as client:
            await client.call(rocketmq.broker_addresses["broker-a"], request, b"paid")

    asyncio.run(send())
    done = run(rocketmq, "queryMsgByOffset -t Orders -b broker-a -i 0 -o 0")
    assert done.code == 0, done.errors
    assert str(born_ms) in done.output
    for command in ("msg at Orders broker-a 0 0", "consume Orders --output json"):
        noun = skyrocket(rocketmq, *command.split())
        assert noun.code == 0, noun.errors


@contextlib.contextmanager
def silent_client(rocketmq: LocalCluster, group: str, client_id: str) -> Iterator[None]:
    """A member of a group, as its broker knows it, that answers no question."""
    subscription = SubscriptionData("Orders")
    data = ConsumerData(group, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", (subscription,))
    beat = command_of(HeartBeat(), Heartbeat(client_id, (), (data,)).encode())
    host, port = rocketmq.broker_addresses["broker-a"].split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection, rocketmq.admin() as admin:
        connection.sendall(encode(beat))
        wait_until(lambda: client_id in {each.client_id for each in admin.consumer_connections(group).connections})
        yield


def test_a_client_that_tells_nothing_is_named_beside_those_that_do(
    rocketmq: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rocketmq.create_topic("Orders", queues=1)
    seen: list[ReceivedMessage] = []
    consumer = rocketmq.push_consumer("Billing")
    consumer.on("Orders")(seen.append)
    with rocketmq.producer() as producer, consumer, silent_client(rocketmq, "Billing", "../gone"):
        producer.send(Message("Orders", b"paid"))
        status = run(rocketmq, "consumerStatus -g Billing")
        assert status.code == 3, status
        assert "client ../gone failed" in status.errors
        assert "Same subscription in the same group of consumer" in status.output
        assert "Rebalance" not in status.output
        progress = run(rocketmq, "consumerProgress -g Billing -s true")
        assert progress.code == 3, progress
        assert "Consume Diff Total" in progress.output
