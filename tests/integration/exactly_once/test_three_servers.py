"""What our client does for exactly-once effects, against Skyrocket and against Apache RocketMQ 5.4.0 and 4.9.7."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client import (
    Admin,
    Message,
    Once,
    Outbox,
    OutboxRelay,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
    cause_of,
)
from skyrocket.client.sending.send_number import SendNumber
from skyrocket.config.sections import StoreConfig
from tests.client_steps import FIRST, fresh, made
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, apache_or_skip, registered
from tests.interop.rocketmq_broker import running_broker
from tests.interop.standalone import running_standalone
from tests.loops import run_bounded
from tests.waiting import until


@pytest.fixture(scope="module", params=SERVER_PARAMETERS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its kind and its name server."""
    folder: Path = tmp_path_factory.mktemp("store")
    with contextlib.ExitStack() as stack:
        if request.param == OURS:
            yield OURS, stack.enter_context(running_standalone(folder)).name_server
            return
        apache = apache_or_skip(request.param)
        address = stack.enter_context(running_broker(apache, folder, StoreConfig())).name_server
        run_bounded(registered(address))
        yield request.param, address


@pytest.mark.parametrize("orderly", [False, True])
async def test_a_dead_letter_tells_its_cause_and_comes_again(server: tuple[str, str], orderly: bool) -> None:
    _, names = server

    async def main() -> None:
        topic, group = fresh("Dead"), fresh("Billing")
        await made(names, topic, 1)
        calls: list[int] = []
        is_broken = True
        settings = PushConsumerSettings(
            consume_from=FIRST, max_reconsume_times=1 if orderly else 0, orderly=orderly, suspend_current_queue=0.1
        )
        consumer = PushConsumer(group, names, settings)

        @consumer.on(topic)
        async def handle(message: ReceivedMessage) -> None:
            calls.append(message.reconsume_times)
            if is_broken:
                raise ValueError("the shop is closed")

        async with Producer("Shop", names) as producer, Admin(names) as admin, consumer:
            await producer.send(Message(topic, b"paid", keys="o-1", tags="TagA"))
            letters: list[ReceivedMessage] = []
            for _ in range(150):
                letters = await admin.dead_letters(group)
                if letters:
                    break
                await asyncio.sleep(0.2)
            (letter,) = letters
            cause = cause_of(letter)
            assert cause is not None
            assert (cause.error_type, cause.error_message) == ("ValueError", "the shop is closed")
            assert "in handle\n" in cause.traceback
            assert [each.number for each in cause.attempts] == ([1, 2] if orderly else [1])
            assert (letter.body, letter.topic, letter.keys, letter.tags) == (b"paid", topic, ["o-1"], "TagA")
            is_broken = False
            count = len(calls)
            await admin.resend_dead_letters(group, to_topic=orderly)
            await until(lambda: len(calls) > count)
            assert calls[-1] == 0

    await main()


async def test_numbers_are_stored_and_only_our_broker_minds_them(server: tuple[str, str]) -> None:
    kind, names = server

    topic = fresh("Numbered")
    await made(names, topic, 2)
    async with Producer("Shop", names) as producer, Admin(names) as admin:
        for _ in range(2):
            await producer.send_numbered(Message(topic, b"paid"), SendNumber("till", 1), unique_key="A1")
        ends = [await admin.max_offset(queue) for queue in await admin.queues(topic)]
    assert sum(ends) == (1 if kind == OURS else 2)


async def test_from_outbox_to_once(server: tuple[str, str], tmp_path: Path) -> None:
    _, names = server
    outbox = Outbox("shop")

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(tmp_path / "shop.db", timeout=20)

    topic, group = fresh("Outbox"), fresh("Billing")
    await made(names, topic, 2)
    once = Once(connect)
    once.create_table()
    outbox.create_table(connect)
    with contextlib.closing(connect()) as connection, connection:
        connection.execute("CREATE TABLE paid (what TEXT)")
        for number in [*range(10), *range(10)]:
            outbox.add(connection, Message(topic, b"x", keys=f"o-{number}", sharding_key=f"k{number}"))
    consumer = PushConsumer(group, names, PushConsumerSettings(consume_from=FIRST))

    @consumer.on(topic, once=once)
    def pay(message: ReceivedMessage, connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO paid VALUES (?)", message.keys)

    async with Producer("Shop", names) as producer, OutboxRelay(outbox, connect, producer) as relay, consumer:
        await until(lambda: once.called + once.repeated == 20)
        assert relay.sent == 20
    with contextlib.closing(connect()) as connection:
        paid = connection.execute("SELECT what FROM paid ORDER BY what").fetchall()
    assert paid == [(f"o-{number}",) for number in range(10)]
