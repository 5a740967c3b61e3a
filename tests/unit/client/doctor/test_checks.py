"""Illnesses planted into facts: the doctor names each one, and finds nothing in healthy ones."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from skyrocket.client import BrokerPlace, MessageQueue, QueueLag
from skyrocket.client.admin.waiting_messages import OpenTransaction
from skyrocket.client.doctor.examination import findings_of
from skyrocket.client.doctor.explanation import outlook_of, steps_of
from skyrocket.client.doctor.facts import BrokerFacts, ClusterFacts, GroupFacts, NameServerFacts
from skyrocket.client.doctor.finding import Severity
from skyrocket.client.doctor.server_checks import name_servers, reachable
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.access import UserInfo
from skyrocket.protocol.bodies.connections import ClientConnection, ConsumerConnections
from skyrocket.protocol.bodies.replication import HaConnection, HaStatus
from skyrocket.protocol.bodies.route import BrokerData, ClusterInfo, QueueData, TopicRoute
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, ConsumeStatus, ProcessQueueInfo
from skyrocket.protocol.bodies.statistics import TopicOffset
from skyrocket.protocol.bodies.subscription import SubscriptionData

NOW = 1_800_000_000_000
HOUR = 3_600_000
A, B = BrokerPlace("C", "broker-a", 0, "10.0.0.1:10911"), BrokerPlace("C", "broker-b", 0, "10.0.0.2:10911")
QUEUES = [MessageQueue("Orders", place.broker_name, number) for place in (A, B) for number in range(2)]
CLIENT = "10.0.0.9@1"
INFO = ClusterInfo(
    {place.broker_name: BrokerData(place.broker_name, "C", {0: place.address}) for place in (A, B)},
    {"C": ["broker-a", "broker-b"]},
)


def healthy() -> ClusterFacts:
    """Two brokers, one topic on both, one group whose client keeps up."""
    return ClusterFacts(
        NOW,
        (NameServerFacts("10.0.0.8:9876", INFO), NameServerFacts("10.0.0.7:9876", INFO)),
        (_broker(A), _broker(B)),
        {"Orders": {place: TopicConfig("Orders", 2, 2) for place in (A, B)}},
        frozenset({"Orders"}),
        {"Orders": TopicRoute((), tuple(QueueData(place.broker_name, 2, 2, 6) for place in (A, B)))},
        {queue: TopicOffset(0, 100, NOW) for queue in QUEUES},
        {"Billing": _group()},
        sample_seconds=5.0,
    )


def _broker(place: BrokerPlace) -> BrokerFacts:
    runtime = {
        "brokerVersionDesc": "V5_4_0",
        "commitLogDiskRatio": "0.3",
        "bootTimestamp": str(NOW - 100 * HOUR),
        "runtime": "[ 4 days, 4 hours, 0 minutes, 0 seconds ]",
        "earliestMessageTimeStamp": str(NOW - 72 * HOUR),
        "commitLogMinOffset": "1000",
    }
    settings = {"brokerPermission": "6", "fileReservedTime": "72", "diskMaxUsedSpaceRatio": "75"}
    return BrokerFacts(place, runtime, settings, HaStatus(True), producers=1, asked_at_ms=NOW)


def _group() -> GroupFacts:
    lags = tuple(QueueLag(queue, 100, 100, NOW - 1000) for queue in QUEUES)
    subscription = SubscriptionData("Orders")
    return GroupFacts(
        "Billing",
        {place: SubscriptionGroup("Billing") for place in (A, B)},
        ConsumerConnections(
            (ClientConnection(CLIENT, "10.0.0.9:1", "JAVA", 493),),
            {"Orders": subscription},
            "CONSUME_PASSIVELY",
            "CLUSTERING",
        ),
        {CLIENT: _info(QUEUES)},
        lags,
        {each.queue: each for each in lags},
    )


def _info(queues: list[MessageQueue], expression: str = "*") -> ConsumerRunningInfo:
    return ConsumerRunningInfo(
        {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_CONSUMEORDERLY": "false"},
        (SubscriptionData("Orders", expression),),
        {queue: ProcessQueueInfo(last_consume_timestamp=NOW) for queue in queues},
    )


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    assert findings_of(healthy()) == []


# ── planting ─────────────────────────────────────────────────────────────────────────────────────────────────────────

Plant = Callable[[ClusterFacts], ClusterFacts]


def at_a(**fields: object) -> Plant:
    return lambda facts: replace(facts, brokers=(replace(facts.brokers[0], **fields), facts.brokers[1]))  # type: ignore[arg-type]


def runtime(**values: str) -> Plant:
    return lambda facts: at_a(runtime={**facts.brokers[0].runtime, **values})(facts)


def setting(**values: str) -> Plant:
    return lambda facts: at_a(settings={**facts.brokers[0].settings, **values})(facts)


def topic(**fields: object) -> Plant:
    return lambda facts: replace(
        facts,
        topics={"Orders": {**facts.topics["Orders"], A: replace(facts.topics["Orders"][A], **fields)}},  # type: ignore[arg-type]
    )


def topic_at_b(**fields: object) -> Plant:
    return lambda facts: replace(
        facts,
        topics={"Orders": {**facts.topics["Orders"], B: replace(facts.topics["Orders"][B], **fields)}},  # type: ignore[arg-type]
    )


def group(**fields: object) -> Plant:
    return lambda facts: replace(facts, groups={"Billing": replace(facts.groups["Billing"], **fields)})  # type: ignore[arg-type]


def lagging(*counts: int, last: int = NOW - 1000) -> Plant:
    lags = tuple(QueueLag(queue, 100_000, 100_000 - n, last) for queue, n in zip(QUEUES, counts, strict=True))
    return lambda facts: group(lags=lags, earlier={each.queue: each for each in lags})(facts)


def growing(facts: ClusterFacts) -> ClusterFacts:
    facts = lagging(500, 500, 500, 500)(facts)
    before = {
        each.queue: replace(each, broker_offset=each.broker_offset - 100) for each in facts.groups["Billing"].lags
    }
    return group(earlier=before)(facts)


def moved(came: int, done: int, queues: Sequence[MessageQueue] = QUEUES) -> Plant:
    """So much in each queue since the first look."""

    def plant(facts: ClusterFacts) -> ClusterFacts:
        before = {
            each.queue: replace(
                each,
                broker_offset=each.broker_offset - came,
                consumer_offset=each.consumer_offset - (done if each.queue in queues else 0),
            )
            for each in facts.groups["Billing"].lags
        }
        return group(earlier=before)(facts)

    return plant


def dead_letters(facts: ClusterFacts) -> ClusterFacts:
    queue = MessageQueue("%DLQ%Billing", "broker-a", 0)
    return replace(facts, offsets={**facts.offsets, queue: TopicOffset(0, 7, NOW - 60_000)})


def retries(facts: ClusterFacts) -> ClusterFacts:
    queue = MessageQueue("%RETRY%Billing", "broker-a", 0)
    lags = (*facts.groups["Billing"].lags, QueueLag(queue, 5000, 0, NOW))
    return group(lags=lags)(facts)


def members(count: int) -> Plant:
    def plant(facts: ClusterFacts) -> ClusterFacts:
        connected = facts.groups["Billing"].members
        assert connected is not None
        clients = tuple(ClientConnection(f"c{n}", f"10.0.0.{n}:1", "JAVA", 493) for n in range(count))
        infos = {f"c{n}": _info(QUEUES[n : n + 1]) for n in range(count)}
        return group(members=replace(connected, connections=clients), infos=infos)(facts)

    return plant


def without_topic(facts: ClusterFacts) -> ClusterFacts:
    connected = facts.groups["Billing"].members
    assert connected is not None
    wanted = {**connected.subscriptions, "Nowhere": SubscriptionData("Nowhere")}
    return group(members=replace(connected, subscriptions=wanted))(facts)


def old_client(facts: ClusterFacts) -> ClusterFacts:
    connected = facts.groups["Billing"].members
    assert connected is not None
    clients = tuple(replace(each, version=300) for each in connected.connections)
    return group(members=replace(connected, connections=clients))(facts)


def only_a(facts: ClusterFacts) -> ClusterFacts:
    queues = facts.routes["Orders"].queues[:1]
    return replace(facts, topics={"Orders": {A: facts.topics["Orders"][A]}}, routes={"Orders": TopicRoute((), queues)})


def route(*queues: QueueData) -> Plant:
    return lambda facts: replace(facts, routes={"Orders": TopicRoute((), queues)})


def slave_keeping(hours: str) -> Plant:
    place = A._replace(broker_id=1, address="10.0.0.4:10911")
    slave = replace(_broker(place), settings={"fileReservedTime": hours})
    return lambda facts: replace(facts, brokers=(*facts.brokers, slave))


SLAVE = BrokerPlace("C", "broker-c", 1, "10.0.0.3:10911")
HALF = OpenTransaction("broker-a", "t", "Orders", "Shop", (), 20 * 60_000, 9, 1)

ILLNESSES: list[tuple[str, Plant]] = [
    ("name-server-down", lambda f: replace(f, name_servers=(f.name_servers[0], NameServerFacts("x:1", problem="no")))),
    (
        "name-servers-differ",
        lambda f: replace(
            f,
            name_servers=(
                f.name_servers[0],
                NameServerFacts("x:1", ClusterInfo({"broker-a": INFO.brokers["broker-a"]}, {"C": ["broker-a"]})),
            ),
        ),
    ),
    ("no-brokers", lambda f: ClusterFacts(NOW, (NameServerFacts("x:1", ClusterInfo()),))),
    ("broker-unreachable", at_a(problem="could not connect")),
    ("no-rights", at_a(problem="code 16", is_refusal=True)),
    ("loopback-address", at_a(place=BrokerPlace("C", "broker-a", 0, "127.0.0.1:10911"))),
    ("loopback-address", at_a(place=BrokerPlace("C", "broker-a", 0, "0.0.0.0:10911"))),
    ("no-master", lambda f: replace(f, brokers=(*f.brokers, BrokerFacts(SLAVE, f.brokers[0].runtime)))),
    ("disk-full", runtime(commitLogDiskRatio="0.97")),
    ("disk-filling", runtime(commitLogDiskRatio="0.8")),
    ("retention-broken", runtime(earliestMessageTimeStamp=str(NOW - 10 * HOUR))),
    ("slave-missing", setting(brokerRole="SYNC_MASTER")),
    ("slave-behind", at_a(ha=HaStatus(True, 1, 0, (HaConnection("10.0.0.3:1", 0, 1 << 30, False),)))),
    ("slave-behind", slave_keeping("72")),  # and its master has no connection of it
    ("overloaded", runtime(sendThreadPoolQueueHeadWaitTimeMills="900")),
    ("timer-behind", runtime(timerReadBehind="60")),
    ("clock-skew", runtime(runtime="[ 4 days, 4 hours, 2 minutes, 0 seconds ]")),
    ("auto-create-topics", setting(autoCreateTopicEnable="true")),
    ("broker-not-writable", setting(brokerPermission="4")),
    ("default-password", at_a(users=(UserInfo("rocketmq", "12345678"),))),
    ("versions-differ", runtime(brokerVersionDesc="V4_9_7")),
    ("transactions-open", lambda f: replace(f, transactions=(HALF,))),
    ("route-missing", route(QueueData("broker-b", 2, 2, 6))),
    ("writes-paused", route(QueueData("broker-a", 2, 2, 4), QueueData("broker-b", 2, 2, 6))),
    ("topic-not-writable", topic(permission=4)),
    ("topic-not-readable", topic(permission=2)),
    ("queues-differ", topic(write_queues=4)),
    ("queues-differ", topic(read_queues=4)),
    ("topic-on-one-broker", only_a),
    ("no-client", lambda f: group(members=None, infos={})(lagging(1, 1, 1, 1)(f))),
    ("group-disabled", group(configs={A: SubscriptionGroup("Billing", may_consume=False)})),
    ("subscriptions-differ", group(infos={"c1": _info(QUEUES[:2], "a"), "c2": _info(QUEUES[2:], "b")})),
    ("old-clients", old_client),
    ("more-clients-than-queues", members(5)),
    ("queue-without-owner", group(infos={CLIENT: _info(QUEUES[1:])})),
    ("no-such-topic", without_topic),
    ("offset-beyond-end", lagging(-5, 0, 0, 0)),
    ("messages-expired", lambda f: replace(f, offsets={queue: TopicOffset(150, 200, NOW) for queue in QUEUES})),
    ("lag-near-retention", lagging(1, 0, 0, 0, last=NOW - 70 * HOUR)),
    ("queue-skewed", lagging(5000, 1, 1, 1)),
    ("lag-growing", growing),
    (
        "client-stuck",
        group(
            infos={
                CLIENT: replace(
                    _info(QUEUES),
                    queues={
                        queue: ProcessQueueInfo(cached_messages=9, last_consume_timestamp=NOW - 120_000)
                        for queue in QUEUES
                    },
                )
            }
        ),
    ),
    ("broker-twice", lambda f: replace(f, brokers=(*f.brokers, _broker(A._replace(address="10.0.0.9:1"))))),
    ("slave-settings-differ", slave_keeping("12")),
    ("queues-behind", runtime(dispatchBehindBytes=str(1 << 30))),
    (
        "retry-topic-closed",
        lambda f: replace(f, topics={**f.topics, "%RETRY%Billing": {A: TopicConfig("%RETRY%Billing", 1, 1, 4)}}),
    ),
    ("topic-differs", topic(ordered=True)),
    (
        "topic-differs",
        lambda f: replace(
            f,
            topics={
                "Orders": {
                    place: replace(f.topics["Orders"][place], attributes={"message.type": kind})
                    for place, kind in ((A, "FIFO"), (B, "NORMAL"))
                }
            },
        ),
    ),
    (
        "group-disabled",
        group(configs={A: SubscriptionGroup("Billing", may_consume=False), B: SubscriptionGroup("Billing")}),
    ),
    (
        "group-differs",
        group(configs={A: SubscriptionGroup("Billing", retry_max_times=3), B: SubscriptionGroup("Billing")}),
    ),
    (
        "group-missing",
        lambda f: group(configs={B: SubscriptionGroup("Billing")})(setting(autoCreateSubscriptionGroup="false")(f)),
    ),
    ("dead-letters", dead_letters),
    ("retries-waiting", retries),
]


@pytest.mark.parametrize(("code", "plant"), ILLNESSES, ids=[f"{n}-{code}" for n, (code, _) in enumerate(ILLNESSES)])
def test_a_planted_illness_is_named_with_its_remedy(code: str, plant: Plant) -> None:
    found = {finding.code: finding for finding in findings_of(plant(healthy()))}
    assert code in found
    assert found[code].remedy
    assert found[code].where


def told_late(facts: ClusterFacts) -> ClusterFacts:
    """A broker that took its time: its clock may be ours."""
    return at_a(asked_at_ms=NOW - 20_000, answered_at_ms=NOW)(facts)


def quicker_than_the_look(facts: ClusterFacts) -> ClusterFacts:
    facts = lagging(-5, 0, 0, 0)(facts)
    return replace(facts, offsets={queue: TopicOffset(0, 100_010, NOW) for queue in QUEUES})


def broadcasting_in_order(facts: ClusterFacts) -> ClusterFacts:
    """RocketMQ locks nothing then, and tells so."""
    connected = facts.groups["Billing"].members
    assert connected is not None
    properties = {"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY", "PROP_CONSUMEORDERLY": "true"}
    infos = {CLIENT: replace(_info(QUEUES), properties=properties)}
    return group(members=replace(connected, message_model="BROADCASTING"), infos=infos)(facts)


def a_broker_away(facts: ClusterFacts) -> ClusterFacts:
    """It has the topic that nobody else has."""
    return at_a(problem="could not connect")(without_topic(facts))


def followed(facts: ClusterFacts) -> ClusterFacts:
    connected = at_a(ha=HaStatus(True, 1, 1, (HaConnection("10.0.0.4:1", 0, 100, True),)))
    return slave_keeping("72")(connected(facts))


def timers_of_a_slave(facts: ClusterFacts) -> ClusterFacts:
    """It takes over where its master is, now and then; Apache's says decades at first."""
    *others, slave = followed(facts).brokers
    late = replace(slave, runtime={**slave.runtime, "timerReadBehind": "1800000000"})
    return replace(followed(facts), brokers=(*others, late))


