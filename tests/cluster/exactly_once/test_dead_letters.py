"""Dead letters of our consumers say why, and can be sent again; intervals and numbers of attempts are exact."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.client import (
    ConsumeStatus,
    DeadLetter,
    DeadLetterFilter,
    Message,
    NotFound,
    PushConsumerSettings,
    ReceivedMessage,
    ReconsumeLater,
    WrongUse,
    cause_of,
)
from skyrocket.client.consumer.dead_letter_cause import CAUSE_PROPERTIES, cause_properties
from skyrocket.client.core.errors import NoRoute
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.routes import Route
from skyrocket.format.properties import encode_properties
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import skyrocket
from tests.waiting import wait_until

TOPIC, GROUP = "Orders", "Billing"


class OutOfStock(Exception):
    """An application's own."""


def settings(**given: object) -> PushConsumerSettings:
    return PushConsumerSettings(persist_interval=0.1, **given)  # type: ignore[arg-type]


def bury(rocketmq: LocalCluster, error: Exception, *messages: Message, **given: object) -> None:
    """Let a consumer give up messages."""
    consumer = rocketmq.push_consumer(GROUP, settings=settings(max_reconsume_times=0, **given))

    def fail(_: ReceivedMessage) -> None:
        raise error

    consumer.subscribe(TOPIC, fail)
    before = len(rocketmq.dead_letters(GROUP))
    with rocketmq.producer() as producer, consumer:
        for message in messages:
            producer.send(message)
        wait_until(lambda: len(rocketmq.dead_letters(GROUP)) == before + len(messages))
    with rocketmq.admin() as admin:
        wait_until(lambda: f"%DLQ%{GROUP}" in admin.topics(), "the name server knows of them as well")


def fail_until_dead(rocketmq: LocalCluster, delays_s: Sequence[int]) -> None:
    """Move the clock over one delay after the other, each when the message waits for it: busy machines are slow."""
    for number, seconds in enumerate(delays_s, start=1):
        wait_until(partial(lambda least: len(rocketmq.messages("SCHEDULE_TOPIC_XXXX")) >= least, number))
        rocketmq.advance(seconds=seconds + 1)
    wait_until(lambda: rocketmq.dead_letters(GROUP))


# ── the cause ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_dead_letters_tell_their_cause_before_name_servers_know_the_retry_topic(
    rocketmq: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_route = ClientInstance.route

    async def route(self: ClientInstance, topic: str, *, fresh: bool = False) -> Route:
        if topic.startswith(RETRY_PREFIX):
            raise NoRoute(topic, "nobody has told them yet")
        return await known_route(self, topic, fresh=fresh)

    monkeypatch.setattr(ClientInstance, "route", route)
    rocketmq.create_topic(TOPIC, queues=1)
    bury(rocketmq, OutOfStock("no tea"), *(Message(TOPIC, b"bad") for _ in range(8)))
    assert [cause is not None for cause in map(cause_of, rocketmq.dead_letters(GROUP))] == [True] * 8


@pytest.mark.rocketmq(settings={"messageDelayLevel": "1s 1s 2s 3s 4s 5s"})
def test_a_dead_letter_tells_exception_traceback_host_and_all_attempts(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    consumer = rocketmq.push_consumer(GROUP, settings=settings(max_reconsume_times=2))

    def reserve(message: ReceivedMessage) -> None:
        raise OutOfStock(f"none of {message.keys[0]} left after {message.reconsume_times} tries")

    consumer.subscribe(TOPIC, reserve)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message(TOPIC, b"bad", keys="o-1", tags="paid", properties={"colour": "red"}))
        fail_until_dead(rocketmq, (2, 3))
    (letter,) = rocketmq.dead_letters(GROUP)
    cause = cause_of(letter)
    assert cause is not None
    assert cause.error_type == f"{__name__}.OutOfStock"
    assert cause.error_message == "none of o-1 left after 2 tries"
    assert cause.traceback.startswith("Traceback (most recent call last)")
    assert "in reserve\n" in cause.traceback
    assert "@" in cause.host
    assert [(each.number, each.error.partition(":")[0]) for each in cause.attempts] == [
        (number, cause.error_type) for number in (1, 2, 3)
    ]
    assert [each.at_ms for each in cause.attempts] == sorted(each.at_ms for each in cause.attempts)
    assert (letter.body, letter.keys, letter.tags, letter.properties["colour"]) == (b"bad", ["o-1"], "paid", "red")
    assert (letter.properties["RETRY_TOPIC"], letter.reconsume_times) == (TOPIC, 3)


