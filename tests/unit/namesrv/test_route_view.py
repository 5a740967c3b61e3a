"""What requesters see of a topic."""

import pytest

from skyrocket.namesrv.min_broker import notice, receivers
from skyrocket.namesrv.route_table import MinBrokerChange, RouteTable
from skyrocket.namesrv.route_view import only_zone, route_of
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from tests.unit.namesrv.samples import broker, registration

MEMBER_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_broker-a"


def found(route: TopicRoute | None) -> TopicRoute:
    assert route is not None
    return route


@pytest.mark.requirement("A040", "A041", "C071")
def test_a_route_has_queues_and_addresses_of_every_broker_of_the_topic() -> None:
    table = RouteTable()
    table.register(broker("a"), registration("T", "U", filters=("f:1",)), None, 0.0)
    table.register(broker("a", 1), registration("T", "U"), None, 0.0)
    table.register(broker("b"), registration("T", "V"), None, 0.0)
    route = found(route_of(table, "T", order_conf="a:4"))
    assert [queues.broker_name for queues in route.queues] == ["a", "b"]
    assert [data.addresses for data in route.brokers] == [{0: "a-0:10911", 1: "a-1:10911"}, {0: "b-0:10911"}]
    assert route.filter_servers == {"a-0:10911": ["f:1"]}
    assert route.order_topic_conf == "a:4"
    assert [data.broker_name for data in found(route_of(table, "V")).brokers] == ["b"]


def test_no_route_without_a_topic_or_a_broker() -> None:
    table = RouteTable()
    table.register(broker(), registration("T", "U"), None, 0.0)
    assert route_of(table, "Unknown") is None
    del table.brokers["broker-a"]
    assert route_of(table, "T") is None


@pytest.mark.parametrize(
    ("supported", "acting", "topic", "addresses"),
    [
        pytest.param(True, True, "T", {0: "broker-a-1:10911", 2: "broker-a-2:10911"}, id="smallest-id-stands-in"),
        pytest.param(False, True, "T", {1: "broker-a-1:10911", 2: "broker-a-2:10911"}, id="not-supported"),
        pytest.param(True, False, "T", {1: "broker-a-1:10911", 2: "broker-a-2:10911"}, id="broker-does-not-want"),
        pytest.param(True, True, MEMBER_TOPIC, {1: "broker-a-1:10911", 2: "broker-a-2:10911"}, id="member-topic"),
    ],
)
def test_the_stand_in_for_a_lost_master(supported: bool, acting: bool, topic: str, addresses: dict[int, str]) -> None:
    table = RouteTable()
    for broker_id in (0, 1, 2):
        table.register(broker(broker_id=broker_id, acting=acting), registration("T", MEMBER_TOPIC), None, 0.0)
    table.unregister([broker()])
    assert found(route_of(table, topic, with_acting_masters=supported)).brokers[0].addresses == addresses


@pytest.mark.parametrize(
    ("fields", "zone"),
    [
        (None, None),
        ({"__ZONE_NAME": "z"}, None),
        ({"__ZONE_MODE": "true"}, None),
        ({"__ZONE_MODE": "true", "__ZONE_NAME": " "}, None),
        ({"__ZONE_MODE": "TRUE", "__ZONE_NAME": "z"}, "z"),
    ],
)
def test_the_zone_that_is_wanted(fields: dict[str, str] | None, zone: str | None) -> None:
    assert GetRouteInfoByTopic.from_fields(fields).zone == zone


def test_only_brokers_of_the_zone_and_those_without_master_are_left() -> None:
    table = RouteTable()
    table.register(broker("here", zone="Z1"), registration("T", "U", filters=("f:1",)), None, 0.0)
    table.register(broker("there", zone="Z2"), registration("T", "U", filters=("f:2",)), None, 0.0)
    table.register(broker("nowhere"), registration("T", "U"), None, 0.0)
    table.register(broker("orphan", 1, zone="Z2"), registration("T", "U"), None, 0.0)
    route = only_zone(found(route_of(table, "T")), "z1")
    assert [data.broker_name for data in route.brokers] == ["here", "orphan"]
    assert [queues.broker_name for queues in route.queues] == ["here", "orphan"]
    assert set(route.filter_servers) == {"here-0:10911"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(MinBrokerChange("a", {1: "x", 2: "y"}, offline_address="m"), ["x", "y"], id="one-went"),
        pytest.param(MinBrokerChange("a", {0: "m", 1: "x", 2: "y"}, ha_address="h"), ["x", "y"], id="one-came"),
        pytest.param(MinBrokerChange("a", {0: "m"}, ha_address="h"), ["m"], id="the-only-one"),
    ],
)
def test_who_hears_of_a_new_smallest_id(change: MinBrokerChange, expected: list[str]) -> None:
    assert receivers(change) == expected
    told = notice(change)
    assert (told.min_broker_id, told.min_broker_addr) == (
        min(change.addresses),
        change.addresses[min(change.addresses)],
    )
    assert (told.offline_broker_addr, told.ha_broker_addr) == (change.offline_address, change.ha_address)
