"""Which functions may be handlers: read and refused when they are registered."""

import dataclasses
import functools
import logging
import re
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypedDict

import pytest

from skyrocket import Depends, PushConsumer, ReceivedMessage
from skyrocket.client import Avro, ConsumeStatus, IllegalSubscription, RetryPolicy, UndecodableBody, WrongUse, publish
from skyrocket.client.consumer.retry_policy import delay_text, level_of
from skyrocket.client.consumer.signature import Signature


@dataclasses.dataclass
class Order:
    number: int


def refused(function: Callable[..., Any], **options: Any) -> str:
    consumer = PushConsumer("Billing", "127.0.0.1:9876")
    with pytest.raises(IllegalSubscription) as caught:
        consumer.subscribe("Orders", function, **options)
    assert not consumer._handlers.topics, "nothing is left of it"
    return str(caught.value).replace("tests.unit.client.consumer.test_signature.", "")


async def number(m: int) -> None: ...


async def text(message: ReceivedMessage) -> str:
    return ""


async def nothing() -> None: ...


async def unknown(message: ReceivedMessage, other: str) -> None: ...


async def wrong_group(message: ReceivedMessage, group: int) -> None: ...


async def single(message: ReceivedMessage) -> None: ...


async def with_more(messages: list[ReceivedMessage], group: str) -> None: ...


async def session() -> AsyncIterator[str]:
    yield "s"


async def generator(message: ReceivedMessage) -> AsyncIterator[int]:
    yield 1


async def untyped(body) -> None: ...  # type: ignore[no-untyped-def]


class Shop:
    async def method(self, message: ReceivedMessage) -> None: ...


class Row(TypedDict):
    number: int


def plain(message: ReceivedMessage, session: Annotated[str, Depends(session)]) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (number, {}, "handler number: `m` is neither ReceivedMessage nor a body: int is no type of a body: use bytes"),
        (text, {}, "handler text: it returns str: return None or a ConsumeStatus, raise to have the message again, or"),
        (nothing, {}, "handler nothing: it takes no message: give it a parameter, as `message: ReceivedMessage`"),
        (unknown, {}, "handler unknown: parameter `other` is unknown: there are message, group, attempt, logger, body"),
        (wrong_group, {}, "handler wrong_group: `group` is str, not int"),
        (single, {"batch": True}, "handler single: with batch=True `message` is a list: annotate it as list[Received"),
        (with_more, {"batch": True}, "handler with_more: with batch=True it takes the list alone"),
        (plain, {}, "handler plain: `session` needs the event loop, but "),
        (generator, {}, "handler generator: it has a `yield`, so calling it would do nothing"),
        (publish("Invoices")(generator), {}, "handler generator: it has a `yield`"),
        (untyped, {}, "handler untyped: `body` has no type: say what it is, as `body: Order`, or call it `message`"),
        (Shop.method, {}, "handler Shop.method: it is a method without its object: register it as consumer.on("),
        (publish("Invoices")(with_more), {"batch": True}, "@publish, @reply and batch= exclude each other"),
        (single, {"retry": 3}, "retry=3 (topic Orders): give a RetryPolicy("),
        ("no function", {}, "the handler for topic Orders is 'no function': give a function"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_function_that_cannot_be_a_handler_is_refused_with_a_reason(
    function: Any, options: dict[str, Any], said: str
) -> None:
    assert refused(function, **options).startswith(said)


class WithCall:
    async def __call__(self, message: ReceivedMessage) -> ConsumeStatus:
        return ConsumeStatus.CONSUME_SUCCESS

    def method(self, message: "ReceivedMessage") -> "None": ...


async def with_context(
    body: Order, message: ReceivedMessage, attempt: int, group: str, logger: logging.Logger, more: str = ""
) -> ConsumeStatus | None: ...


def unread(message: "OnlyForTypeCheckers") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "function",
    [
        single,
        with_context,
        WithCall(),
        WithCall().method,
        functools.partial(unknown, other=""),
        lambda message, name="x": None,
        lambda *messages: None,
        [].append,
        print,
        publish("Invoices")(text),
    ],
    ids=range(10),
)
def test_functions_of_every_kind_may_be_handlers(function: Any) -> None:
    consumer = PushConsumer("Billing", "127.0.0.1:9876")
    consumer.subscribe("Orders", function)
    assert list(consumer._handlers.callers) == ["Orders"]


def test_a_body_is_named_as_its_type_is_written() -> None:
    consumer = PushConsumer("Billing", "127.0.0.1:9876")
    for kind, named in (
        (Row, "Row"),
        (list[int], "list[int]"),
        (Annotated[Order, Avro({"type": "record", "name": "Order", "fields": []})], "Order"),
    ):

        async def take(body: Any) -> None: ...

        take.__annotations__["body"] = kind
        consumer.subscribe(f"Orders-{named[:3]}", take)
        signature = Signature(take, takes_list=False)
        assert signature.decode is not None
        with pytest.raises(UndecodableBody, match=rf"^the body is no {re.escape(named)}: "):
            signature.decode(b"\xff")


