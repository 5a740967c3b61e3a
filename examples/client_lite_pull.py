"""Poll, seek and commit at one's own pace, and look around with Admin. Run: python examples/client_lite_pull.py"""

import asyncio
import logging

from local_server import name_server

from skyrocket.client import Admin, LitePullConsumer, LitePullSettings, Message, Producer

log = logging.getLogger("example")


async def main(names: str) -> None:
    async with Producer("Shop", names) as producer:
        for i in range(5):
            await producer.send(Message("Orders", b"%d" % i, sharding_key="o-1", keys=f"k{i}"))

    async with LitePullConsumer("Report", names, LitePullSettings(auto_commit=False)) as consumer:
        await consumer.subscribe("Orders")
        seen = 0
        async for batch in consumer.batches(max_messages=2):
            log.info("batch: %s", [message.body for message in batch])
            seen += len(batch)
            await consumer.commit()
            if seen == 5:
                break
        await consumer.seek(batch[-1].queue, 1)
        log.info("after seek: %s", (await consumer.poll(5, max_messages=1))[0].body)

    async with Admin(names) as admin:
        log.info("by key: %s", [message.body for message in await admin.query_by_key("Orders", "k3")])
        log.info("lag: %d", sum(each.lag for each in await admin.consumer_lag("Report", "Orders")))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with name_server() as address:
        asyncio.run(main(address))
