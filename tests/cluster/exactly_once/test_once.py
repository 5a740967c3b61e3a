"""Once: a key and the work that belongs to it are committed together, whatever database it is."""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from skyrocket.client import (
    ConsumeStatus,
    Message,
    Once,
    PushConsumerSettings,
    ReceivedMessage,
    WrongUse,
)
from skyrocket.client.core.errors import IllegalSubscription
from skyrocket.client.exactly_once import HandlerCommitted, NoBusinessKey, by_message_id, by_property
from skyrocket.client.exactly_once.databases import transaction
from skyrocket.testing import LocalCluster
from skyrocket.testing.clock import FakeClock
from tests.cluster.exactly_once.conftest import Shop
from tests.cluster.exactly_once.received import received

ORDER = received(Message("Orders", b"paid", keys="o-1"))


def once_of(shop: Shop, **given: Any) -> Once:
    made = Once(shop.source, scope="Billing", table=f"{shop.prefix}done", **given)
    made.create_table()
    return made


def pay(shop: Shop) -> Callable[[ReceivedMessage, Any], None]:
    return lambda message, connection: shop.effect(connection, message.keys[0])


@pytest.mark.requirement("A086", "A087", "A088")
def test_a_message_that_comes_again_is_known_by_memory_or_by_the_database(shop: Shop) -> None:
    once = once_of(shop)
    for _ in range(3):
        once.run(ORDER, pay(shop))
    after_a_restart = once_of(shop)
    after_a_restart.run(ORDER, pay(shop))
    after_a_restart.run(received(Message("Orders", b"paid", keys="o-2")), pay(shop))
    assert shop.effects() == ["o-1", "o-2"]
    assert (once.called, once.repeated) == (1, 2)
    assert (after_a_restart.called, after_a_restart.repeated) == (1, 1)


def test_without_memory_the_database_alone_knows(shop: Shop) -> None:
    once = once_of(shop, cache_size=0)
    for _ in range(3):
        once.run(ORDER, pay(shop))
    assert shop.effects() == ["o-1"]


def test_a_handler_that_fails_leaves_neither_work_nor_key(shop: Shop) -> None:
    once = once_of(shop)

    def fail(message: ReceivedMessage, connection: Any) -> None:
        shop.effect(connection, "half done")
        raise ValueError("not today")

    def ask_again(message: ReceivedMessage, connection: Any) -> ConsumeStatus:
        shop.effect(connection, "half done")
        return ConsumeStatus.RECONSUME_LATER

    with pytest.raises(ValueError, match="not today"):
        once.run(ORDER, fail)
    assert once.run(ORDER, ask_again) is ConsumeStatus.RECONSUME_LATER
    assert shop.effects() == []
    once.run(ORDER, pay(shop))
    assert shop.effects() == ["o-1"]


