"""Sends a thousand made-up orders, ten minutes' worth; some twice, some that nobody can read."""

import itertools
import os
from datetime import UTC, datetime

from skyrocket.client import ClientSettings
from skyrocket.client.blocking import Producer
from skyrocket.pipeline.demo.orders import orders


def main() -> None:
    topic = os.environ.get("ORDERS_TOPIC", "orders")
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    with Producer("shop", client=ClientSettings(os.environ.get("NAMESRV_ADDR", "127.0.0.1:9876"))) as producer:
        for message in itertools.islice(orders(topic, start, per_minute=100), 1000):
            producer.send(message)


if __name__ == "__main__":
    main()