@pytest.mark.parametrize("orderly", [False, True])
def test_a_message_that_the_handler_gives_up_goes_there_at_once_with_the_reason(
    rocketmq: LocalCluster, orderly: bool
) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    consumer = rocketmq.push_consumer(GROUP, settings=settings(orderly=orderly))
    calls: list[bytes] = []

    def refuse(message: ReceivedMessage) -> None:
        calls.append(message.body)
        raise DeadLetter("nobody knows this customer")

    consumer.subscribe(TOPIC, refuse)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message(TOPIC, b"bad"))
        wait_until(lambda: rocketmq.dead_letters(GROUP))
    (letter,) = rocketmq.dead_letters(GROUP)
    cause = cause_of(letter)
    assert cause is not None
    assert cause.error_message == "nobody knows this customer"
    assert calls == [b"bad"]
    assert not [message for message in rocketmq.messages(f"%RETRY%{GROUP}") if message.body == b"bad"]


def test_what_a_dead_letter_was_raised_from_is_in_its_cause_and_in_the_log(
    rocketmq: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    consumer = rocketmq.push_consumer(GROUP, settings=settings())

    def refuse(message: ReceivedMessage) -> None:
        try:
            raise OutOfStock("no tea")
        except OutOfStock as error:
            raise DeadLetter("the order cannot be served") from error

    consumer.subscribe(TOPIC, refuse)
    with caplog.at_level("INFO"), rocketmq.producer() as producer, consumer:
        producer.send(Message(TOPIC, b"bad"))
        wait_until(lambda: rocketmq.dead_letters(GROUP))
    cause = cause_of(rocketmq.dead_letters(GROUP)[0])
    assert cause is not None
    said = f"the order cannot be served; cause: {__name__}.OutOfStock: no tea"
    assert cause.error_type.endswith(".DeadLetter")
    assert cause.error_message == said
    assert [each.error.partition(": ")[2] for each in cause.attempts] == [said]
    assert f"attempt=1 reason={said}" in caplog.text


def test_a_status_instead_of_an_exception_is_a_cause_too(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    consumer = rocketmq.push_consumer(GROUP, settings=settings(max_reconsume_times=0))
    consumer.subscribe(TOPIC, lambda message: ConsumeStatus.RECONSUME_LATER)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message(TOPIC, b"bad"))
        wait_until(lambda: rocketmq.dead_letters(GROUP))
    cause = cause_of(rocketmq.dead_letters(GROUP)[0])
    assert cause is not None
    assert (cause.error_type, cause.traceback) == ("RECONSUME_LATER", "")


@pytest.mark.parametrize("own_bytes", [10, 20_000, 31_000, 32_300])
def test_a_cause_never_makes_properties_too_long(rocketmq: LocalCluster, own_bytes: int) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    error = OutOfStock("ä" * 50_000)
    bury(rocketmq, error, Message(TOPIC, b"bad", properties={"own": "x" * own_bytes}))
    (letter,) = rocketmq.dead_letters(GROUP)
    assert letter.properties["own"] == "x" * own_bytes
    assert (cause_of(letter) is not None) == (own_bytes < 31_500)
    if own_bytes == 10:
        assert all(0 < len(letter.properties[name].encode()) <= 4096 for name in CAUSE_PROPERTIES)


def test_what_is_no_text_for_a_property_is_replaced() -> None:
    found = cause_properties(OutOfStock("a\x01b\x02c\ud800d"), "host", (), 0)
    assert found["SKY_DLQ_MESSAGE"] == "a b c?d"
    assert encode_properties(found)


# ── how often, and when ──────────────────────────────────────────────────────────────────────────────────────────────


def test_by_default_a_message_comes_again_sixteen_times_by_the_whole_table(rocketmq: LocalCluster) -> None:
    delays_s = [10, 30, *(each * 60 for each in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 60, 120))]
    rocketmq.create_topic(TOPIC, queues=1)
    calls: list[tuple[int, int]] = []
    consumer = rocketmq.push_consumer(GROUP, settings=settings())

    def fail(message: ReceivedMessage) -> None:
        calls.append((message.reconsume_times, rocketmq.now_ms))
        raise OutOfStock("never")

    consumer.subscribe(TOPIC, fail)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message(TOPIC, b"bad"))
        fail_until_dead(rocketmq, delays_s)
    assert [times for times, _ in calls] == list(range(17))
    pauses = [(after - before) / 1000 for (_, before), (_, after) in pairwise(calls)]
    assert pauses == [pytest.approx(seconds, abs=3) for seconds in delays_s]
    cause = cause_of(rocketmq.dead_letters(GROUP)[0])
    assert cause is not None
    assert [each.number for each in cause.attempts] == list(range(1, 18))


