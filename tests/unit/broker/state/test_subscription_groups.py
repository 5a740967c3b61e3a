"""The group table: who exists, who is created, what is forbidden, its file."""

from dataclasses import replace
from typing import Any

import pytest

from skyrocket.broker.state.subscription_groups import PRESET_GROUPS, SubscriptionGroupTable, is_system_group
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import SUBSCRIPTION_GROUPS
from skyrocket.model.subscription_group import ExponentialRetry, GroupRetryPolicy, SubscriptionGroup
from skyrocket.protocol.errors import GroupNotExist, InvalidParameter, NoPermission, SystemFailure
from skyrocket.testing.clock import FakeClock
from tests.golden_store import GOLDEN
from tests.unit.broker.state.files import PATH, MemoryDisk, config_file

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


def table(clock: FakeClock, disk: MemoryDisk | None = None, **settings: Any) -> SubscriptionGroupTable:
    return SubscriptionGroupTable(config_file(SUBSCRIPTION_GROUPS, disk), clock, **settings)


@pytest.mark.parametrize("store", ["cqext", "crc", "ipv6", "lmq", "timer-roll"])
def test_a_fresh_broker_has_exactly_the_groups_of_rocketmq(clock: FakeClock, store: str) -> None:
    written = SUBSCRIPTION_GROUPS.decode((GOLDEN / "5.4.0" / store / "config" / "subscriptionGroup.json").read_bytes())
    created = {name: group for name, group in written.groups.items() if not name.startswith("Group")}
    assert table(clock).groups == created


@pytest.mark.parametrize(
    ("version", "dialect"), [("5.4.0", Dialect.V5_4), ("4.9.7", Dialect.V4_9)], ids=["5.4.0", "4.9.7"]
)
def test_golden_files_are_saved_as_they_were(clock: FakeClock, version: str, dialect: Dialect) -> None:
    written = (GOLDEN / version / "clean" / "config" / "subscriptionGroup.json").read_bytes()
    disk = MemoryDisk(**{PATH: written})
    known_then = SUBSCRIPTION_GROUPS.decode(written).groups
    built_in = [name for name in PRESET_GROUPS if name in known_then]
    assert set(PRESET_GROUPS) - set(built_in) == ({"CID_RMQ_SYS_TRANS"} if version == "4.9.7" else set())
    groups = SubscriptionGroupTable(config_file(SUBSCRIPTION_GROUPS, disk, dialect), clock, built_in)
    groups.load()
    assert groups.content() == SUBSCRIPTION_GROUPS.decode(written)
    groups.save()
    assert disk.files[PATH] == written


@pytest.mark.parametrize(
    ("auto_create", "auto_create_system", "group", "created"),
    [
        (True, True, "g", True),
        (False, True, "g", False),
        (False, True, "CID_RMQ_SYS_x", True),
        (False, False, "CID_RMQ_SYS_x", False),
        (True, False, "CID_RMQ_SYS_x", True),
        (True, True, "no such name", False),
        (True, True, "", False),
        (True, True, "g" * 121, False),
    ],
)
def test_creation_on_first_use(
    clock: FakeClock, auto_create: bool, auto_create_system: bool, group: str, created: bool
) -> None:
    disk = MemoryDisk()
    groups = table(clock, disk, auto_create=auto_create, auto_create_system=auto_create_system)
    assert groups.find(group) is None
    assert groups.find_or_create(group) == (SubscriptionGroup(group) if created else None)
    assert (groups.find(group) is not None) == created
    assert groups.data_version.counter == int(created)
    assert (PATH in disk.files) == created
    groups.find_or_create(group)
    assert groups.data_version.counter == int(created)


def test_refusals(clock: FakeClock) -> None:
    groups = table(clock, auto_create=False)
    with pytest.raises(GroupNotExist) as missing:
        groups.consuming("g")
    assert missing.value.remark == f"subscription group [g] does not exist, {FAQ}"
    with pytest.raises(GroupNotExist) as missing:
        groups.retrying("g")
    assert missing.value.remark == f"subscription group not exist, g {FAQ}"
    with pytest.raises(GroupNotExist) as missing:
        groups.existing("g", "Group g not exist!")
    assert missing.value.remark == "Group g not exist!"
    groups.update(SubscriptionGroup("g"))
    assert groups.consuming("g") is groups.existing("g", "")
    groups.update(SubscriptionGroup("g", may_consume=False))
    assert groups.data_version.counter == 2
    with pytest.raises(NoPermission) as forbidden:
        groups.consuming("g")
    assert forbidden.value.remark == "subscription group no permission, g"
    assert groups.retrying("g").retry_max_times == 16


def test_update_and_delete(clock: FakeClock) -> None:
    groups = table(clock)
    policy = GroupRetryPolicy("EXPONENTIAL", exponential=ExponentialRetry(1000, 60_000, 3))
    wanted = SubscriptionGroup("g", retry_queues=2, retry_max_times=3, retry_policy=policy)
    groups.update(replace(wanted, attributes={"+priority.factor": "30"}))
    assert groups.find("g") == replace(wanted, attributes={"priority.factor": "30"})
    assert groups.priority_factor("g") == 30
    groups.update(wanted)
    assert groups.priority_factor("g") == 30
    groups.update(replace(wanted, attributes={"-priority.factor": ""}))
    assert groups.priority_factor("g") == groups.priority_factor("no such") == 100
    groups.let_read("g", "T", False)
    assert groups.delete("g") == wanted
    assert groups.delete("g") is None
    assert groups.data_version.counter == 5
    assert groups.may_read("g", "T")
    groups.let_read("never seen", "T", False)
    groups.delete("never seen")
    assert groups.data_version.counter == 7


def test_refused_updates_change_nothing(clock: FakeClock) -> None:
    groups = table(clock)
    with pytest.raises(InvalidParameter, match=r"The specified group is blank\."):
        groups.update_all([SubscriptionGroup("a"), SubscriptionGroup("")])
    with pytest.raises(SystemFailure) as refused:
        groups.update_all([SubscriptionGroup("a"), SubscriptionGroup("b", attributes={"+priority.factor": "101"})])
    assert str(refused.value.remark).startswith("java.lang.RuntimeException: value is not in range(0, 100)")
    with pytest.raises(SystemFailure) as refused:
        groups.update(SubscriptionGroup("b", attributes={"+lite.bind.topic": "x"}))
    assert str(refused.value.remark).startswith("java.lang.RuntimeException: unsupported key: lite.bind.topic")
    groups.update_all([])
    assert groups.find("a") is None
    assert groups.data_version.counter == 0


def test_forbidden_topics(clock: FakeClock) -> None:
    disk = MemoryDisk()
    groups = table(clock, disk)
    groups.let_read("g", "T", True)
    assert groups.data_version.counter == 0
    groups.let_read("g", "T", False)
    groups.let_read("g", "U", False)
    groups.let_read("g", "U", False)
    assert groups.data_version.counter == 2
    assert groups.content().forbidden == {"g": {"T": 4, "U": 4}}
    with pytest.raises(NoPermission) as refused:
        groups.check_may_read("g", "T")
    assert refused.value.remark == "the consumer group[g] is forbidden for topic[T]"
    again = table(clock, disk)
    again.load()
    again.let_read("g", "T", True)
    again.check_may_read("g", "T")
    assert not again.may_read("g", "U")
    again.let_read("g", "U", True)
    assert again.content().forbidden == {}


def test_system_groups() -> None:
    assert all(map(is_system_group, ["TOOLS_CONSUMER", "DEFAULT_PRODUCER", "CID_RMQ_SYS_anything"]))
    assert not is_system_group("GroupOne")
