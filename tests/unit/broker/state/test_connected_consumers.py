"""Consumers by group: who is told of what, subscriptions and their versions, against a plain model too."""

from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyrocket.broker.state.connected_clients import Client
from skyrocket.broker.state.connected_consumers import Change, ConnectedConsumers
from skyrocket.protocol.bodies.heartbeat import ConsumerData
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import ConsumerNotOnline, SubscriptionNotExist, SubscriptionNotLatest, SystemFailure
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.state.files import FakeChannel

FAQ = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."

Consumers = ConnectedConsumers[FakeChannel]


def client(client_id: str, channel: FakeChannel | None = None) -> Client[FakeChannel]:
    return Client(channel or FakeChannel(client_id), client_id, "192.0.2.1:50000", "JAVA", 493)


def data(group: str = "g", topics: str = "T", version: int = 1, model: str = "CLUSTERING") -> ConsumerData:
    return ConsumerData(
        group=group,
        consume_type="CONSUME_PASSIVELY",
        message_model=model,
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=tuple(SubscriptionData(topic, version=version) for topic in topics),
    )


def told(change: Change[FakeChannel] | None) -> list[str]:
    return sorted(channel.name for channel in change.tell) if change else []


@pytest.fixture
def consumers(clock: FakeClock) -> Consumers:
    return ConnectedConsumers(clock)


def test_every_member_is_told_when_one_comes_or_goes(consumers: Consumers) -> None:
    one, two, three = client("c1"), client("c2"), client("c3")
    assert told(consumers.register(one, data())) == ["c1"]
    assert told(consumers.register(two, data())) == ["c1", "c2"]
    assert told(consumers.register(one, data())) == []
    assert told(consumers.register(three, data())) == ["c1", "c2", "c3"]
    assert told(consumers.unregister("g", two.connection)) == ["c1", "c3"]
    assert consumers.unregister("g", two.connection) is None
    (change,) = consumers.closed(three.connection)
    assert told(change) == ["c1"]
    assert not change.is_gone
    assert consumers.unregister("g", one.connection) == Change("g", (), is_gone=True)
    assert consumers.group_names == ()


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        (data(topics="T"), data(topics="TU"), True),
        (data(topics="TU"), data(topics="T"), True),
        (data(topics="T"), data(topics="U"), True),
        (data(topics="T"), data(topics="T"), False),
        (data(version=1), data(version=2), False),
        (data(topics="T"), data(topics=""), True),
    ],
)
def test_topics_that_come_or_go_are_a_change_and_newer_versions_are_none(
    consumers: Consumers, before: ConsumerData, after: ConsumerData, is_told: bool
) -> None:
    member = client("c1")
    consumers.register(member, before)
    assert told(consumers.register(member, after)) == (["c1"] if is_told else [])


def test_members_that_disagree_take_subscriptions_from_each_other(consumers: Consumers) -> None:
    one, two = client("c1"), client("c2")
    consumers.register(one, data(topics="T"))
    consumers.register(two, data(topics="U"))
    for member, topic in ((one, "T"), (two, "U"), (one, "T")):
        assert told(consumers.register(member, data(topics=topic))) == ["c1", "c2"]
        assert consumers.groups_of(topic) == ("g",)
        assert consumers.groups_of("U" if topic == "T" else "T") == ()


def test_nobody_is_told_in_broadcast_mode_or_when_the_group_does_not_want_it(consumers: Consumers) -> None:
    one, two = client("c1"), client("c2")
    assert told(consumers.register(one, data("b", model="BROADCASTING"))) == []
    assert told(consumers.register(two, data("b", model="BROADCASTING"))) == []
    assert told(consumers.unregister("b", two.connection)) == []
    assert told(consumers.register(one, data(), notifies=False)) == []
    assert told(consumers.register(two, data(), notifies=False)) == []
    assert told(consumers.unregister("g", two.connection, notifies=False)) == []


