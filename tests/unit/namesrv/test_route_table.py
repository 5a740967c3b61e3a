"""The tables of a name server, one change after the other."""

import pytest

from skyrocket.model.topic_config import SYS_FLAG_UNIT, SYS_FLAG_UNIT_SUBSCRIPTION
from skyrocket.namesrv.route_table import BrokerIdentity, BrokerKey, RouteTable
from skyrocket.protocol.bodies.registration import BrokerRegistration
from skyrocket.protocol.bodies.route import QueueData
from skyrocket.protocol.errors import SystemFailure
from tests.unit.namesrv.samples import CLUSTER, broker, registration, topic

CONNECTION = object()


def table_with(*registrations: tuple[BrokerIdentity, BrokerRegistration]) -> RouteTable:
    table = RouteTable()
    for identity, body in registrations:
        table.register(identity, body, CONNECTION, now=0.0)
    return table


def permissions(table: RouteTable, name: str) -> dict[str, int]:
    return {queues.broker_name: queues.permission for queues in table.topics.get(name, {}).values()}


# ── registration ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A040", "A041", "C065")
def test_a_registration_fills_the_tables() -> None:
    table = table_with(
        (broker("a"), registration("T", "U", filters=("f:1",))),
        (broker("a", 1), registration("T", "U")),
        (broker("b"), registration("T", topic("V", queues=8))),
    )
    assert table.topics["T"] == {"a": QueueData("a", 4, 4, 6, 0), "b": QueueData("b", 4, 4, 6, 0)}
    assert table.topics["V"] == {"b": QueueData("b", 8, 8, 6, 0)}
    assert table.brokers["a"].addresses == {0: "a-0:10911", 1: "a-1:10911"}
    assert table.clusters == {CLUSTER: {"a", "b"}}
    assert set(table.live) == {BrokerKey(CLUSTER, f"{name}:10911") for name in ("a-0", "a-1", "b-0")}
    assert table.filters == {BrokerKey(CLUSTER, "a-0:10911"): ("f:1",)}


@pytest.mark.parametrize(
    ("counter", "expected"), [pytest.param(1, 6, id="same-version"), pytest.param(2, 4, id="new-version")]
)
def test_topics_are_taken_only_when_the_data_version_changed(counter: int, expected: int) -> None:
    table = table_with((broker(), registration("T", "U")))
    changes = table.changes
    table.register(broker(), registration(topic("T", permission=4), "U", counter=counter), CONNECTION, now=1.0)
    assert permissions(table, "T") == {"broker-a": expected}
    assert (table.changes == changes) == (expected == 6)


def test_a_topic_that_the_table_lacks_is_taken_with_any_version() -> None:
    table = table_with((broker(), registration("T", "U")))
    table.register(broker(), registration("T", "U", "New"), CONNECTION, now=1.0)
    assert "New" in table.topics


def test_news_of_a_single_topic_updates_it_and_leaves_the_others() -> None:
    table = table_with((broker(), registration("T", "U")))
    table.register(broker(), registration(topic("T", queues=9), counter=2), CONNECTION, now=1.0)
    assert table.topics["T"]["broker-a"].read_queues == 9
    assert set(table.topics) == {"T", "U"}


def test_a_first_registration_with_a_single_topic_is_refused_and_changes_nothing() -> None:
    table = RouteTable()
    with pytest.raises(SystemFailure, match="register broker failed") as refused:
        table.register(broker(), registration("T"), CONNECTION, now=0.0)
    assert refused.value.ext_fields == {}
    assert table == RouteTable()


def test_a_registration_without_topics_is_taken() -> None:
    assert table_with((broker(), registration())).brokers["broker-a"].addresses == {0: "broker-a-0:10911"}


def test_topics_missing_from_a_later_registration_go_only_when_that_is_wanted() -> None:
    table = table_with((broker("a"), registration("T", "U")), (broker("b"), registration("U", "V")))
    table.register(broker("a"), registration("T", "W", counter=2), CONNECTION, now=1.0)
    assert permissions(table, "U") == {"a": 6, "b": 6}
    table.register(broker("a"), registration("T", "W", counter=3), CONNECTION, now=1.0, drops_missing_topics=True)
    assert permissions(table, "U") == {"b": 6}


def test_an_address_with_a_new_id_leaves_its_old_one() -> None:
    table = table_with((broker(broker_id=1, address="x:1"), registration("T", "U")))
    table.register(broker(broker_id=0, address="x:1"), registration("T", "U"), CONNECTION, now=1.0)
    assert table.brokers["broker-a"].addresses == {0: "x:1"}