def started(facts: ClusterFacts) -> ClusterFacts:
    """A slave that has not connected yet."""
    facts = slave_keeping("72")(facts)
    *others, slave = facts.brokers
    runtime = {
        **slave.runtime,
        "bootTimestamp": str(NOW - 5000),
        "runtime": "[ 0 days, 0 hours, 0 minutes, 5 seconds ]",
    }
    return replace(facts, brokers=(*others, replace(slave, runtime=runtime)))


WELL: list[tuple[str, Plant]] = [
    ("tags in another order", group(infos={"c1": _info(QUEUES[:2], "a || b"), "c2": _info(QUEUES[2:], "b||a")})),
    (
        "no tags and all of them",
        group(infos={"c1": _info(QUEUES[:2], "*"), "c2": replace(_info(QUEUES[2:], ""))}),
    ),
    ("much on its way", lambda f: moved(5000, 4900)(lagging(1000, 1000, 1000, 1000)(f))),
    (
        "a first message after three days",
        lambda f: group(waited_ms={QUEUES[0]: 20})(lagging(1, 0, 0, 0, last=NOW - 70 * HOUR)(f)),
    ),
    ("a slow answer", told_late),
    ("consumers quicker than the look", quicker_than_the_look),
    ("broadcast in order", broadcasting_in_order),
    ("a slave that follows", followed),
    ("a slave that has just started", started),
    ("timers of a slave", timers_of_a_slave),
]


