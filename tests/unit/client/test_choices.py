"""Pure decisions: queues, faults, routes, batches, names, ids, subscriptions, handlers' outcomes."""

import random
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.client.consumer.handlers import (
    ConsumeStatus,
    DeadLetter,
    Handler,
    ReconsumeLater,
    SuspendCurrentQueue,
    UndecodableBody,
    judged,
    outcome_of,
)
from skyrocket.client.consumer.start_position import timestamp_ms
from skyrocket.client.consumer.subscription import SqlFilter, differences, subscription_of
from skyrocket.client.consumer.subscription_check import contradictions
from skyrocket.client.core.client_id import client_id_of
from skyrocket.client.core.errors import IllegalName, IllegalSubscription, RouteTooWide, WrongUse
from skyrocket.client.core.message import Message, property_text
from skyrocket.client.core.name_servers import lookup_url
from skyrocket.client.core.names import check_creatable, check_group, check_sendable, check_topic, unwrap, wrap
from skyrocket.client.core.routes import BrokerTable, as_template, logical_queues, route_of
from skyrocket.client.core.send_receipt import topic_and_broker
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.batches import split
from skyrocket.client.sending.broker_faults import BrokerFaults, rest_ms
from skyrocket.client.sending.queue_selector import (
    Rotation,
    SelectByMachineRoom,
    index_by_hash,
    java_hash_of,
    select_by_random,
)
from skyrocket.errors import MessageRefused
from skyrocket.format.properties import decode_properties
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.connections import ClientConnection, ConsumerConnections
from skyrocket.protocol.bodies.route import BrokerData, QueueData, TopicRoute

A = [MessageQueue("T", "broker-a", number) for number in range(2)]
B = [MessageQueue("T", "broker-b", number) for number in range(2)]


# ── queues ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("key", "count", "index"),
    [
        ("order-1001", 4, 3),
        ("order-1002", 4, 0),
        ("订单", 4, 3),
        ("polygenelubricants", 4, 0),
        ("order-1001", 8, 7),
        ("订单", 8, 3),
    ],
)
def test_keys_find_the_queue_that_java_finds(key: str, count: int, index: int) -> None:
    assert index_by_hash(key, count) == index


@pytest.mark.requirement("B002")
def test_many_keys_spread_evenly_over_the_queues() -> None:
    counts = Counter(index_by_hash(f"order-{number}", 8) for number in range(8000))
    assert len(counts) == 8
    assert 800 < min(counts.values()) <= max(counts.values()) < 1200


def test_numbers_hash_as_in_java() -> None:
    assert [java_hash_of(key) for key in (5, -1, 1700000000000, True)] == [5, -1, -807048821, 1231]


def test_a_retry_goes_to_another_broker_if_there_is_one() -> None:
    rotation = Rotation(A + B)
    for _ in range(20):
        assert rotation.queues[rotation.other_than("broker-a")].broker_name == "broker-b"
    assert Rotation(A).queues[Rotation(A).other_than("broker-a")].broker_name == "broker-a"


@pytest.mark.requirement("C090")
def test_brokers_that_rest_are_passed_over_until_their_time_is_up() -> None:
    rotation, faults = Rotation(A + B), BrokerFaults()
    faults.failed("broker-a", now=100.0, reachable=False)
    assert {rotation.queues[rotation.avoiding(faults, 109.0, None)].broker_name for _ in range(8)} == {"broker-b"}
    later = {rotation.queues[rotation.avoiding(faults, 110.0, None)].broker_name for _ in range(8)}
    assert later == {"broker-a", "broker-b"}
    faults.failed("broker-b", now=109.5, reachable=True)  # both rest: the one that was reached at least
    assert {rotation.queues[rotation.avoiding(faults, 109.6, None)].broker_name for _ in range(8)} == {"broker-b"}


@pytest.mark.requirement("A043", "B019")
def test_the_quickest_broker_is_preferred_and_equal_ones_take_turns() -> None:
    rotation, faults = Rotation(A + B), BrokerFaults()
    faults.succeeded("broker-a", 0.040, 0.0)
    faults.succeeded("broker-b", 0.010, 0.0)
    assert {rotation.queues[rotation.quickest(faults, 1.0, None)].broker_name for _ in range(8)} == {"broker-b"}
    assert {rotation.queues[rotation.quickest(faults, 1.0, "broker-b")].broker_name for _ in range(8)} == {"broker-a"}
    for _ in range(40):
        faults.succeeded("broker-a", 0.011, 0.0)
    assert len({rotation.queues[rotation.quickest(faults, 1.0, None)].broker_name for _ in range(8)}) == 2


