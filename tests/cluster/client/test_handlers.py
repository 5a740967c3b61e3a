"""Several handlers of a topic, bodies as values, context and dependencies, results that are sent, middleware."""

import asyncio
import dataclasses
import logging
import re
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from skyrocket import (
    Depends,
    Message,
    Middleware,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
    ReconsumeLater,
    RetryPolicy,
    publish,
    reply,
)
from skyrocket.client import (
    Admin,
    Avro,
    ClientMetrics,
    ConsumeContext,
    IllegalSubscription,
    Once,
    Proceed,
    Sending,
    WrongUse,
    cause_of,
)
from skyrocket.config.sections import BrokerConfig
from tests.cluster.client.push_consumers import FIRST
from tests.cluster.servers import cluster
from tests.waiting import SECONDS, until

SETTINGS = PushConsumerSettings(consume_from=FIRST)


@dataclasses.dataclass
class Order:
    number: str
    price: Decimal = Decimal(0)


class Model(pydantic.BaseModel):
    number: str


class Struct(msgspec.Struct):
    number: str


AVRO = Avro({"type": "record", "name": "Order", "fields": [{"name": "number", "type": "string"}]})


async def test_each_message_goes_to_the_first_handler_that_takes_it(tmp_path: Path) -> None:
    got: dict[str, list[bytes]] = {"a": [], "b or c": [], "dear": [], "rest": []}
    async with (
        cluster(tmp_path, config=BrokerConfig(property_filter=True)) as given,
        Producer("Shop", given.names) as producer,
    ):
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Orders", tags="a")
        async def a(message: ReceivedMessage) -> None:
            got["a"].append(message.body)

        @consumer.on("Orders", tags="b || c")
        def b_or_c(message: ReceivedMessage) -> None:
            got["b or c"].append(message.body)

        @consumer.on("Orders", sql="price > 10")
        async def dear(message: ReceivedMessage) -> None:
            got["dear"].append(message.body)

        for number, tag in enumerate("abcd"):
            await producer.send(Message("Orders", b"%d" % number, tags=tag, properties={"price": "5"}))
        await producer.send(Message("Orders", b"4", tags="d", properties={"price": "50"}))
        await producer.send(Message("Orders", b"5", tags="a", properties={"price": "50"}))
        async with consumer:
            await until(lambda: sum(map(len, got.values())) == 5)

            @consumer.on("Orders")
            async def rest(message: ReceivedMessage) -> None:
                got["rest"].append(message.body)

            async def passed() -> None:
                await producer.send(Message("Orders", b"6"))

            await passed()
            await until(lambda: b"6" in got["rest"], "a handler that came while it ran")
    assert {name: sorted(bodies) for name, bodies in got.items() if name != "rest"} == {
        "a": [b"0", b"5"],
        "b or c": [b"1", b"2"],
        "dear": [b"4"],
    }