@pytest.mark.parametrize("plant", [plant for _, plant in WELL], ids=[name for name, _ in WELL])
def test_what_looks_odd_and_is_well_is_not_named(plant: Plant) -> None:
    assert [each.code for each in findings_of(plant(healthy()))] == []


def test_a_slave_that_gets_nothing_is_told_with_the_port_to_open() -> None:
    ported = setting(haListenPort="0", listenPort="10911")
    (named,) = findings_of(slave_keeping("72")(ported(healthy())))
    assert named.what == "1 slave is registered, but gets nothing from it"
    assert named.remedy.startswith("open haListenPort 10912 of broker-a (10.0.0.1:10911) for them")


def test_a_topic_may_be_at_the_broker_that_does_not_answer() -> None:
    assert {each.code for each in findings_of(a_broker_away(healthy()))} == {"broker-unreachable"}


def test_the_worst_comes_first() -> None:
    facts = runtime(commitLogDiskRatio="0.97")(setting(autoCreateTopicEnable="true")(healthy()))
    assert [each.severity for each in findings_of(facts)] == [Severity.ERROR, Severity.NOTE]


# ── why a group does not consume ─────────────────────────────────────────────────────────────────────────────────────


def explained(facts: ClusterFacts) -> str:
    return outlook_of(facts, facts.groups["Billing"]).cause