@pytest.mark.parametrize(
    ("latency", "rest"),
    [(10, 0), (60, 0), (549, 0), (550, 2000), (1800, 5000), (3000, 6000), (10000, 10000), (20000, 30000)],
)
def test_rest_times_are_those_of_rocketmq(latency: int, rest: int) -> None:
    assert rest_ms(latency) == rest


@given(st.lists(st.floats(0, 60_000), min_size=1))
def test_a_rest_never_gets_shorter_by_a_later_answer(latencies: list[float]) -> None:
    faults, until = BrokerFaults(), 0.0
    for latency in latencies:
        faults.succeeded("b", latency / 1000, 0.0)
        until = max(until, rest_ms(latency) / 1000)
        assert faults.is_available("b", until)
        assert not until or not faults.is_available("b", until - 0.001)


@pytest.mark.requirement("B019")
def test_other_selectors_choose_among_what_they_are_given() -> None:
    message = Message("T", b"x")
    assert select_by_random(A + B, message, None) in A + B
    near = SelectByMachineRoom(["room1"])
    rooms = [MessageQueue("T", "room1@a", 0), MessageQueue("T", "room2@b", 0), MessageQueue("T", "room1@c", 0)]
    assert {near(rooms, message, None).broker_name for _ in range(4)} == {"room1@a", "room1@c"}
    with pytest.raises(ValueError, match="no queue belongs to one of the rooms"):
        near(A, message, None)


# ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def route_data(**rest: Any) -> TopicRoute:
    return TopicRoute(
        brokers=(
            BrokerData(broker_name="b", addresses={0: "b:1"}),
            BrokerData(broker_name="a", addresses={0: "a:1", 1: "a:2"}),
            BrokerData(broker_name="slave", addresses={1: "s:1"}),
        ),
        queues=(
            QueueData(broker_name="b", read_queues=1, write_queues=2, permission=6),
            QueueData(broker_name="a", read_queues=2, write_queues=1, permission=4),
            QueueData(broker_name="slave", read_queues=1, write_queues=1, permission=6),
        ),
        **rest,
    )


@pytest.mark.requirement("A040")
def test_sends_need_a_master_and_reads_do_not() -> None:
    route = route_of("T", route_data())
    assert route.write_queues == (MessageQueue("T", "b", 0), MessageQueue("T", "b", 1))
    assert [(queue.broker_name, queue.queue_id) for queue in route.read_queues] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("slave", 0),
    ]


@pytest.mark.parametrize(
    "rest",
    [
        {"queues": (QueueData(broker_name="b", read_queues=4, write_queues=2**31 - 1, permission=6),)},
        {"queues": tuple(QueueData(f"b{number}", 60_000, 1, 6) for number in range(2))},
        {"order_topic_conf": "b:2147483647"},
        {"mappings_by_broker": {"a": {"totalQueues": 2**31 - 1, "bname": "a"}}},
    ],
)
def test_a_route_with_more_queues_than_a_client_can_hold_is_refused_before_they_are_made(rest: dict[str, Any]) -> None:
    with pytest.raises(RouteTooWide, match=r"topic T has \d+ queues.*100000 at most.*updateTopic"):
        route_of("T", replace(route_data(), **rest))


def test_an_ordered_topic_names_its_queues_itself() -> None:
    route = route_of("T", route_data(order_topic_conf="z:1;b:2"))
    assert [(queue.broker_name, queue.queue_id) for queue in route.write_queues] == [("z", 0), ("b", 0), ("b", 1)]
    assert route.is_ordered