async def test_tags_and_a_condition_of_one_handler_must_both_hold(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with (
        cluster(tmp_path, config=BrokerConfig(property_filter=True)) as given,
        Producer("Shop", given.names) as producer,
    ):
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Orders", tags="paid || sent", sql="price > 10")
        async def dear(message: ReceivedMessage) -> None:
            got.append(message.body)

        for tag, price in (("paid", 5), ("new", 50), ("sent", 50), ("paid", 20)):
            await producer.send(
                Message("Orders", f"{tag} {price}".encode(), tags=tag, properties={"price": str(price)})
            )
        async with consumer:
            await until(lambda: len(got) == 2)
    assert sorted(got) == [b"paid 20", b"sent 50"]


async def test_bodies_come_as_what_parameters_ask_for(tmp_path: Path) -> None:
    got: dict[str, Any] = {}
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Dataclass")
        async def as_dataclass(body: Order, message: ReceivedMessage, attempt: int, group: str) -> None:
            got["dataclass"] = (body, message.keys, attempt, group)

        @consumer.on("Model")
        def as_model(body: Model) -> None:
            got["model"] = body

        @consumer.on("Struct")
        async def as_struct(body: Struct) -> None:
            got["struct"] = body

        @consumer.on("Avro")
        async def as_avro(body: Annotated[Order, AVRO]) -> None:
            got["avro"] = body

        @consumer.on("Text")
        async def as_text(text: str, logger: logging.Logger) -> None:
            logger.warning("got %s", text)
            got["text"] = text

        @consumer.on("Plain")
        async def with_both(message: ReceivedMessage, body: dict[str, int]) -> None:
            got["plain"] = (message.topic, body)

        @consumer.on("Many", batch=True)
        async def many(bodies: list[Order]) -> None:
            got.setdefault("many", []).extend(bodies)

        await producer.send("Dataclass", Order("o-1", Decimal("9.90")), keys="k", tags="paid")
        await producer.send("Model", Model(number="o-2"))
        await producer.send("Struct", Struct("o-3"))
        await producer.send("Avro", Order("o-4"), codec=AVRO)
        await producer.send("Text", "grüße")
        await producer.send("Plain", {"a": 1})
        await producer.send_batch([Message.of("Many", Order(f"m-{number}")) for number in range(3)])
        async with consumer:
            await until(lambda: len(got) == 7 and len(got["many"]) == 3)
    assert got["dataclass"] == (Order("o-1", Decimal("9.90")), ["k"], 1, "Billing")
    assert (got["model"], got["struct"], got["avro"]) == (Model(number="o-2"), Struct("o-3"), Order("o-4"))
    assert (got["text"], got["plain"]) == ("grüße", ("Plain", {"a": 1}))
    assert sorted(order.number for order in got["many"]) == ["m-0", "m-1", "m-2"]


@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("batch", [False, True])
async def test_what_cannot_be_decoded_goes_to_the_dead_letters_alone_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, orderly: bool, batch: bool
) -> None:
    got: list[str] = []
    settings = PushConsumerSettings(consume_from=FIRST, orderly=orderly, consume_message_batch_max_size=8)
    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names) as producer,
        Admin(given.names) as admin,
    ):
        await admin.create_topic("Orders", 1)
        consumer = PushConsumer("Billing", given.names, settings)

        async def one(body: Order) -> None:
            got.append(body.number)

        async def many(bodies: list[Order]) -> None:
            got.extend(body.number for body in bodies)

        consumer.subscribe("Orders", many if batch else one, batch=batch)
        bodies = [b'{"number":"1"}', b'{"number":2}', b'{"number":"3"}', b"{", b'{"number":"5"}']
        await producer.send_batch([Message("Orders", body) for body in bodies])
        async with consumer:
            await until(lambda: len(got) == 3 and len(dead_lines(caplog)) == 2)
            letters = await dead_letters(admin, 2)
    assert sorted(got) == ["1", "3", "5"], "the others are consumed, each once"
    causes = [cause for letter in letters if (cause := cause_of(letter)) is not None]
    assert {cause.error_type for cause in causes} == {"skyrocket.client.consumer.handlers.UndecodableBody"}
    assert sorted(cause.error_message for cause in causes) == [
        "the body is no Order: .number: 2 is no text",
        "the body is no Order: unexpected end of data: line 1 column 2 (char 1)",
    ]
    assert all("the message goes to %DLQ%Billing after 1 attempt topic=Orders" in line for line in dead_lines(caplog))


async def dead_letters(admin: Admin, count: int) -> list[ReceivedMessage]:
    """So many, as soon as the name server knows their topic and they can be read."""
    found: list[ReceivedMessage] = []
    deadline = asyncio.get_running_loop().time() + SECONDS
    while len(found) < count:
        assert asyncio.get_running_loop().time() < deadline, f"{len(found)} of {count} dead letters"
        await asyncio.sleep(0.02)
        found = await admin.dead_letters("Billing")
    return found


def dead_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "goes to %DLQ%" in record.getMessage()]


class Broken(Exception):
    """Of the test."""


