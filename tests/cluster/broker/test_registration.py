"""A topic that is created is known at the name servers at once, and no other is forgotten for it."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skyrocket.broker.registration import feature, registration
from skyrocket.config.sections import BrokerConfig, NameServerConfig
from skyrocket.errors import ConfigError
from skyrocket.model.topic_config import TopicConfig
from skyrocket.namesrv.name_server import NameServer
from skyrocket.namesrv.route_table import RouteTable
from skyrocket.protocol.bodies.topics import TopicConfigList
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import UpdateBrokerConfig
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopicList
from skyrocket.testing.broker_host import configs
from tests.cluster.broker.broker_fixture import new_topic, running_broker
from tests.cluster.namesrv import name_server_fixture
from tests.waiting import until

DROPS_MISSING = NameServerConfig(drop_missing_topics=True)


class Spy:
    """How often a name server was told of all topics of a broker, and of which topics alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registrations: list[set[str]] = []
        self.single: list[str] = []
        self.refuses = False
        register, register_topic = RouteTable.register, RouteTable.register_topic

        def registered(table: RouteTable, identity: Any, body: Any, *others: Any, **rules: Any) -> Any:
            self.registrations.append(set(body.table.topics))
            return register(table, identity, body, *others, **rules)

        def told(table: RouteTable, topic: str, queues: Any) -> None:
            if self.refuses:
                raise SystemFailure("request type 217 not supported")
            self.single.append(topic)
            register_topic(table, topic, queues)

        monkeypatch.setattr(RouteTable, "register", registered)
        monkeypatch.setattr(RouteTable, "register_topic", told)


def routes(server: NameServer) -> set[str]:
    return set(server.table.topics)


async def test_a_new_topic_does_not_cost_the_routes_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    async with name_server_fixture.running(tmp_path, DROPS_MISSING) as (server, address):
        config = BrokerConfig(name_servers=str(address))
        async with running_broker(tmp_path, config) as given:
            assert "TBW102" in routes(server), "it registers when it starts"
            await given.send(topic="First")
            await until(lambda: "First" in routes(server))
            before = routes(server)
            await given.send(topic="Second")
            await until(lambda: "Second" in routes(server))
            assert before < routes(server)
            assert all("TBW102" in topics for topics in spy.registrations)
            assert spy.single == []


async def test_with_single_registration_changed_topics_are_told_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch)
    async with name_server_fixture.running(tmp_path, DROPS_MISSING) as (server, address):
        config = BrokerConfig(name_servers=str(address), registers_single_topics=True)
        async with running_broker(tmp_path, config) as given:
            before = routes(server)
            registrations = len(spy.registrations)
            await given.send(topic="First")
            await until(lambda: "First" in routes(server))
            assert before < routes(server)
            assert spy.single == ["First"]
            assert len(spy.registrations) == registrations
            queues = server.table.topics["First"][given.broker.parts.identity.broker_name]
            config_there = given.broker.tables.topics.find("First")
            assert config_there is not None
            assert (queues.write_queues, queues.permission) == (config_there.write_queues, config_there.permission)

            await given.client.call(given.address, UpdateBrokerConfig(), b"enableSingleTopicRegister=false")
            await given.send(topic="Second")
            await until(lambda: "Second" in routes(server))
            assert spy.single == ["First"]


async def test_a_name_server_that_takes_no_single_topics_is_told_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch)
    spy.refuses = True
    async with name_server_fixture.running(tmp_path, DROPS_MISSING) as (server, address):
        config = BrokerConfig(name_servers=str(address), registers_single_topics=True)
        async with running_broker(tmp_path, config) as given:
            before = routes(server)
            await given.send(topic="First")
            await until(lambda: "First" in routes(server))
            assert before < routes(server)


@pytest.mark.requirement("C067")
@pytest.mark.parametrize(("period_ms", "bound"), [(9_999, "10000"), (60_001, "60000")])
def test_a_period_outside_of_ten_seconds_to_a_minute_is_refused_with_its_bounds(period_ms: int, bound: str) -> None:
    with pytest.raises(ConfigError, match=rf"registerNameServerPeriod={period_ms} is .* allowed value {bound}"):
        configs({"registerNameServerPeriod": str(period_ms)})
    configs({"registerNameServerPeriod": "10000"})


async def test_changes_one_after_the_other_are_told_at_once_unless_telling_costs_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with name_server_fixture.running(tmp_path) as (server, names):
        config = BrokerConfig(name_servers=str(names))
        async with running_broker(tmp_path, config) as given:
            monkeypatch.setattr(registration, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": pause}))
            monkeypatch.setattr(registration, "_REST_PER_WORK", 1e6)  # a rest would not be over by itself
            given.broker.tables.topics.ensure("first", 1)
            await until(lambda: "first" in routes(server))
            given.broker.tables.topics.ensure("second", 1)
            await until(lambda: "second" in routes(server))
            assert max(pauses, default=0.0) <= 0, "a small table is told without a pause"

            monkeypatch.setattr(registration, "_LITTLE_WORK_SECONDS", 0.0)  # now everything is much
            given.broker.tables.topics.ensure("third", 1)
            await until(lambda: "third" in routes(server))
            given.broker.tables.topics.ensure("fourth", 1)
            await until(lambda: "fourth" in routes(server))
            assert max(pauses) > 0


@pytest.mark.parametrize("kind", ["one", "list"])
async def test_whoever_hears_that_a_topic_was_created_finds_it_at_the_name_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    may_register = asyncio.Event()
    register = registration.Registration.register

    async def register_when_allowed(self: registration.Registration) -> int:
        await may_register.wait()
        return await register(self)

    async with (
        name_server_fixture.running(tmp_path) as (server, names),
        running_broker(tmp_path, BrokerConfig(name_servers=str(names))) as given,
    ):
        monkeypatch.setattr(registration.Registration, "register", register_when_allowed)
        body = TopicConfigList((TopicConfig("Made", 3, 3),)).encode()
        creating: asyncio.Task[object] = asyncio.create_task(
            given.client.call(given.address, new_topic("Made", 3))
            if kind == "one"
            else given.client.call(given.address, UpdateAndCreateTopicList(), body)
        )
        await until(lambda: any("Made" in file.read_text() for file in tmp_path.rglob("topics.json")))
        for _ in range(20):  # others are served meanwhile, and the answer would have time to come
            await given.send(topic="TBW102")
        assert not creating.done()
        may_register.set()
        await creating
        assert "Made" in routes(server)


async def test_a_topic_is_created_while_one_name_server_is_down_and_another_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (registration, "_TOLD_SECONDS"),
        (registration, "_UNREGISTER_SECONDS"),
        (feature, "_FIRST_REGISTRATION_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 0.01)
    async with name_server_fixture.running(tmp_path) as (_, gone):
        pass
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        async with running_broker(tmp_path, BrokerConfig(name_servers=f"{gone};127.0.0.1:{port}")) as given:
            await given.client.call(given.address, new_topic("Made", 3))
            assert given.broker.tables.topics.find("Made") is not None


async def test_nobody_waits_for_a_registration_that_rests_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "_TOLD_SECONDS", 600.0)  # the call would time out before
    monkeypatch.setattr(registration, "_LITTLE_WORK_SECONDS", 0.0)
    monkeypatch.setattr(registration, "_REST_PER_WORK", 1e9)
    async with name_server_fixture.running(tmp_path) as (server, names):
        async with running_broker(tmp_path, BrokerConfig(name_servers=str(names))) as given:
            await given.client.call(given.address, new_topic("Made", 3))
            assert given.broker.tables.topics.find("Made") is not None
        assert "Made" not in routes(server)
