"""Outbox: a message is sent if and only if its transaction was committed, in order, also across crashes."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import Message, Outbox, OutboxRelay, Producer, ProducerSettings, WrongUse, blocking
from skyrocket.client.core.errors import AlreadyStarted, IllegalName
from skyrocket.client.exactly_once.databases import transaction
from skyrocket.errors import MessageRefused
from skyrocket.testing import AsyncLocalCluster, LocalCluster
from tests.cluster.exactly_once.conftest import Shop
from tests.waiting import until, wait_until


def bodies(mq: AsyncLocalCluster | LocalCluster, topic: str = "Orders") -> list[bytes]:
    return [message.body for message in mq.messages(topic)]


async def test_what_is_committed_is_sent_and_what_is_rolled_back_is_not(shop: Shop) -> None:
    outbox = Outbox("shop", table=f"{shop.prefix}outbox")
    outbox.create_table(shop.source)

    def order(number: int) -> str:
        with transaction(shop.source) as statements:
            shop.effect(statements.handle, f"o-{number}")
            message = Message(
                "Orders",
                b"order \x00\xff %d" % number,
                tags="paid",
                keys=["all", f"o-{number}"],
                properties={"colour": "röt"},
                sharding_key="s",
                flag=7,
            )
            unique_key = outbox.add(statements.handle, message)
            if number == 1:
                raise ValueError("rolled back")
        return unique_key

    first = order(0)
    with pytest.raises(ValueError, match="rolled back"):
        order(1)
    async with LocalCluster() as mq:
        await mq.create_topic("Orders")
        async with mq.producer() as producer, OutboxRelay(outbox, shop.source, producer, poll_seconds=5) as relay:
            await until(lambda: relay.sent == 1)
            second = await asyncio.to_thread(order, 2)
            relay.wake()
            await until(lambda: relay.sent == 2)
        assert bodies(mq) == [b"order \x00\xff 0", b"order \x00\xff 2"]
        (message, _) = mq.messages("Orders")
        assert [each.message_id for each in mq.messages("Orders")] == [first, second]
        assert (message.tags, message.keys, message.properties["colour"]) == ("paid", ["all", "o-0"], "röt")
        assert (message.sharding_key, message.flag) == ("s", 7)
    assert await asyncio.to_thread(outbox.count, shop.source) == 0
    assert shop.effects() == ["o-0", "o-2"]


def sqlite_outbox(folder: Path) -> tuple[Outbox, Callable[[], sqlite3.Connection]]:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(folder / "shop.db", timeout=20)

    outbox = Outbox("shop")
    outbox.create_table(connect)
    return outbox, connect


def write(outbox: Outbox, connect: Callable[[], sqlite3.Connection], *messages: Message) -> None:
    with closing(connect()) as connection, connection:
        for message in messages:
            outbox.add(connection, message)


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("crash_after", range(8))
async def test_a_crash_between_sending_and_removing_sends_nothing_twice(
    tmp_path: Path, crash_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    lanes = ["a", "b", None]
    write(outbox, connect, *(Message("Orders", b"%d" % n, sharding_key=lanes[n % 3]) for n in range(9)))

    async with LocalCluster() as mq:
        await mq.create_topic("Orders", queues=3)
        left = crash_after
        with monkeypatch.context() as patched:
            send = Producer.send_numbered

            async def send_until_the_crash(self: Producer, *args: Any, **rest: Any) -> Any:
                nonlocal left
                receipt = await send(self, *args, **rest)
                left -= 1
                if left < 0:
                    raise Crash
                return receipt

            patched.setattr(Producer, "send_numbered", send_until_the_crash)
            patched.setattr(OutboxRelay, "_remove", lambda self, numbers: None)
            async with mq.producer() as producer:
                with pytest.raises(Crash):
                    await OutboxRelay(outbox, connect, producer).send_pending()
        assert outbox.count(connect) == 9
        async with mq.producer() as producer:
            assert await OutboxRelay(outbox, connect, producer).send_pending() == 9
        sent = mq.messages("Orders")
        assert sorted(message.body for message in sent) == [b"%d" % n for n in range(9)]
        for key in ("a", "b"):
            of_key = [message for message in sent if message.sharding_key == key]
            assert [message.body for message in of_key] == sorted(message.body for message in of_key)
            assert len({message.queue_id for message in of_key}) == 1


async def test_a_message_that_fails_holds_up_its_own_key_and_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    messages = [Message("Missing", b"bad", sharding_key="k"), Message("Missing", b"behind it", sharding_key="k")]
    messages += [Message("Orders", b"%d" % number, sharding_key="k") for number in range(4)]
    write(outbox, connect, *messages)

    async with LocalCluster(settings={"autoCreateTopicEnable": False}) as mq:
        await mq.create_topic("Orders")
        async with mq.producer() as producer:
            relay = OutboxRelay(outbox, connect, producer, batch=2)
            assert await relay.send_pending() == 4
            assert (relay.failed, outbox.count(connect)) == (1, 2)
            await mq.create_topic("Missing")
            assert await relay.send_pending() == 2
        assert bodies(mq) == [b"0", b"1", b"2", b"3"]
        assert bodies(mq, "Missing") == [b"bad", b"behind it"]


async def test_the_relay_survives_a_database_and_a_broker_that_are_away(tmp_path: Path) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    write(outbox, connect, Message("Orders", b"1"))
    is_away = True

    def connect_perhaps() -> sqlite3.Connection:
        if is_away:
            raise sqlite3.OperationalError("unable to open database file")
        return connect()

    async with LocalCluster() as mq:
        await mq.create_topic("Orders", queues=1)
        quick = ProducerSettings(send_timeout=0.5)
        async with (
            mq.producer(settings=quick) as producer,
            OutboxRelay(outbox, connect_perhaps, producer, poll_seconds=0.05) as relay,
        ):
            await until(lambda: relay.failed >= 2)
            await mq.kill_broker()
            is_away = False
            failures = relay.failed
            await until(lambda: relay.failed > failures)
            await mq.start_broker()
            await until(lambda: relay.sent == 1)
            with pytest.raises(AlreadyStarted):
                await relay.start()
        await relay.stop()
        assert bodies(mq) == [b"1"]


async def test_stopping_ends_after_what_is_being_sent_and_the_rest_waits(tmp_path: Path) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    write(outbox, connect, *(Message("Orders", b"%03d" % number, sharding_key="k") for number in range(300)))

    async with LocalCluster() as mq:
        await mq.create_topic("Orders", queues=1)
        async with mq.producer() as producer:
            relay = OutboxRelay(outbox, connect, producer, batch=10)
            await relay.start()
            await until(lambda: relay.sent > 5)
            await asyncio.wait_for(relay.stop(), 60)
            assert not [task for task in asyncio.all_tasks() if "outbox" in task.get_name()]
            assert outbox.count(connect) == 300 - relay.sent
            assert 0 < relay.sent < 300
            async with OutboxRelay(outbox, connect, producer) as another:
                await until(lambda: another.sent + relay.sent == 300)
        assert bodies(mq) == [b"%03d" % number for number in range(300)]


def test_the_relay_without_an_event_loop(rocketmq: LocalCluster, tmp_path: Path) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    rocketmq.create_topic("Orders")
    with rocketmq.producer() as producer, blocking.OutboxRelay(outbox, connect, producer, poll_seconds=20) as relay:
        write(outbox, connect, Message("Orders", b"1"))
        relay.wake()
        wait_until(lambda: relay.sent >= 1)
    assert bodies(rocketmq) == [b"1"]


async def test_a_delay_counts_from_the_transaction_on(tmp_path: Path) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    write(outbox, connect, Message("Orders", b"later", delay=timedelta(seconds=40)))
    time.sleep(1.1)

    async with LocalCluster() as mq:
        await mq.create_topic("Orders")
        async with mq.producer() as producer:
            relay = OutboxRelay(outbox, connect, producer)
            assert await relay.send_pending() == 1
        await mq.advance(seconds=37)
        assert bodies(mq) == []
        await mq.advance(seconds=4)
        assert bodies(mq) == [b"later"]


def test_what_brokers_would_refuse_is_refused_in_the_transaction(tmp_path: Path) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    with closing(connect()) as connection:
        with pytest.raises(MessageRefused, match="is empty"):
            outbox.add(connection, Message("Orders", b""))
        with pytest.raises(MessageRefused, match="max_message_size is 4194304"):
            outbox.add(connection, Message("Orders", bytes(5 << 20)))
        with pytest.raises(IllegalName):
            outbox.add(connection, Message("no topic", b"x"))
        with pytest.raises(WrongUse, match="is neither a DB-API connection nor a SQLAlchemy connection or session"):
            outbox.add("shop.db", Message("Orders", b"x"))
    with pytest.raises(WrongUse, match="an outbox needs a name"):
        Outbox(" ")
    assert outbox.count(connect) == 0


_PROGRAM = """
import asyncio, sqlite3, sys
from skyrocket.client import ClientSettings, Outbox, OutboxRelay, Producer