async def test_a_retry_policy_decides_delay_number_and_which_exceptions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    attempts: list[tuple[str, int]] = []
    policy = RetryPolicy(delays=("1s",), retries=1, dead_letters=(ValueError,))
    async with (
        cluster(tmp_path) as given,
        Producer("Shop", given.names) as producer,
        Admin(given.names) as admin,
    ):
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Orders", retry=policy)
        async def order(body: str, attempt: int) -> None:
            attempts.append((body, attempt))
            if body == "hopeless":
                raise ValueError("never")
            if body == "asked":
                try:
                    raise Broken("the cause")
                except Broken as error:
                    raise ReconsumeLater("again") from error
            raise Broken("try again")

        for body in ("hopeless", "asked", "failing"):
            await producer.send("Orders", body)
        async with consumer:
            await until(lambda: len(dead_lines(caplog)) == 3)
            letters = await dead_letters(admin, 3)
    assert sorted(attempts) == [("asked", 1), ("asked", 2), ("failing", 1), ("failing", 2), ("hopeless", 1)]
    causes = {letter.body.decode(): cause for letter in letters if (cause := cause_of(letter)) is not None}
    assert causes["hopeless"].error_type == "ValueError"
    assert (causes["asked"].error_type.rpartition(".")[2], causes["asked"].error_message) == ("Broken", "the cause")
    lines = [record.getMessage() for record in caplog.records if "a handler failed" in record.getMessage()]
    (again,) = (line for line in lines if "comes again in" in line and "reason=Broken: try again" in line)
    assert re.fullmatch(
        r"a handler failed, the message comes again in 1s topic=Orders group=Billing message=\w+ "
        r"handler=\S+test_handlers\.\S+\.order attempt=1 of 2 reason=Broken: try again",
        again,
    )
    (last,) = (line for line in lines if "goes to" in line and "reason=Broken: try again" in line)
    assert "the message goes to %DLQ%Billing after 2 attempts topic=Orders group=Billing message=" in last
    levels = {record.levelno for record in caplog.records if "comes again in" in record.getMessage()}
    assert levels == {logging.INFO, logging.WARNING}, "a retry that was asked for is no warning"


async def test_dependencies_are_made_once_for_a_call_and_cleaned_up_after_it(tmp_path: Path) -> None:
    seen: list[str] = []

    async def session(group: str) -> AsyncIterator[str]:
        seen.append("open")
        yield f"session of {group}"
        seen.append("closed")

    def table(session: Annotated[str, Depends(session)]) -> str:
        return f"table in {session}"

    def plain_session() -> Iterator[str]:
        yield "plain"
        seen.append("plain closed")

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Orders")
        async def order(
            body: str,
            session: Annotated[str, Depends(session)],
            table: str = Depends(table),
        ) -> None:
            seen.append(f"{body}, {session}, {table}")

        @consumer.on("Plain")
        def plain(body: str, session: Annotated[str, Depends(plain_session)]) -> None:
            seen.append(f"{body} {session}")

        await producer.send("Orders", "o-1")
        async with consumer:
            await until(lambda: "closed" in seen)
            await producer.send("Plain", "p-1")
            await until(lambda: "plain closed" in seen)
    assert seen[:3] == ["open", "o-1, session of Billing, table in session of Billing", "closed"]
    assert seen[3:] == ["p-1 plain", "plain closed"]


async def test_results_are_published_or_sent_back_to_whoever_asked(tmp_path: Path) -> None:
    invoices: list[tuple[Order, str | None, list[str]]] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Orders")
        @publish("Invoices", tags="new")
        async def invoice(body: Order) -> Order | None:
            return Order(f"invoice {body.number}", body.price) if body.price else None

        @consumer.on("Invoices")
        async def note(message: ReceivedMessage, body: Order) -> None:
            invoices.append((body, message.tags, message.keys))

        @consumer.on("Questions")
        @reply
        def answer(body: str) -> dict[str, str]:
            return {"question": body}

        await producer.send("Orders", Order("free"))
        await producer.send("Orders", Order("o-1", Decimal(5)), keys="o-1")
        async with consumer:
            await until(lambda: invoices)
            found = await producer.request(Message("Questions", b"why"), timeout=30)
            await producer.send("Questions", "nobody waits")
    assert invoices == [(Order("invoice o-1", Decimal(5)), "new", ["o-1"])]
    assert found.json() == {"question": "why"}


