"""Typed handlers of one topic, retries, a result that is sent on. Run: python examples/client_worker.py

As a service: skyrocket worker --app-dir examples client_worker:consumer
"""

import asyncio
import logging
import os
from dataclasses import dataclass
from decimal import Decimal

from local_server import name_server

from skyrocket import Message, Producer, PushConsumer, RetryPolicy, publish, reply

log = logging.getLogger("example")
consumer = PushConsumer("Billing")


@dataclass
class Order:
    number: str
    amount: Decimal


@consumer.on("Orders", tags="paid", retry=RetryPolicy(delays=("1s", "10s"), retries=3))
@publish("Invoices")
async def paid(body: Order, attempt: int) -> Order:
    if attempt == 1:
        raise ConnectionError("the bank is closed")  # again in a second
    return Order(f"invoice of {body.number}", body.amount)


@consumer.on("Orders", tags="cancelled")
def cancelled(body: Order) -> None:
    log.info("%s was cancelled", body.number)


@consumer.on("Invoices")
async def invoice(body: Order) -> None:
    log.info("%s: %s", body.number, body.amount)
    done.set()


@consumer.on("Prices")
@reply
async def price(body: str) -> dict[str, str]:
    return {"article": body, "price": "9.99"}


done = asyncio.Event()


async def main() -> None:
    async with Producer("Shop") as producer:
        await producer.send("Orders", Order("o-1", Decimal("10.50")), tags="paid", keys="o-1")
        await producer.send("Orders", Order("o-2", Decimal("3")), tags="cancelled")
        async with consumer:
            log.info("%s", (await producer.request(Message.of("Prices", "cup"), timeout=30)).json())
            await asyncio.wait_for(done.wait(), 30)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        os.environ["NAMESRV_ADDR"] = address
        asyncio.run(main())
