"""Consume: a handler per topic, a message that fails and comes again. Run: python examples/client_consume.py"""

import asyncio
import logging

from local_server import name_server

from skyrocket.client import Message, Producer, PushConsumer, ReceivedMessage, ReconsumeLater

log = logging.getLogger("example")


async def main(names: str) -> None:
    done = asyncio.Event()
    consumer = PushConsumer("Billing", names)

    @consumer.on("Orders", tags="paid || refunded")
    async def order(message: ReceivedMessage) -> None:
        log.info("%s: %s, attempt %d", message.tags, message.body.decode(), message.reconsume_times + 1)
        if message.reconsume_times == 0:
            raise ReconsumeLater("the bank is closed", delay_level=1)  # again in a second
        done.set()

    @consumer.on("Audit")
    def audit(message: ReceivedMessage) -> None:  # plain functions run in threads
        log.info("audit: %s", message.json())

    async with Producer("Shop", names) as producer:
        await producer.send(Message("Orders", b"o-1", tags="paid"))
        await producer.send(Message("Orders", b"o-2", tags="new"))  # nobody subscribed to it
        await producer.send(Message.json("Audit", {"order": "o-1"}))
        async with consumer:
            await asyncio.wait_for(done.wait(), 30)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