@pytest.mark.parametrize(
    ("held", "new", "address"),
    [pytest.param(5, 4, "old:1", id="older-is-ignored"), pytest.param(5, 5, "new:1", id="as-new-takes-over")],
)
def test_an_id_held_by_another_address_goes_to_the_later_state_version(held: int, new: int, address: str) -> None:
    table = table_with((broker(address="old:1"), registration("T", "U", state_version=held)))
    answer = table.register(broker(address="new:1"), registration("T", "U", state_version=new), CONNECTION, now=1.0)
    assert table.brokers["broker-a"].addresses == {0: address}
    assert answer.master_address is None
    assert (BrokerKey(CLUSTER, "new:1") in table.live) == (address == "new:1")


def test_a_slave_hears_of_its_master() -> None:
    table = RouteTable()
    assert table.register(broker(broker_id=1), registration("T", "U"), CONNECTION, now=0.0).master_address is None
    assert table.register(broker(), registration("T", "U"), CONNECTION, now=0.0).master_address is None
    answer = table.register(broker(broker_id=1), registration("T", "U"), CONNECTION, now=0.0)
    assert (answer.master_address, answer.ha_address) == ("broker-a-0:10911", "broker-a-0:10911-ha")


@pytest.mark.parametrize(
    ("acting", "expected"),
    [
        pytest.param(None, {}, id="a-broker-older-than-5.0-has-no-say"),
        pytest.param(False, {"broker-a": 6}, id="topics-of-the-smallest-slave"),
        pytest.param(True, {"broker-a": 4}, id="read-only-when-it-acts-as-master"),
    ],
)
def test_topics_of_a_slave_without_master(acting: bool | None, expected: dict[str, int]) -> None:
    table = table_with((broker(broker_id=1, acting=acting), registration("T", "U")))
    assert permissions(table, "T") == expected


def test_topics_of_a_slave_beside_its_master_are_not_taken() -> None:
    table = table_with((broker(), registration("T", "U")), (broker(broker_id=1, acting=True), registration("V", "W")))
    assert set(table.topics) == {"T", "U"}


def test_filter_servers_are_kept_replaced_left_and_removed() -> None:
    key = broker().key
    table = table_with((broker(), registration("T", "U", filters=("f:1",))))
    for filters, expected in ((None, ("f:1",)), (("f:2",), ("f:2",)), ((), None)):
        table.register(broker(), registration("T", "U", filters=filters), CONNECTION, now=1.0)
        assert table.filters.get(key) == expected


def test_a_smaller_id_than_before_is_told() -> None:
    table = table_with((broker(broker_id=2), registration("T", "U")))
    assert table.register(broker(broker_id=3), registration(), CONNECTION, now=0.0).min_change is None
    change = table.register(broker(broker_id=1), registration(), CONNECTION, now=0.0).min_change
    assert change is not None
    assert (min(change.addresses), change.offline_address, change.ha_address) == (1, None, "broker-a-1:10911-ha")


# ── signs of life and removal ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("timeout", "now", "is_expired"),
    [(120.0, 120.0, False), (120.0, 120.1, True), (10.0, 10.0, False), (10.0, 10.1, True)],
)
def test_a_broker_expires_after_its_own_timeout(timeout: float, now: float, is_expired: bool) -> None:
    table = table_with((broker(timeout_seconds=timeout), registration("T", "U")))
    assert table.expired(now) == ([broker().key] if is_expired else [])


def test_a_sign_of_life_counts_for_known_brokers_only() -> None:
    table = table_with((broker(), registration("T", "U")))
    table.touch(broker().key, now=100.0)
    table.touch(broker("unknown").key, now=100.0)
    assert table.expired(200.0) == []
    assert set(table.live) == {broker().key}


@pytest.mark.requirement("C069")
@pytest.mark.parametrize("way", ["unregister", "remove"])
def test_a_broker_that_goes_takes_its_topics_along(way: str) -> None:
    table = table_with((broker("a"), registration("T", "U")), (broker("b"), registration("U", "V")))
    if way == "unregister":
        table.unregister([broker("a")])
    else:
        table.remove([broker("a").key])
    assert {name: set(queues) for name, queues in table.topics.items()} == {"U": {"b"}, "V": {"b"}}
    assert (set(table.brokers), table.clusters, set(table.live)) == ({"b"}, {CLUSTER: {"b"}}, {broker("b").key})
    table.unregister([broker("b")])
    assert table == RouteTable(changes=table.changes)


def test_unknown_brokers_go_without_effect() -> None:
    table = table_with((broker(), registration("T", "U")))
    before = table.changes
    assert table.unregister([broker("other"), broker(address="elsewhere:1")]) == []
    assert table.remove([BrokerKey(CLUSTER, "elsewhere:1")]) == []
    assert (table.changes, set(table.topics)) == (before, {"T", "U"})


