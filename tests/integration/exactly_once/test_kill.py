"""kill -9 of the consumer at random points: the account is right to the cent."""

import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from skyrocket.client import Message
from skyrocket.testing import LocalCluster

FEW, MANY = 30, 300
DEATHS_OF_FEW = 4  # then one may live


def paid_orders(database: Path) -> list[str]:
    with closing(sqlite3.connect(database, timeout=20)) as connection:
        return [row[0] for row in connection.execute("SELECT what FROM paid")]


@pytest.mark.requirement("A086", "A088")
@pytest.mark.parametrize("orders", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_consumer_that_is_killed_again_and_again_pays_every_order_once(
    rocketmq: LocalCluster, tmp_path: Path, orders: int, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.randrange(1 << 30)
    chances = random.Random(seed)
    database = tmp_path / "shop.db"
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(
            "PRAGMA journal_mode=WAL; CREATE TABLE paid (what TEXT, cents INTEGER);"
            "CREATE TABLE account (cents INTEGER); INSERT INTO account VALUES (1000000);"
        )
    rocketmq.create_topic("Orders", queues=4)
    with rocketmq.producer() as producer:
        for number in range(orders):
            message = Message("Orders", b"%d" % (number + 1), keys=f"o-{number}")
            producer.send(message)
            if number % 7 == 0:
                producer.send(message)  # an application that repeats itself
    deadline = time.monotonic() + 250
    deaths = 0
    while len(set(paid_orders(database))) < orders:
        assert time.monotonic() < deadline, f"seed {seed}: {len(paid_orders(database))} orders, {deaths} deaths"
        command = [sys.executable, "-m", "tests.integration.exactly_once.paying_process", rocketmq.name_server_address]
        chance = 0.0 if orders == FEW and deaths >= DEATHS_OF_FEW else 0.03
        process = subprocess.Popen([*command, str(database), str(chances.randrange(1 << 30)), str(chance)])
        patience = time.monotonic() + (chances.uniform(0.5, 2.5) if chances.random() < 0.3 else 20)
        while process.poll() is None and time.monotonic() < patience:
            if len(set(paid_orders(database))) == orders:
                break
            time.sleep(0.02)
        process.kill()
        process.wait()
        deaths += 1
    paid = paid_orders(database)
    with closing(sqlite3.connect(database)) as connection:
        (left,) = connection.execute("SELECT cents FROM account").fetchone()
    assert sorted(paid) == sorted(f"o-{number}" for number in range(orders)), f"seed {seed}"
    assert left == 1_000_000 - sum(range(1, orders + 1)), f"seed {seed}"
    with capsys.disabled():
        sys.stdout.write(f"\n{deaths} deaths, {len(paid)} orders, seed {seed}\n")
