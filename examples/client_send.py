"""Send: one by one, many at once, in a batch, in order, without an answer. Run: python examples/client_send.py"""

import asyncio
import logging

from local_server import name_server

from skyrocket.client import Message, Producer

log = logging.getLogger("example")


async def main(names: str) -> None:
    async with Producer("Shop", names) as producer:
        receipt = await producer.send(Message("Orders", b"paid", tags="TagA", keys=["o-1001"]))
        log.info("%s in queue %d at offset %d", receipt.status.name, receipt.queue.queue_id, receipt.queue_offset)

        receipts = await asyncio.gather(*(producer.send(Message("Orders", b"%d" % i)) for i in range(1000)))
        log.info("%d messages in %d queues", len(receipts), len({receipt.queue for receipt in receipts}))

        batch = await producer.send_batch([Message("Orders", b"a"), Message("Orders", b"b")])
        log.info("a batch at offsets %s", [receipt.queue_offset for receipt in batch])

        steps = [Message("Orders", step, sharding_key="o-1001") for step in (b"ordered", b"paid", b"sent")]
        queues = {(await producer.send(step)).queue.queue_id for step in steps}
        log.info("all steps of an order in one queue: %s", len(queues) == 1)

        await producer.send_oneway(Message("Logs", b"nobody answers"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