class Noting(Middleware):
    """Sees both sides."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self.seen = seen

    async def consume(self, call: ConsumeContext, proceed: Proceed) -> Any:
        self.seen.append(f"{self.name} before {call.messages[0].body.decode()}")
        try:
            return await proceed()
        except Broken as error:
            raise ReconsumeLater(delay_level=1) from error
        finally:
            self.seen.append(f"{self.name} after {call.handler.rpartition('.')[2]}")

    async def send(self, sending: Sending, proceed: Proceed) -> Any:
        sending.messages = [
            dataclasses.replace(message, properties={**message.properties, self.name: sending.kind})
            for message in sending.messages
        ]
        return await proceed()


async def test_middleware_stands_around_handlers_and_sends(tmp_path: Path) -> None:
    seen: list[str] = []
    got: list[ReceivedMessage] = []
    metrics = ClientMetrics()
    async with cluster(tmp_path) as given:
        producer = Producer("Shop", given.names)
        producer.use(Noting("outer", seen), Noting("inner", seen), metrics)
        consumer = PushConsumer("Billing", given.names, SETTINGS)
        consumer.use(Noting("outer", seen), Noting("inner", seen), metrics)
        metrics.observe(consumer)

        @consumer.on("Orders")
        def order(message: ReceivedMessage) -> None:
            seen.append("handler")
            got.append(message)
            if message.reconsume_times == 0:
                raise Broken

        async with producer:
            await producer.send("Orders", "1")
            await producer.send_oneway(Message("Other", b"2"))
            await producer.send_batch([Message("Other", b"3")])
            async with consumer:
                await until(lambda: len(got) == 2)
                await until(lambda: 'result="consumed"} 1' in metrics.page().decode())
                page = metrics.page().decode()
            with pytest.raises(WrongUse):
                producer.use(metrics)
    expected = ["outer before 1", "inner before 1", "handler", "inner after order", "outer after order"]
    assert seen == expected * 2
    assert {"outer": "send", "inner": "send"}.items() <= got[0].properties.items()
    handler = re.search(r'handler="(\S+?)"', page)
    assert handler is not None
    labels = f'group="Billing",topic="Orders",handler="{handler[1]}"'
    assert f'skyrocket_client_handler_calls_total{{{labels},result="failed"}} 1\n' in page
    assert f'skyrocket_client_handler_messages_total{{{labels},result="consumed"}} 1\n' in page
    assert f"skyrocket_client_handlers_running{{{labels}}} 0\n" in page
    assert f"skyrocket_client_handler_latency_seconds_count{{{labels}}} 2\n" in page
    assert 'skyrocket_client_send_latency_seconds_count{group="Shop",topic="Orders"} 1\n' in page
    assert 'skyrocket_client_sent_messages_total{group="Shop",topic="Other",result="sent"} 2\n' in page
    assert 'skyrocket_client_queues_in_hand{group="Billing",topic="Orders"} ' in page


async def test_what_send_cannot_take_is_said(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for arguments, said in (
            (
                (Order("1"),),
                r"send\(Order\(.*\) names no topic: give a Message, or the topic before the value, as send",
            ),
            (("Orders",), r"send\('Orders'\) has no body: give a value, or a Message"),
            ((Message("Orders", b"x"), "y"), "send takes a Message, or a topic with a body and the other fields, not"),
        ):
            with pytest.raises(WrongUse, match=said):
                await producer.send(*arguments)


async def test_a_handler_with_once_may_take_the_body(tmp_path: Path) -> None:
    import sqlite3

    once = Once(lambda: sqlite3.connect(tmp_path / "shop.db"))
    once.create_table()
    got: list[Order] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        consumer = PushConsumer("Billing", given.names, SETTINGS)

        @consumer.on("Orders", once=once)
        def order(body: Order, connection: sqlite3.Connection) -> None:
            connection.execute("SELECT 1")
            got.append(body)

        with pytest.raises(IllegalSubscription, match="with once= it takes the message and a connection"):
            consumer.subscribe("Others", lambda message: None, once=once)
        for _ in range(2):
            await producer.send("Orders", Order("o-1"), keys="o-1")
        async with consumer:
            await until(lambda: once.repeated == 1)
    assert got == [Order("o-1")]