def test_a_process_that_lost_its_id_to_another_takes_nothing_along() -> None:
    table = table_with((broker(address="old:1"), registration("T", "U")))
    table.register(broker(address="new:1"), registration("T", "U", counter=2), object(), now=0.0)
    table.remove(table.connected_by(CONNECTION))
    assert set(table.live) == {BrokerKey(CLUSTER, "new:1")}
    assert set(table.topics) == {"T", "U"}


@pytest.mark.requirement("C059")
def test_brokers_are_found_by_their_connection() -> None:
    table = RouteTable()
    mine, other = object(), object()
    table.register(broker("a"), registration("T", "U"), mine, now=0.0)
    table.register(broker("b"), registration("T", "U"), mine, now=0.0)
    table.register(broker("c"), registration("T", "U"), other, now=0.0)
    assert table.connected_by(mine) == [broker("a").key, broker("b").key]
    assert table.connected_by(object()) == []


@pytest.mark.parametrize(("acting", "permission"), [(True, 4), (False, 6)])
def test_a_master_that_goes_leaves_its_slaves_read_only(acting: bool, permission: int) -> None:
    table = table_with(
        (broker(acting=acting), registration("T", "U")), (broker(broker_id=1, acting=acting), registration())
    )
    changes = table.unregister([broker()])
    assert permissions(table, "T") == {"broker-a": permission}
    assert [(change.offline_address, change.addresses) for change in changes] == (
        [("broker-a-0:10911", {1: "broker-a-1:10911"})] if acting else []
    )


# ── administrators ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_write_permission_is_wiped_and_added_until_the_broker_registers_changed_topics() -> None:
    table = table_with(
        (broker("a"), registration("T", topic("U", permission=7))), (broker("b"), registration("T", "V"))
    )
    assert table.wipe_write_permission("a") == 2
    assert (permissions(table, "T"), permissions(table, "U")) == ({"a": 4, "b": 6}, {"a": 5})
    table.register(broker("a"), registration("T", topic("U", permission=7)), CONNECTION, now=1.0)
    assert permissions(table, "U") == {"a": 5}
    assert table.add_write_permission("a") == 2
    assert permissions(table, "U") == {"a": 6}
    table.register(broker("a"), registration("T", topic("U", permission=7), counter=2), CONNECTION, now=1.0)
    assert permissions(table, "U") == {"a": 7}
    assert table.wipe_write_permission("unknown") == 0


@pytest.mark.parametrize(
    ("cluster", "left"),
    [
        pytest.param(None, set(), id="everywhere"),
        pytest.param("One", {"b"}, id="one-cluster"),
        pytest.param("None", {"a", "b"}, id="unknown-cluster"),
    ],
)
def test_a_topic_is_deleted(cluster: str | None, left: set[str]) -> None:
    table = table_with(
        (broker("a", cluster="One"), registration("T", "U")), (broker("b", cluster="Two"), registration("T", "V"))
    )
    table.delete_topic("T", cluster)
    table.delete_topic("Unknown", cluster)
    assert set(table.topics.get("T", {})) == left
    assert ("T" in table.topics) == bool(left)


def test_a_topic_is_registered_for_known_brokers_up_to_the_first_unknown() -> None:
    table = table_with((broker("a"), registration("T", "U")), (broker("b"), registration("T", "U")))
    queues = [QueueData(name, 1, 1, 6) for name in ("a", "unknown", "b")]
    table.register_topic("New", queues)
    assert set(table.topics["New"]) == {"a"}


def test_lists_of_topics() -> None:
    both = SYS_FLAG_UNIT | SYS_FLAG_UNIT_SUBSCRIPTION
    table = table_with(
        (broker("a", cluster="One"), registration(topic("U", sys_flag=SYS_FLAG_UNIT), topic("B", sys_flag=both))),
        (broker("b", cluster="Two"), registration(topic("S", sys_flag=SYS_FLAG_UNIT_SUBSCRIPTION), "N")),
    )
    assert table.topics_of_cluster("One") == ["U", "B"]
    assert table.topics_of_cluster("None") == []
    assert table.unit_topics() == ["U", "B"]
    assert table.unit_subscription_topics() == ["B", "S"]
    assert table.unit_subscription_topics_without_unit() == ["S"]
    assert table.any_address() == "a-0:10911"
    assert RouteTable().any_address() is None


def test_mappings_of_static_topics_come_and_go_with_their_broker() -> None:
    mapping = {"topic": "T", "bname": "a", "totalQueues": 8}
    table = table_with((broker("a"), registration("T", "U", mappings={"T": mapping})))
    assert table.mappings == {"T": {"a": mapping}}
    table.unregister([broker("a")])
    assert table.mappings == {}