def test_versions_of_subscriptions(consumers: Consumers) -> None:
    member = client("c1")
    consumers.register(member, data(version=5))
    consumers.register(member, data(version=4))
    group = consumers.pulling("g")
    assert group.subscription("T", 5).version == group.subscription("T", 4).version == 5
    with pytest.raises(SubscriptionNotLatest) as refused:
        group.subscription("T", 6)
    assert refused.value.remark == "the consumer's subscription not latest"
    consumers.register(member, data(version=6))
    assert group.subscription("T", 6).version == 6
    with pytest.raises(SubscriptionNotExist) as missing:
        group.subscription("U", 1)
    assert missing.value.remark == f"the consumer's subscription not exist{FAQ}"


def test_unknown_groups(consumers: Consumers) -> None:
    with pytest.raises(SubscriptionNotExist) as missing:
        consumers.pulling("g")
    assert missing.value.remark == f"the consumer's group info not exist{FAQ}"
    with pytest.raises(SystemFailure) as failure:
        consumers.client_ids("g")
    assert failure.value.remark == "no consumer for this group, g"
    with pytest.raises(ConsumerNotOnline) as offline:
        consumers.connections("g")
    assert offline.value.remark == "the consumer group[g] not online"
    assert consumers.find("g", "c1") is None
    assert consumers.find_group("g") is None
    assert consumers.closed(FakeChannel()) == []