def test_the_cause_of_a_lag_is_named() -> None:
    facts = healthy()
    assert explained(facts) == "it keeps up"
    assert explained(group(members=None, infos={})(facts)) == "nothing waits for it, and no client runs"
    waiting = lagging(2500, 2500, 2500, 2500)(facts)
    assert explained(group(members=None, infos={})(waiting)) == "no client runs"
    disabled = group(configs={A: SubscriptionGroup("Billing", may_consume=False)})(waiting)
    assert explained(disabled) == "brokers do not let the group consume"
    assert "consume nothing" in explained(waiting)
    rates = {"Orders": ConsumeStatus(consume_rt=250.0, consume_ok_tps=40.0)}
    still = group(infos={CLIENT: replace(_info(QUEUES), status=rates)})(waiting)
    assert explained(still) == "it catches up; its handlers take 250 ms for each", "none of its queues has moved"
    slow = group(infos={CLIENT: replace(_info(QUEUES), status=rates)})(moved(50, 10)(waiting))
    assert explained(slow) == "its handlers are slower than messages come (250 ms for each)"
    one_moves = moved(50, 10, QUEUES[:1])(waiting)
    assert explained(one_moves).startswith("3 queues stand still while others move: broker-a:1, ")
    assert outlook_of(one_moves, one_moves.groups["Billing"]).gone_in_seconds is None, "those do not move"
    assert explained(topic(permission=2)(topic_at_b(permission=2)(waiting))) == "nobody may read Orders"
    skewed = group(infos={CLIENT: replace(_info(QUEUES), status=rates)}, earlier={})(lagging(5000, 1, 1, 1)(facts))
    assert "one queue has most of the lag" in explained(skewed)


