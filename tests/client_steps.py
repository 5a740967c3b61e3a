"""What tests of several folders do with a client: make topics, read all, wait for routes and traces."""

import asyncio
import contextlib
import uuid

from skyrocket.client import ConsumeFromWhere, LitePullConsumer, LitePullSettings, ReceivedMessage
from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import NoRoute
from skyrocket.client.tracing.optional_tracer import TRACE_TOPIC
from skyrocket.format.trace import TraceEvent


async def soon(admin: Admin, topic: str, count: int) -> None:
    """Brokers register a new topic a moment after it was made."""
    for _ in range(2000):
        try:
            if len(await admin.queues(topic)) == count:
                return
        except NoRoute:
            pass
        await asyncio.sleep(0.02)
    raise AssertionError("the topic did not appear")


async def told(admin: Admin, message_id: str, count: int, topic: str = TRACE_TOPIC) -> list[TraceEvent]:
    """The events of a message, once there are as many."""
    for _ in range(2000):
        try:
            found = await admin.trace(message_id, topic=topic)
        except NoRoute:
            found = []
        if len(found) >= count:
            break
        await asyncio.sleep(0.02)
    assert len(found) == count, found
    return found


FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def fresh(prefix: str) -> str:
    """A name that no other test has used."""
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


async def made(names: str, topic: str, queues: int = 4) -> None:
    """Make a topic and wait until it can be found."""
    async with Admin(names) as admin:
        await admin.create_topic(topic, queues)
        for _ in range(300):
            with contextlib.suppress(NoRoute):
                if len(await admin.queues(topic)) == queues:
                    return
            await asyncio.sleep(0.05)
    raise AssertionError(f"{topic} did not appear")


async def everything(names: str, group: str, topic: str, total: int) -> list[ReceivedMessage]:
    """All messages of a topic, read by assigned queues."""
    found: list[ReceivedMessage] = []
    async with LitePullConsumer(group, names, LitePullSettings(consume_from=FIRST)) as reader:
        await reader.assign(await reader.message_queues(topic))
        while len(found) < total:
            batch = await reader.poll(20)
            assert batch, f"{len(found)} of {total}"
            found += batch
    return found
