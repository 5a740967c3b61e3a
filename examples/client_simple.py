"""Receive messages, acknowledge each, take longer over one, give one up. Run: python examples/client_simple.py"""

import asyncio
import logging

from local_server import name_server

from skyrocket.client import Message, PoppedMessage, Producer, SimpleConsumer

log = logging.getLogger("example")


async def handle(consumer: SimpleConsumer, message: PoppedMessage) -> None:
    if message.body == b"slow":
        await consumer.change_invisible(message, 60)  # nobody else gets it for another minute
    if message.body == b"broken":
        await consumer.to_dead_letters(message, ValueError("no such customer"))
        log.info("given up: %s", message.body)
        return
    await consumer.ack(message)
    log.info("done: %s", message.body)


async def main(names: str) -> None:
    bodies = [b"quick", b"slow", b"broken"]
    async with Producer("Shop", names) as producer:
        for body in bodies:
            await producer.send(Message("Orders", body))

    async with SimpleConsumer("Mail", names, subscription={"Orders": "*"}) as consumer:
        seen = 0
        while seen < len(bodies):
            messages = await consumer.receive(max_messages=16, invisible_seconds=30, wait_seconds=10)
            await asyncio.gather(*(handle(consumer, message) for message in messages))
            seen += len(messages)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