@pytest.mark.rocketmq(settings={"messageDelayLevel": "1s 2s 20s 40s 70s 100s"})
def test_own_delays_and_an_own_number_of_attempts_are_kept_exactly(rocketmq: LocalCluster) -> None:
    delays_s = (20, 100, 70, 100, 100)
    rocketmq.create_topic(TOPIC, queues=1)
    calls: list[tuple[int, int]] = []
    consumer = rocketmq.push_consumer(GROUP, settings=settings(max_reconsume_times=5))

    def fail(message: ReceivedMessage) -> None:
        calls.append((message.reconsume_times, rocketmq.now_ms))
        raise ReconsumeLater(delay_level=6 if message.reconsume_times == 1 else 0)

    consumer.subscribe(TOPIC, fail)
    with rocketmq.producer() as producer, consumer:
        producer.send(Message(TOPIC, b"bad"))
        # Level 3 + attempts, but once 6 as the handler wished; above the last level the last counts.
        fail_until_dead(rocketmq, delays_s)
    assert [times for times, _ in calls] == [0, 1, 2, 3, 4, 5]
    pauses = [(after - before) / 1000 for (_, before), (_, after) in pairwise(calls)]
    assert pauses == [pytest.approx(seconds, abs=3) for seconds in delays_s]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_in_order_a_message_is_tried_so_often_and_then_those_behind_it_come(rocketmq: LocalCluster, most: int) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    calls: list[tuple[bytes, float]] = []
    chosen = settings(max_reconsume_times=most, orderly=True, suspend_current_queue=0.3)
    consumer = rocketmq.push_consumer(GROUP, settings=chosen)

    def fail(message: ReceivedMessage) -> None:
        calls.append((message.body, time.monotonic()))
        if message.body == b"bad":
            raise OutOfStock("never")

    consumer.subscribe(TOPIC, fail)
    with rocketmq.producer() as producer, consumer:
        for body in (b"first", b"bad", b"last"):
            producer.send(Message(TOPIC, body, sharding_key="k"))
        wait_until(lambda: len(calls) == most + 3)
    assert [body for body, _ in calls] == [b"first", *[b"bad"] * (most + 1), b"last"]
    tries = [at for body, at in calls if body == b"bad"]
    assert all(after - before > 0.29 for before, after in pairwise(tries))
    (letter,) = rocketmq.dead_letters(GROUP)
    cause = cause_of(letter)
    assert cause is not None
    assert [each.number for each in cause.attempts] == list(range(1, most + 2))


# ── again ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_dead_letters_are_chosen_and_sent_to_the_group_again_as_if_new(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    # one by one: messages that fail side by side are buried in no certain order
    bury(rocketmq, OutOfStock("x"), Message(TOPIC, b"1", keys="k1"))
    bury(rocketmq, OutOfStock("x"), Message(TOPIC, b"2", keys="k2", tags="paid"))
    bury(rocketmq, ValueError("y"), Message(TOPIC, b"3", keys="k3"))
    others: list[bytes] = []
    with rocketmq.admin() as admin:
        letters = admin.dead_letters(GROUP)
        assert [(letter.body, letter.topic) for letter in letters] == [(b"1", TOPIC), (b"2", TOPIC), (b"3", TOPIC)]
        now = datetime.now(UTC)

        def chosen(**given: object) -> list[bytes]:
            return [each.body for each in admin.dead_letters(GROUP, DeadLetterFilter(**given))]  # type: ignore[arg-type]

        assert chosen(key="k2") == [b"2"]
        assert chosen(error="OutOfStock") == [b"1", b"2"]
        assert chosen(since=now - timedelta(minutes=1)) == [b"1", b"2", b"3"]
        assert chosen(until=now - timedelta(minutes=1)) == []
        assert chosen(message_ids=frozenset({letters[2].message_id})) == [b"3"]
        assert chosen(where=lambda letter: letter.tags == "paid") == [b"2"]
        assert [each.body for each in admin.dead_letters(GROUP, most=2)] == [b"1", b"2"]
        got: list[ReceivedMessage] = []
        consumer = rocketmq.push_consumer(GROUP, settings=settings())
        consumer.subscribe(TOPIC, got.append)
        another = rocketmq.push_consumer("Statistics", settings=settings())
        another.subscribe(TOPIC, lambda message: others.append(message.body))
        with consumer, another:
            wait_until(lambda: len(others) == 3)
            assert len(admin.resend_dead_letters(GROUP, DeadLetterFilter(error="OutOfStock"))) == 2
            wait_until(lambda: len(got) == 2)
        assert sorted((each.body, each.topic, each.reconsume_times) for each in got) == [
            (b"1", TOPIC, 0),
            (b"2", TOPIC, 0),
        ]
        assert {each.message_id for each in got} == {letter.message_id for letter in letters[:2]}
        assert not any(name in each.properties for each in got for name in CAUSE_PROPERTIES)
        assert len(others) == 3, "other groups must not see them"
        assert len(rocketmq.dead_letters(GROUP)) == 3
        assert [each.queue.topic for each in admin.resend_dead_letters(GROUP, to_topic=True, most=1)] == [TOPIC]
        assert [message.body for message in rocketmq.messages(TOPIC)] == [b"1", b"2", b"3", b"1"]


