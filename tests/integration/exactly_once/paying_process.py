"""A consumer that dies where it hurts.

python -m tests.integration.exactly_once.paying_process NAMESRV DATABASE SEED CHANCE

It kills itself with kill -9 before its work, between work and commit, right after the commit, or not at all.
"""

import os
import random
import signal
import sqlite3
import sys
import time

from skyrocket.client import ClientSettings, Once, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.client.exactly_once.once import RecentKeys


def main(name_servers: str, database: str, seed: int, chance: float) -> None:
    chances = random.Random(seed)

    def die_perhaps() -> None:
        if chances.random() < chance:
            os.kill(os.getpid(), signal.SIGKILL)

    class DyingKeys(RecentKeys):
        def add(self, key: tuple[str, str]) -> None:
            die_perhaps()  # committed, but the broker has not heard of it
            super().add(key)

    once = Once(lambda: sqlite3.connect(database, timeout=20))
    once._recent = DyingKeys(5)
    once.create_table()
    settings = PushConsumerSettings(persist_interval=0.2, max_concurrency=4)
    consumer = blocking.PushConsumer("Billing", settings=settings, client=ClientSettings(name_servers))

    @consumer.on("Orders", once=once)
    def pay(message: ReceivedMessage, connection: sqlite3.Connection) -> None:
        die_perhaps()
        connection.execute("INSERT INTO paid (what, cents) VALUES (?, ?)", (message.keys[0], int(message.body)))
        connection.execute("UPDATE account SET cents = cents - ?", (int(message.body),))
        die_perhaps()

    with consumer:
        time.sleep(60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