def test_the_outlook_says_how_late_and_until_when() -> None:
    rates = {"Orders": ConsumeStatus(consume_ok_tps=50.0)}
    facts = group(infos={CLIENT: replace(_info(QUEUES), status=rates)})(lagging(250, 250, 250, 250)(healthy()))
    outlook = outlook_of(facts, facts.groups["Billing"])
    assert (outlook.lag, outlook.behind_seconds, outlook.gone_in_seconds) == (1000, 1.0, 20.0)
    still = lagging(250, 250, 250, 250)(healthy())
    assert outlook_of(still, still.groups["Billing"]).gone_in_seconds is None


def test_the_way_of_a_message_shows_where_it_ends() -> None:
    facts = lagging(1, 1, 1, 1)(group(members=None, infos={})(healthy()))
    facts = group(members=None, infos={})(facts)
    steps = {step.name: step.findings for step in steps_of(facts, facts.groups["Billing"], findings_of(facts))}
    assert [each.code for each in steps["clients"]] == ["no-client"]
    assert steps["name server"] == ()


@pytest.mark.parametrize("problem", ["maybe the server wants TLS", "the certificate is not trusted: unable to get …"])
def test_a_server_that_ends_the_connection_over_tls_need_not_be_started(problem: str) -> None:
    (finding,) = name_servers(replace(healthy(), name_servers=(NameServerFacts("x:1", problem=problem),)))
    assert "it runs, but the two do not agree on TLS: --tls" in finding.remedy
    (finding,) = reachable(at_a(problem=problem)(healthy()))
    assert "--tls-ca" in finding.remedy


def test_a_group_that_keeps_up_under_load_is_not_called_slow() -> None:
    rates = {"Orders": ConsumeStatus(consume_rt=1.0, consume_ok_tps=4000.0)}
    facts = group(infos={CLIENT: replace(_info(QUEUES), status=rates)})(lagging(1000, 1000, 1000, 1000)(healthy()))
    busy = moved(5000, 4900)(facts)
    outlook = outlook_of(busy, busy.groups["Billing"])
    assert (outlook.cause, outlook.gone_in_seconds) == ("it keeps up: what waits came within seconds", 1.0)


def test_a_group_that_was_set_back_has_consumed_nothing() -> None:
    facts = moved(0, -500)(lagging(600, 600, 600, 600)(healthy()))
    outlook = outlook_of(facts, facts.groups["Billing"])
    assert (outlook.out_per_second, outlook.gone_in_seconds) == (0.0, None)


def test_how_late_a_group_is_is_the_age_of_what_it_consumes_next() -> None:
    facts = group(waited_ms={QUEUES[0]: 3000})(lagging(1, 0, 0, 0, last=NOW - 70 * HOUR)(healthy()))
    assert outlook_of(facts, facts.groups["Billing"]).behind_seconds == 3.0