def test_a_group_in_order_can_only_have_them_through_the_topic(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    bury(rocketmq, OutOfStock("x"), Message(TOPIC, b"1"), orderly=True)
    got: list[bytes] = []
    assigned: set[MessageQueue] = set()
    consumer = rocketmq.push_consumer(
        GROUP, settings=settings(orderly=True), on_queues_changed=lambda _, queues: assigned.update(queues)
    )
    consumer.subscribe(TOPIC, lambda message: got.append(message.body))
    with consumer, rocketmq.admin() as admin:
        wait_until(lambda: bool(assigned))
        with rocketmq.producer() as producer:
            producer.send(Message(TOPIC, b"locked"))
        wait_until(lambda: got == [b"locked"])
        with pytest.raises(WrongUse, match=r"consumes in order, .* send to the topics instead \(to_topic=True"):
            admin.resend_dead_letters(GROUP)
        admin.resend_dead_letters(GROUP, most=1, to_topic=True)
        wait_until(lambda: got == [b"locked", b"1"])


def test_a_group_that_nobody_knows_is_told_from_one_without_dead_letters(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    consumer = rocketmq.push_consumer(GROUP, settings=settings())
    consumer.subscribe(TOPIC, lambda message: None)
    with consumer, rocketmq.admin() as admin:
        wait_until(lambda: f"%RETRY%{GROUP}" in admin.topics())
        assert admin.dead_letters(GROUP) == []
        with pytest.raises(NotFound, match="no broker has dead letters or retries of group Biling: check its name"):
            admin.dead_letters("Biling")
    for verb in (("list", "Biling"), ("resend", "Biling", "--all")):
        assert skyrocket(rocketmq, "dlq", *verb).code == 4


def test_a_group_that_never_consumed_has_no_dead_letters(rocketmq: LocalCluster) -> None:
    rocketmq.create_group(GROUP)
    listed = skyrocket(rocketmq, "dlq", "list", GROUP)
    assert (listed.code, listed.errors) == (0, "no dead letters\n")


def test_the_command_lists_and_resends(rocketmq: LocalCluster) -> None:
    rocketmq.create_topic(TOPIC, queues=1)
    bury(rocketmq, OutOfStock("none left"), Message(TOPIC, b"one", keys="k1"), Message(TOPIC, b"two", keys="k2"))

    def dlq(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["dlq", *arguments, "-n", rocketmq.name_server_address])

    listed = dlq("list", GROUP, "--trace", "--since", "1h")
    assert listed.exit_code == 0, listed.output
    assert listed.stdout.count("OutOfStock: none left\n") >= 2
    assert "in fail\n" in listed.stdout
    (line,) = dlq("list", GROUP, "--json", "--key", "k2").stdout.splitlines()
    shown = json.loads(line)
    assert (shown["body"], shown["topic"], len(shown["history"])) == ("two", TOPIC, 1)
    (row,) = json.loads(dlq("list", GROUP, "--output", "json", "--key", "k1").stdout)
    assert (row["errorMessage"], row["attempts"], row["keys"]) == ("none left", 1, ["k1"])
    assert row["messageId"] in dlq("list", GROUP).stdout
    tried = dlq("resend", GROUP, "--all", "--dry-run")
    assert (tried.exit_code, tried.stdout.count("dead → sent again")) == (0, 2), tried.output
    refused = dlq("resend", GROUP)
    assert (refused.exit_code, "--since, --until, --key, --error, --id, or --all" in refused.stderr) == (2, True)
    sent = dlq("resend", GROUP, "--key", "k1")
    assert (sent.exit_code, "1 message sent again\n" in sent.stdout) == (0, True), sent.output
    assert [message.body for message in rocketmq.messages(f"%RETRY%{GROUP}")] == [b"one"]