@pytest.mark.requirement("C003")
def test_queries(consumers: Consumers) -> None:
    one, two = client("c1"), client("c2")
    consumers.register(one, data())
    consumers.register(two, data())
    assert consumers.client_ids("g") == ("c1", "c2")
    assert consumers.find("g", "c2") == two
    assert consumers.find("g", "c3") is None
    body = consumers.connections("g")
    assert [(each.client_id, each.connected_timestamp) for each in body.connections] == [("c1", None), ("c2", None)]
    timed = consumers.connections("g", with_times=True).connections
    assert all(each.connected_timestamp is not None for each in timed)
    assert (body.consume_type, body.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
    assert body.consume_from_where == "CONSUME_FROM_LAST_OFFSET"
    assert list(body.subscriptions) == ["T"]
    again = client("c1")
    consumers.register(again, data())
    assert consumers.client_ids("g") == ("c1", "c2")
    assert consumers.find("g", "c1") is again


def test_another_client_on_the_same_connection_takes_its_place(consumers: Consumers) -> None:
    one = client("c1")
    consumers.register(one, data())
    assert told(consumers.register(client("c2", one.connection), data())) == []
    assert consumers.client_ids("g") == ("c2",)


def test_expiry_tells_nobody(consumers: Consumers, clock: FakeClock) -> None:
    late, prompt = client("late"), client("prompt")
    consumers.register(late, data())
    consumers.register(late, data("h"))
    clock.advance(seconds=1)
    consumers.register(prompt, data())
    clock.advance(seconds=119)
    assert consumers.expire() == ([], [])
    clock.advance(ms=1)
    assert consumers.expire() == ([late], [Change("g"), Change("h", is_gone=True)])
    assert consumers.group_names == ("g",)
    assert consumers.client_ids("g") == ("prompt",)
    assert consumers.closed(late.connection) == []


def test_heartbeats_without_subscriptions(consumers: Consumers) -> None:
    member = client("c1")
    assert consumers.must_send_subscriptions("g", 0)
    assert not consumers.must_send_subscriptions("h", 7)
    consumers.register(member, data("h", "TU"))
    assert not consumers.must_send_subscriptions("h", 7, without_subscriptions=True)
    assert told(consumers.register(member, data("h", ""), with_subscriptions=False)) == []
    assert set(consumers.pulling("h").subscriptions) == {"T", "U"}
    assert consumers.must_send_subscriptions("h", 8, without_subscriptions=True)
    consumers.closed(member.connection)
    assert not consumers.must_send_subscriptions("h", 9)  # a group that begins anew
    # After a restart the broker has never heard what is left out.
    assert consumers.must_send_subscriptions("new", 7, without_subscriptions=True)


def test_pulls_without_heartbeat_are_seen_for_ten_minutes(consumers: Consumers, clock: FakeClock) -> None:
    noted = SubscriptionData("T", "TagA")
    consumers.note_subscription("g", noted)
    clock.advance(seconds=600)
    consumers.expire()
    assert consumers.find_subscription("g", "T") == noted
    assert consumers.find_subscription("g", "U") is None
    clock.advance(ms=1)
    assert consumers.find_subscription("g", "T") is None
    consumers.expire()
    consumers.register(client("c1"), data())
    assert consumers.find_subscription("g", "T") == SubscriptionData("T", version=1)


CHANNELS = [FakeChannel(f"c{n}") for n in range(3)]
CHANNEL, GROUP = st.sampled_from(CHANNELS), st.sampled_from("gh")


class ConsumersLikeAModel(RuleBasedStateMachine):
    """The model: group → member → last heartbeat, and group → topic → version."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.consumers: Consumers = ConnectedConsumers(self.clock)
        self.members: dict[str, dict[str, float]] = {"g": {}, "h": {}}
        self.topics: dict[str, dict[str, int]] = {"g": {}, "h": {}}

    @rule(channel=CHANNEL, group=GROUP, topics=st.sets(st.sampled_from("TU")), version=st.integers(1, 3))
    def beat(self, channel: FakeChannel, group: str, topics: set[str], version: int) -> None:
        change = self.consumers.register(client(channel.name, channel), data(group, "".join(topics), version))
        known, members = self.topics[group], self.members[group]
        changed = channel.name not in members or topics != known.keys()
        self.topics[group] = {topic: max(version, known.get(topic, 0)) for topic in topics}
        members[channel.name] = self.clock.monotonic()
        assert told(change) == (sorted(members) if changed else [])

    @rule(channel=CHANNEL, group=GROUP)
    def leave(self, channel: FakeChannel, group: str) -> None:
        change = self.consumers.unregister(group, channel)
        assert (change is not None) == (channel.name in self.members[group])
        self._drop(group, [channel.name])
        assert told(change) == (sorted(self.members[group]) if change else [])

    @rule(channel=CHANNEL)
    def close(self, channel: FakeChannel) -> None:
        groups = {group for group, members in self.members.items() if channel.name in members}
        changes = {change.group: change for change in self.consumers.closed(channel)}
        assert changes.keys() == groups
        for group in groups:
            self._drop(group, [channel.name])
            assert told(changes[group]) == sorted(self.members[group])
            assert changes[group].is_gone == (not self.members[group])

    @rule(seconds=st.integers(1, 90))
    def wait_and_scan(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)
        now = self.clock.monotonic()
        late = {g: [name for name, at in members.items() if now - at > 120] for g, members in self.members.items()}
        expired, changes = self.consumers.expire()
        assert {one.client_id for one in expired} == {name for names in late.values() for name in names}
        assert {change.group for change in changes} == {group for group, names in late.items() if names}
        for group, names in late.items():
            self._drop(group, names)

    def _drop(self, group: str, names: Iterable[str]) -> None:
        for name in names:
            self.members[group].pop(name, None)
        if not self.members[group]:
            self.topics[group] = {}

    @invariant()
    def same(self) -> None:
        assert set(self.consumers.group_names) == {group for group, members in self.members.items() if members}
        for name in self.consumers.group_names:
            assert set(self.consumers.client_ids(name)) == self.members[name].keys()
            subscriptions = self.consumers.pulling(name).subscriptions
            assert {topic: one.version for topic, one in subscriptions.items()} == self.topics[name]
        for topic in "TU":
            assert set(self.consumers.groups_of(topic)) == {g for g, topics in self.topics.items() if topic in topics}


TestConsumersLikeAModel = ConsumersLikeAModel.TestCase
TestConsumersLikeAModel.settings = settings(max_examples=60, stateful_step_count=30)