def test_a_static_topic_has_logical_queues_led_by_the_newest_claim() -> None:
    mappings: Mapping[str, Any] = {
        "a": {"scope": "__global__", "epoch": 1, "totalQueues": 3, "bname": "a", "currIdMap": {"0": 0, "1": 1}},
        "b": {"scope": "__global__", "epoch": 2, "totalQueues": 3, "bname": "b", "currIdMap": {1: 0}},
    }
    found = logical_queues("T", mappings)
    name = "__syslo____global__"
    assert {queue.queue_id: leader for queue, leader in found.items()} == {0: "a", 1: "b", 2: "__syslo__none__"}
    assert {queue.broker_name for queue in found} == {name}
    assert [queue.queue_id for queue in route_of("T", route_data(mappings_by_broker=mappings)).write_queues] == [
        0,
        1,
        2,
    ]


def test_a_topic_to_be_created_has_as_many_queues_as_template_and_wish_allow() -> None:
    assert [queue.write_queues for queue in as_template(route_data(), 1).queues] == [1, 1, 1]
    assert [queue.write_queues for queue in as_template(route_data(), 9).queues] == [1, 2, 1]


@pytest.mark.requirement("A041")
def test_brokers_are_found_by_role_and_forgotten_when_no_route_names_them() -> None:
    table = BrokerTable()
    table.learn(route_data())
    assert table.master("a") == "a:1"
    assert table.master("slave") is None
    assert table.replica("a", 1) == ("a:2", 1)
    assert table.replica("a", 0) == ("a:1", 0)
    assert table.replica("slave", 0) == ("s:1", 1)
    assert table.replica("nobody", 0) is None
    assert table.name_of("a:2") == "a"
    assert sorted(table.all()) == ["a:1", "a:2", "b:1", "s:1"]
    assert sorted(table.all(masters_only=True)) == ["a:1", "b:1"]
    table.keep_only([TopicRoute(brokers=(BrokerData(broker_name="a", addresses={0: "a:1"}),))])
    assert table.all() == ["a:1"]


# ── batches and properties ───────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 100))
def test_a_list_is_cut_so_that_every_part_fits_and_no_cut_is_needless(sizes: list[int], most: int) -> None:
    runs = split(sizes, most)
    assert [index for run in runs for index in run] == list(range(len(sizes)))
    for run, following in zip(runs, [*runs[1:], None], strict=False):
        total = sum(sizes[index] for index in run)
        assert total <= most or len(run) == 1
        if following is not None:
            assert total + sizes[following.start] > most


NAMES = st.text(st.characters(exclude_characters="\x01\x02", codec="utf-8"), min_size=1).filter(
    lambda text: text.strip() != ""
)


@given(
    st.dictionaries(NAMES.map(lambda name: "u" + name), NAMES, max_size=5),
    st.none() | NAMES,
    st.lists(NAMES.filter(lambda key: " " not in key), max_size=3),  # which separates keys
)
def test_properties_arrive_as_they_were_given(properties: dict[str, str], tags: str | None, keys: list[str]) -> None:
    message = Message("T", b"x", tags=tags, keys=keys, properties=properties)
    found = decode_properties(property_text(message, "UNIQUE").encode())
    assert found.pop("UNIQ_KEY") == "UNIQUE"
    assert found.pop("WAIT") == "true"
    assert found.pop("TAGS", None) == tags
    assert found.pop("KEYS", "") == " ".join(keys)
    assert found == properties


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Message("T", b"x", properties={"KEYS": "k"}), "property KEYS is reserved: choose another name"),
        (Message("T", b"x", properties={"a": " "}), "property a has no text for a value: ' '"),
        (Message("T", b"x", properties={" ": "a"}), "a property has a blank name"),
        (Message("T", b"x", tags="a\x01b"), "property 'tags' contains 0x01 or 0x02, which separate properties"),
        (Message("T", b"x", properties={"a": "ä" * 20_000}), "properties take .* bytes; the limit is 32767"),
        (Message("T", b"x", delay_level=1, delay=3), "exclude each other: give one of them"),
    ],
)
def test_properties_that_would_be_misread_are_refused(message: Message, text: str) -> None:
    with pytest.raises(MessageRefused, match=text):
        property_text(message, "U")


