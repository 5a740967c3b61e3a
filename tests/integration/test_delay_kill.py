"""Delayed messages of a broker that was killed."""

import asyncio
from pathlib import Path

from skyrocket.format.record import decode_records
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import (
    PULL_CODES,
    TOPIC,
    message,
    pull_request,
)
from tests.integration.program import Standalone


async def test_kill_9_loses_no_delayed_message(tmp_path: Path) -> None:
    sent = [b"%d" % i for i in range(300)]
    settings = ("messageDelayLevel=2s", "flushDelayOffsetInterval=100", "flushIntervalCommitLog=50")

    async def fill(address: str) -> None:
        """Send, and wait until some of them have been delivered."""
        async with RemotingClient() as client:
            for body in sent:
                await client.call(address, message(properties="DELAY\x011\x02"), body)
                await asyncio.sleep(0.004)
            while (await client.call(address, GetMaxOffset(topic=TOPIC, queue_id=0))).header.offset < 50:
                await asyncio.sleep(0.01)

    async def all_delivered(address: str) -> list[bytes]:
        found: list[bytes] = []
        async with RemotingClient() as client:
            while set(found) < set(sent):
                pulled = await client.call(address, pull_request(len(found)), accepted=PULL_CODES)
                if not pulled.code:
                    found += [record.body for record in decode_records(pulled.body)]
                else:
                    await asyncio.sleep(0.05)
        return found

    first = Standalone(tmp_path, *settings)
    with first:
        await fill(first.broker)
        first.kill()
    second = Standalone(tmp_path, *settings)
    with second:
        found = await all_delivered(second.broker)
    assert len(found) < 2 * len(sent), "only what was delivered after the last save comes again"