async def main():
    outbox, connect = Outbox("shop"), lambda: sqlite3.connect(sys.argv[2], timeout=20)
    async with Producer("Shop", client=ClientSettings(sys.argv[1])) as producer:
        async with OutboxRelay(outbox, connect, producer, batch=5, poll_seconds=0.05):
            await asyncio.sleep(60)

asyncio.run(main())
"""


def test_a_relay_that_is_killed_loses_nothing_and_repeats_nothing(rocketmq: LocalCluster, tmp_path: Path) -> None:
    outbox, connect = sqlite_outbox(tmp_path)
    rocketmq.create_topic("Orders", queues=3)
    messages = [Message("Orders", b"%04d" % n, sharding_key=f"k{n % 5}") for n in range(450)]
    write(outbox, connect, *messages)
    deadline = time.monotonic() + 100
    while left := outbox.count(connect):
        assert time.monotonic() < deadline
        command = [sys.executable, "-c", _PROGRAM, rocketmq.name_server_address, str(tmp_path / "shop.db")]
        process = subprocess.Popen(command)
        while process.poll() is None and outbox.count(connect) > max(left - 150, 0):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.kill()
        process.wait()
    sent = rocketmq.messages("Orders")
    assert sorted(message.body for message in sent) == [message.body for message in messages]
    for key in {message.sharding_key for message in sent}:
        of_key = [message.body for message in sent if message.sharding_key == key]
        assert of_key == sorted(of_key)