def test_times_of_delivery_become_properties() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    assert "DELAY\x013\x02" in property_text(Message("T", b"x", delay_level=3), "U")
    assert "TIMER_DELAY_MS\x011500\x02" in property_text(Message("T", b"x", delay=1.5), "U")
    assert "TIMER_DELAY_MS\x0160000\x02" in property_text(Message("T", b"x", delay=timedelta(minutes=1)), "U")
    assert f"TIMER_DELIVER_MS\x01{1893456000000}\x02" in property_text(Message("T", b"x", deliver_at=moment), "U")
    assert Message.json("T", {"a": "ü"}, tags="t").body == '{"a":"ü"}'.encode()


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("check", "name", "text"),
    [
        (check_group, "", "the group is blank: give it a name"),
        (check_group, "g" * 121, r"group g+… has 121 characters; 120 are allowed"),
        (check_group, "a b", "group 'a b' contains ' ': only letters, digits and"),
        (check_group, "DEFAULT_PRODUCER", "RocketMQ's default that nobody may use: choose a name of your own"),
        (check_topic, "t" * 128, r"has 128 characters; 127 are allowed"),
        (check_topic, "ü", "topic 'ü' contains 'ü'"),
        (check_sendable, "SCHEDULE_TOPIC_XXXX", "is not allowed: it belongs to the system"),
        (check_creatable, "TBW102", "reserved for the system: choose another name"),
    ],
)
def test_names_that_rocketmq_refuses_are_refused_with_the_reason(check: Any, name: str, text: str) -> None:
    with pytest.raises(IllegalName, match=text):
        check(name)


@pytest.mark.parametrize(
    ("name", "wrapped"),
    [
        ("Orders", "ns%Orders"),
        ("%RETRY%G", "%RETRY%ns%G"),
        ("%DLQ%G", "%DLQ%ns%G"),
        ("ns%Orders", "ns%Orders"),
        ("TBW102", "TBW102"),
        ("rmq_sys_x", "rmq_sys_x"),
        ("CID_RMQ_SYS_x", "CID_RMQ_SYS_x"),
    ],
)
def test_namespaces_wrap_once_and_unwrap(name: str, wrapped: str) -> None:
    assert wrap("ns", name) == wrapped
    assert wrap("ns", wrapped) == wrapped
    assert unwrap("ns", wrapped) == name.replace("ns%", "")
    assert wrap("", name) == name == unwrap("", name)


def test_client_ids_tell_address_instance_and_unit() -> None:
    settings = ClientSettings("a:1", client_ip="10.1.2.3", unit_name="u")
    first, second = client_id_of(settings), client_id_of(settings)
    assert first.startswith("10.1.2.3@")
    assert first.endswith("@u")
    assert "#" in first
    assert first != second
    assert client_id_of(settings, stable=True) == "10.1.2.3@DEFAULT@u"
    assert client_id_of(ClientSettings("a:1", client_ip="10.1.2.3", instance_name="x")) == "10.1.2.3@x"


def test_endpoints_name_their_namespace() -> None:
    settings = ClientSettings("http://MQ_INST_123_abc.example.com:8080")
    assert settings.effective_namespace() == "MQ_INST_123_abc"
    assert settings.addresses() == ("MQ_INST_123_abc.example.com:8080",)
    assert ClientSettings(["a:1", " b:2 "]).addresses() == ("a:1", "b:2")
    with pytest.raises(
        WrongUse, match=r"name server 'nonsense': 'nonsense' is not an address .* an example is 127.0.0.1:9876"
    ):
        ClientSettings("nonsense").addresses()


def test_lookup_addresses_follow_rocketmqs_rule() -> None:
    assert lookup_url("jmenv.example.net") == "http://jmenv.example.net:8080/rocketmq/nsaddr"
    assert lookup_url("h:81", "unit") == "http://h:81/rocketmq/nsaddr-unit?nofix=1"
    assert lookup_url("https://h/list") == "https://h/list"


# ── subscriptions ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_filters_become_what_brokers_understand() -> None:
    tags = subscription_of("T", "TagA || TagB||TagA ", 7)
    assert (tags.tags, tags.tag_codes, tags.version) == (("TagA", "TagB"), (2598919, 2598920), 7)
    everything = subscription_of("T", "", 7)
    assert (everything.expression, everything.tags) == ("*", ())
    sql = subscription_of("T", SqlFilter("a > 1"), 7)
    assert (sql.expression, sql.expression_type, sql.tags) == ("a > 1", "SQL92", ())
    for wrong, text in ((SqlFilter(" "), "is blank"), ("||", "names no tag"), (None, "give tags as text")):
        with pytest.raises(IllegalSubscription, match=text):
            subscription_of("T", wrong, 7)  # type: ignore[arg-type]