def test_two_at_the_same_time_are_one(shop: Shop) -> None:
    both_began = threading.Barrier(2)
    failures: list[BaseException] = []

    def slow(message: ReceivedMessage, connection: Any) -> None:
        shop.effect(connection, message.keys[0])
        time.sleep(0.2)

    def consume(once: Once) -> None:
        both_began.wait()
        try:
            once.run(ORDER, slow)
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    # Two processes have no memory in common.
    threads = [threading.Thread(target=consume, args=(once_of(shop),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert failures == []
    assert shop.effects() == ["o-1"]


def test_keys_that_are_old_enough_are_forgotten(shop: Shop) -> None:
    clock = FakeClock()
    once = once_of(shop, clock=clock)
    once.run(ORDER, pay(shop))
    clock.advance(hours=30)
    once.run(received(Message("Orders", b"paid", keys="o-2")), pay(shop))
    assert once.forget(timedelta(days=1)) == 1
    once.run(received(Message("Orders", b"paid", keys="o-2")), pay(shop))
    assert shop.effects() == ["o-1", "o-2"]


def test_what_a_pool_gives_is_given_back(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db")
    in_use: list[bool] = []

    @contextmanager
    def borrowed() -> Iterator[sqlite3.Connection]:
        in_use.append(True)
        try:
            yield connection
        finally:
            in_use.pop()

    once = Once(borrowed)
    once.create_table()

    def fail(message: ReceivedMessage, connection: sqlite3.Connection) -> None:
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        once.run(ORDER, fail)
    for _ in range(2):
        once.run(ORDER, lambda message, connection: None)
    assert (once.called, once.repeated, in_use) == (1, 1, [])
    assert connection.execute("SELECT message_key FROM skyrocket_done").fetchall() == [("o-1",)]
    connection.close()


# ── wrong use ────────────────────────────────────────────────────────────────────────────────────────────────────────


def sqlite_once(path: Path, *, key: Any = None, **given: Any) -> Once:
    source = lambda: sqlite3.connect(path / "shop.db")  # noqa: E731
    once = Once(source, key, **given) if key is not None else Once(source, **given)
    once.create_table()
    return once


def test_a_handler_that_commits_by_itself_is_told(tmp_path: Path) -> None:
    with pytest.raises(HandlerCommitted, match="leave commit and rollback to Once"):
        sqlite_once(tmp_path).run(ORDER, lambda message, connection: connection.commit())


def test_a_psycopg_handler_that_commits_by_itself_is_told(postgres: str) -> None:
    once = Once(lambda: psycopg.connect(f"host={postgres} user=test dbname=postgres"), scope="committing")
    once.create_table()
    with pytest.raises(HandlerCommitted, match="leave commit and rollback to Once"):
        once.run(ORDER, lambda message, connection: connection.commit())


def test_a_connection_in_autocommit_mode_is_refused(postgres: str) -> None:
    once = Once(lambda: psycopg.connect(f"host={postgres} user=test dbname=postgres", autocommit=True))
    with pytest.raises(WrongUse, match="two transactions: connect with autocommit=False"):
        once.create_table()


def test_a_message_without_a_key_is_refused_and_so_are_wrong_databases(tmp_path: Path) -> None:
    once = sqlite_once(tmp_path)
    with pytest.raises(NoBusinessKey, match=r"has no business key: send it with keys=…, or give Once another rule"):
        once.run(received(Message("Orders", b"paid")), lambda message, connection: None)
    with pytest.raises(WrongUse, match="give a function that returns a connection or a session"):
        Once(lambda: "shop.db").create_table()
    with pytest.raises(WrongUse, match="'done; --' is not a name for a table"):
        Once(lambda: sqlite3.connect(":memory:"), table="done; --")
    with pytest.raises(WrongUse, match="cache_size=-1 is negative"):
        Once(lambda: sqlite3.connect(":memory:"), cache_size=-1)


def test_handlers_that_cannot_have_a_transaction_are_refused(tmp_path: Path) -> None:
    from skyrocket.client import PushConsumer

    consumer = PushConsumer("Billing", "127.0.0.1:9876")

    async def handle(message: ReceivedMessage, connection: Any) -> None: ...

    with pytest.raises(WrongUse, match="is async, but a database transaction blocks its thread"):
        consumer.subscribe("Orders", handle, once=sqlite_once(tmp_path))
    with pytest.raises(IllegalSubscription, match="once= and batch= exclude each other"):
        consumer.subscribe("Orders", lambda messages, connection: None, batch=True, once=sqlite_once(tmp_path))


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_the_key_is_can_be_chosen(tmp_path: Path) -> None:
    calls: list[bytes] = []

    def note(message: ReceivedMessage, connection: Any) -> None:
        calls.append(message.body)

    first = received(Message("Orders", b"1", keys="a", properties={"order": "7"}), "U1")
    second = received(Message("Orders", b"2", keys="b", properties={"order": "7"}), "U2")
    for key, expected in (
        (by_property("order"), [b"1"]),
        (by_message_id, [b"1", b"2"]),
        (lambda message: message.topic, [b"1"]),
    ):
        calls.clear()
        once = sqlite_once(tmp_path, key=key, scope=repr(key))
        for message in (first, second, first):
            once.run(message, note)
        assert calls == expected


def test_long_keys_stay_apart(tmp_path: Path) -> None:
    once = sqlite_once(tmp_path, cache_size=0)
    for number in range(2):
        once.run(received(Message("Orders", b"x", keys="k" * 5000 + str(number))), lambda message, connection: None)
    assert (once.called, once.repeated) == (2, 0)


def test_scopes_keep_groups_apart(tmp_path: Path) -> None:
    done = [sqlite_once(tmp_path, scope=scope) for scope in ("Billing", "Statistics")]
    for once in done:
        once.run(ORDER, lambda message, connection: None)
    assert [once.called for once in done] == [1, 1]


# ── with a consumer ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("orderly", [False, True])
def test_a_consumer_does_what_was_sent_twice_once(rocketmq: LocalCluster, tmp_path: Path, orderly: bool) -> None:
    rocketmq.create_topic("Orders", queues=2)
    once = sqlite_once(tmp_path)
    with transaction(lambda: sqlite3.connect(tmp_path / "shop.db")) as statements:
        statements.execute("CREATE TABLE paid (what TEXT)", {})
    failing = {"o-3"}
    settings = PushConsumerSettings(persist_interval=0.1, orderly=orderly, suspend_current_queue=0.05)
    consumer = rocketmq.push_consumer("Billing", settings=settings)

    @consumer.on("Orders", once=once)
    def paid(message: ReceivedMessage, connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO paid VALUES (?)", message.keys)
        if message.keys[0] in failing:
            failing.clear()
            raise ValueError("again, please")

    with rocketmq.producer() as producer, consumer:
        for number in [*range(10), *range(10)]:
            producer.send(Message("Orders", b"x", keys=f"o-{number}"))
        deadline = time.monotonic() + 60
        while once.called + once.repeated < 20:
            assert time.monotonic() < deadline
            if not orderly:
                rocketmq.advance(seconds=10)
            time.sleep(0.02)
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        rows = connection.execute("SELECT what FROM paid ORDER BY what").fetchall()
        scopes = connection.execute("SELECT DISTINCT scope FROM skyrocket_done").fetchall()
    connection.close()
    assert rows == [(f"o-{number}",) for number in range(10)]
    assert scopes == [("Billing",)]