def test_a_function_of_the_message_is_called_as_it_is() -> None:
    consumer = PushConsumer("Billing", "127.0.0.1:9876")
    consumer.subscribe("Orders", single)
    handler = consumer._handlers.callers["Orders"]
    assert getattr(handler, "function") is single  # noqa: B009 - one handler is called without a choice


def test_an_annotation_that_cannot_be_read_is_refused_unless_it_is_the_messages() -> None:
    assert "cannot be read" in refused(unread)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (
            {"tags": "a || b"},
            {"tags": "b || c"},
            "(tags='b || c') would never be called for b; each message goes to one",
        ),
        ({}, {"tags": "a"}, "(tags='a') would never be called: register the one for all tags last"),
        ({}, {}, "(tags='*') would never be called"),
        ({"sql": "a > 1"}, {"sql": "a > 1"}, "(sql='a > 1') has the same condition"),
        ({"tags": "a"}, {"tags": "a", "sql": "b > 1"}, "(tags='a', sql='b > 1') would never be called for a"),
        ({"tags": "a", "sql": "b > 1"}, {"tags": "a || c", "sql": "b > 1"}, "has the same condition"),
    ],
)
def test_two_handlers_that_overlap_are_refused(first: dict[str, str], second: dict[str, str], said: str) -> None:
    consumer = PushConsumer("Billing", "127.0.0.1:9876")
    consumer.on("Orders", **first)(single)  # type: ignore[call-overload]
    with pytest.raises(IllegalSubscription) as caught:
        consumer.on("Orders", **second)(text_free)  # type: ignore[call-overload]
    assert said in str(caught.value)
    assert "topic Orders has handler tests.unit.client.consumer.test_signature.single (" in str(caught.value)


async def text_free(message: ReceivedMessage) -> None: ...


@pytest.mark.parametrize(
    ("given", "expression", "kind"),
    [
        ([{"tags": "a || b"}], "a || b", "TAG"),
        ([{"tags": "b"}, {"tags": "a || c"}], "b || a || c", "TAG"),
        ([{"tags": "a"}, {}], "*", "TAG"),
        ([{"sql": "p > 1"}], "p > 1", "SQL92"),
        ([{"sql": "p > 1", "tags": "a || b"}], "(TAGS IN ('a', 'b')) AND (p > 1)", "SQL92"),
        ([{"sql": "p > 1"}, {"tags": "a"}], "(p > 1) OR (TAGS IN ('a'))", "SQL92"),
        ([{"sql": "p > 1"}, {"sql": "p < 1"}, {}], "*", "TAG"),
    ],
)
def test_brokers_are_asked_for_what_all_handlers_take_together(
    given: list[dict[str, str]], expression: str, kind: str
) -> None:
    consumer = PushConsumer("Billing", "127.0.0.1:9876")
    for each in given:
        consumer.on("Orders", **each)(single)  # type: ignore[call-overload]
    found = consumer._subscriptions["Orders"]
    assert (found.expression, found.expression_type) == (expression, kind)


def test_a_retry_policy_takes_the_delays_that_brokers_know() -> None:
    assert RetryPolicy(delays=("1s", "1m", 7200)).levels == (1, 5, 18)
    policy = RetryPolicy(delays=("1s", "1m"), retry=(OSError,), dead_letters=(FileNotFoundError,))
    assert [policy.level(times) for times in range(4)] == [1, 5, 5, 5]
    assert [policy.is_hopeless(e) for e in (OSError(), FileNotFoundError(), ValueError())] == [False, True, True]
    assert [level_of(text) for text in "1s 5s 10s 30s 1m 2h".split()] == [1, 2, 3, 4, 5, 18]
    assert [delay_text(0, times) for times in (0, 1, 30)] == ["10s", "30s", "2h"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delays": ("15s",)}, "a retry cannot be delayed by '15s': brokers know 1s 5s 10s 30s 1m"),
        ({"delays": (0.5,)}, "a retry cannot be delayed by 0.5"),
        ({"retries": -1}, "retries=-1: give a whole number, 0 for no retry at all"),
        ({"retries": "3"}, "retries='3': give a whole number"),
        ({"retry": ("OSError",)}, "give exception classes, as retry=(OSError, TimeoutError)"),
    ],
)
def test_a_retry_policy_that_cannot_be_kept_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse) as caught:
        RetryPolicy(**options)
    assert said in str(caught.value)