def test_contradictions_within_a_group_are_named() -> None:
    mine = subscription_of("T", "A", 1)
    assert differences(mine, subscription_of("T", "A", 2)) is None
    assert differences(mine, None) == "others of the group do not subscribe to T"
    assert "another member has 'price > 1' (SQL92)" in str(
        differences(mine, subscription_of("T", SqlFilter("price > 1"), 2))
    )
    two = (ClientConnection("1"), ClientConnection("2"))
    theirs = {"T": subscription_of("T", "A", 2), "U": subscription_of("U", "*", 2)}
    assert contradictions([mine], ConsumerConnections(two, theirs)) == ["another member also subscribes to U"]
    assert contradictions([mine], ConsumerConnections(two[:1], theirs)) == []


def test_times_may_be_written_as_rocketmq_does() -> None:
    moment = datetime(2026, 1, 31, 23, 59, 59).astimezone()
    assert timestamp_ms("20260131235959") == timestamp_ms(moment) == round(moment.timestamp() * 1000)


# ── handlers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_async", [True, False])
async def test_outcomes_of_handlers_decide_over_the_message(is_async: bool) -> None:
    script: dict[int, Any] = {
        0: None,
        1: ConsumeStatus.CONSUME_SUCCESS,
        2: ConsumeStatus.RECONSUME_LATER,
        3: ReconsumeLater(delay_level=5),
        4: DeadLetter(),
        5: SuspendCurrentQueue(2.5),
        6: ValueError("broken"),
        7: "nonsense",
    }

    def plain(number: Any) -> Any:
        if isinstance(script[number], Exception):
            raise script[number]
        return script[number]

    async def coroutine(number: Any) -> Any:
        return plain(number)

    with ThreadPoolExecutor(1) as threads:
        handler = Handler(coroutine if is_async else plain, lambda: threads, takes_list=False)
        assert handler.is_async is is_async
        found = [await handler.call([number]) for number in script]  # type: ignore[list-item]
        assert found[0] is found[1] is None
        levels = [(outcome.delay_level, outcome.suspend_seconds) for outcome in found[2:] if outcome is not None]
        assert levels == [(0, None), (5, None), (-1, None), (0, 2.5), (0, None), (0, None)]
        errors = [type(outcome.error) for outcome in found[2:] if outcome is not None]
        assert errors[4:] == [ValueError, TypeError]
        middle = await handler.call([0, 1, 3, 0])  # type: ignore[list-item]
        assert middle is not None
        assert (middle.first_failed, middle.delay_level) == (2, 5)
    assert judged(ConsumeStatus.SUCCESS) is None


@pytest.mark.parametrize(
    ("given", "cause", "text"),
    [
        (DeadLetter("poison"), None, "poison"),
        (DeadLetter("poison"), KeyError("x"), "poison; cause: KeyError: 'x'"),
        (DeadLetter("poison"), TimeoutError(), "poison; cause: TimeoutError"),
        (UndecodableBody("no Order: empty"), ValueError("empty"), "no Order: empty"),
    ],
)
def test_a_dead_letter_with_words_names_what_it_was_raised_from(
    given: DeadLetter, cause: Exception | None, text: str
) -> None:
    given.__cause__ = cause
    found = outcome_of(given)
    assert found.cause is given
    assert str(found.cause) == text


def test_a_dead_letter_without_words_is_what_it_was_raised_from() -> None:
    given, cause = DeadLetter(), KeyError("x")
    given.__cause__ = cause
    assert outcome_of(given).cause is cause


def test_a_recall_handle_names_its_topic_and_broker() -> None:
    handle = "djEgVG9waWNUZXN0IGJyb2tlci1hIDE3MDAwMDAwMDAwMDAgN0YwMDAwMDEwMDAxMThCNEFBQzIwMDAwMDAwMTAwMDA="
    assert topic_and_broker(handle) == ("TopicTest", "broker-a")
    for wrong in ("", "nonsense", "djEgVG9waWM=", "ü"):
        with pytest.raises(WrongUse, match="is not a recall handle: take it from the receipt of a delayed message"):
            topic_and_broker(wrong)


def test_rotation_begins_somewhere_at_random() -> None:
    random.seed(1)
    assert len({Rotation(A + B).next() for _ in range(50)}) == 4
