"""Some brokers do it and others fail: what is done is said of those alone, and a look says each time who is missing."""

import json
from typing import Any

import pytest
import typer

from skyrocket.cli.nouns.operator import Operator
from skyrocket.cli.nouns.watching import repeat
from skyrocket.client import BrokerPlace, ClientError, ClientSettings, Message, Producer
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.client.core.instance import ClientInstance
from skyrocket.protocol.requests.offsets import ResetOffset
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import Done, rows, skyrocket, well

TWO = pytest.mark.rocketmq(brokers=2)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker a does not take topics."""
    put = TopicAdmin._put_topic

    async def put_or_refuse(self: TopicAdmin, place: BrokerPlace, *given: Any) -> None:
        if place.broker_name == "broker-a":
            raise ClientError("it is full")
        await put(self, place, *given)

    monkeypatch.setattr(TopicAdmin, "_put_topic", put_or_refuse)


def done_by_broker(done: Done) -> dict[str, bool]:
    return {row["where"].split()[0]: row["done"] for row in json.loads(done.output)}


@TWO
@pytest.mark.usefixtures("refusing")
def test_a_topic_is_created_at_the_brokers_that_take_it(rocketmq: LocalCluster) -> None:
    done = skyrocket(rocketmq, "topic", "create", "Orders", "--output", "json")
    assert done.code == 3
    assert "broker-a" in done.errors
    assert "it is full" in done.errors
    assert done_by_broker(done) == {"broker-a": False, "broker-b": True}
    assert rows(rocketmq, "topic", "list", "Orders")[0]["brokers"] == 1


@TWO
@pytest.mark.usefixtures("refusing")
def test_a_file_is_applied_where_it_can_be(rocketmq: LocalCluster, tmp_path: Any) -> None:
    file = tmp_path / "cluster.yml"
    file.write_text("topics: {Orders: {queues: 2}, Audit: {queues: 2}}\ngroups: {Billing: {retry_max_times: 3}}\n")
    done = skyrocket(rocketmq, "apply", "-f", str(file))
    assert done.code == 3
    assert rows(rocketmq, "topic", "list", "Audit")[0]["brokers"] == 1
    assert rows(rocketmq, "group", "list", "Billing")[0]["brokers"] == 2


@TWO
def test_a_group_is_moved_where_its_brokers_do_it(rocketmq: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    rocketmq.create_topic("Orders", queues=1)
    rocketmq.create_group("Billing")
    with rocketmq.producer() as producer, rocketmq.admin() as admin:
        for _ in range(8):
            producer.send(Message("Orders", b"x"))
        (address,) = (place.address for place in admin.brokers(broker="broker-a"))
    ask = ClientInstance.ask

    async def ask_or_fail(self: ClientInstance, asked: str, request: Any, *given: Any, **named: Any) -> Any:
        if isinstance(request, ResetOffset) and asked == address:
            raise ClientError("it is away")
        return await ask(self, asked, request, *given, **named)

    monkeypatch.setattr(ClientInstance, "ask", ask_or_fail)
    done = skyrocket(rocketmq, "reset", "--group", "Billing", "--topic", "Orders", "--to", "latest")
    assert done.code == 3, done.errors
    assert "1 broker failed, the others did it: broker-a" in done.errors
    lags = {row["broker"]: row["lag"] for row in rows(rocketmq, "group", "lag", "Billing", "--topic", "Orders")}
    assert lags["broker-b"] == 0
    assert lags["broker-a"] > 0


def test_a_watch_names_brokers_that_fail_as_long_as_they_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Operator(ClientSettings("127.0.0.1:9876"))
    failing = [{"broker-b": ClientError("it is away")}, {}]
    said: list[str] = []

    def look() -> None:
        operator.failures.update(failing.pop(0))

    def sleep(_: float) -> None:
        said.append(capsys.readouterr().err)
        if not failing:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(typer.Exit) as ended:
        repeat(look, 2.0, operator)
    assert said == ["skyrocket: broker-b failed: it is away\n", ""]
    assert ended.value.exit_code == 0


def test_what_is_named_and_not_there_is_4(rocketmq: LocalCluster) -> None:
    for command in ("config get noSuchKey", "broker pause-writes broker-z --yes", "broker resume-writes broker-z"):
        done = skyrocket(rocketmq, *command.split())
        assert done.code == 4, command
    assert "flushDiskType" in well(rocketmq, "config", "get", "flush*")


def test_a_copy_that_fails_says_how_far_it_came(rocketmq: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in ("Orders", "Copies"):
        rocketmq.create_topic(topic, queues=1)
    with rocketmq.producer() as producer:
        for i in range(5):
            producer.send(Message("Orders", b"%d" % i))
    send = Producer.send
    sent: list[Message] = []

    async def send_three(self: Producer, message: Message, **named: Any) -> Any:
        if len(sent) == 3:
            raise ClientError("it is full")
        sent.append(message)
        return await send(self, message, **named)

    monkeypatch.setattr(Producer, "send", send_three)
    done = skyrocket(rocketmq, "msg", "copy", "Orders", "Copies", "--since", "1h")
    assert done.code == 1
    assert "skyrocket msg copy: 3 messages had been sent when it ended" in done.errors
    assert "it is full" in done.errors
