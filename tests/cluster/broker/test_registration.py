"""A topic that is created is known at the name servers at once, and no other is forgotten for it."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skyrocket.broker.registration import registration
from skyrocket.config.sections import BrokerConfig, NameServerConfig
from skyrocket.errors import ConfigError
from skyrocket.namesrv.name_server import NameServer
from skyrocket.namesrv.route_table import RouteTable
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import UpdateBrokerConfig
from skyrocket.testing.broker_host import configs
from tests.cluster.broker.broker_fixture import running_broker
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
