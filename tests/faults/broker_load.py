"""Load on a broker that will die, and the ledger of what it promised meanwhile.

producers   several connections, each with several sends on their way; two to a queue; no retries, so a body is stored
            once at most, and the bodies of one producer stand in its queue in the order of their numbers
consumers   one to a queue: asks the broker where to go on, pulls, commits
"""

import asyncio
import itertools
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from skyrocket.format.record import decode_records
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import QueryNotFound, RequestError
from skyrocket.protocol.requests.messaging import SendMessageV2
from skyrocket.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

TOPIC, GROUP = "Orders", "Shop"
QUEUES: Final = 4
CONNECTIONS: Final = 8
ON_THEIR_WAY: Final = 8  # sends of one connection
PULL_CODES = frozenset({0, 19, 20, 21})


@dataclass
class Queue:
    """What is known of one queue."""

    acknowledged: dict[int, bytes] = field(default_factory=dict)  # by queue offset
    consumed: dict[int, bytes] = field(default_factory=dict)
    commits: list[tuple[float, int]] = field(default_factory=list)  # when answered, offset
    checked_to: int = 0

    def committed_before(self, moment: float) -> int:
        return max((offset for when, offset in self.commits if when <= moment), default=0)

    def keep(self, known: dict[int, bytes], offset: int, body: bytes) -> None:
        """Note a body; another one under the same offset would be a broken promise."""
        assert known.setdefault(offset, body) == body, f"offset {offset}: {body!r} after {known[offset]!r}"


class Ledger:
    """All queues, and every body that was ever sent."""

    def __init__(self) -> None:
        self.queues = [Queue() for _ in range(QUEUES)]
        self._numbers = itertools.count()

    def bodies(self, producer: str) -> Iterator[bytes]:
        """Text and checksum; lengths differ so that records fall everywhere."""
        for number in self._numbers:
            text = f"{producer}/{number}/{'x' * (number * 37 % 400)}".encode()
            yield text + b"/%08x" % zlib.crc32(text)

    @property
    def acknowledged_count(self) -> int:
        return sum(len(queue.acknowledged) for queue in self.queues)


def origin_of(body: bytes) -> tuple[str, int]:
    """Producer and number; a damaged body fails."""
    text, _, crc = body.rpartition(b"/")
    assert int(crc, 16) == zlib.crc32(text), f"damaged: {body!r}"
    producer, number, _ = text.decode().split("/")
    return producer, int(number)


def send_request(queue_id: int) -> SendMessageV2:
    return SendMessageV2(
        producer_group="Producers",
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue_id,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties="",
        reconsume_times=0,
    )


async def pull(client: RemotingClient, address: str, queue_id: int, offset: int, suspend_ms: int = 0) -> list[bytes]:
    """The bodies from an offset on, or none; their offsets must follow each other."""
    request = PullMessage(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=queue_id,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=0x4 | (0x2 if suspend_ms else 0),
        commit_offset=0,
        suspend_timeout_millis=suspend_ms,
        subscription="*",
        expression_type="TAG",
    )
    reply = await client.call(address, request, accepted=PULL_CODES, timeout_seconds=20)
    if reply.code != ResponseCode.SUCCESS:
        # A slave sends those who have read everything back to the master, as RocketMQ's does.
        nothing = (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)
        assert reply.code in nothing, f"queue {queue_id}, offset {offset}: {reply.remark}"
        return []
    records = list(decode_records(reply.body))
    assert [record.queue_offset for record in records] == list(range(offset, offset + len(records)))
    return [record.body for record in records]


class Load:
    """Producers and consumers of one life of a broker; they end when it does not answer any more."""

    def __init__(self, ledger: Ledger, address: str, life: int, pause_seconds: float = 0.0) -> None:
        self.ledger = ledger
        self.address = address
        self.life = life
        self.pause_seconds = pause_seconds  # of each sender between two messages

    async def run(self) -> None:
        clients = [RemotingClient() for _ in range(CONNECTIONS)]
        reader = RemotingClient()
        try:
            # The first send creates the topic, and each connection is there before sends follow each other on it.
            for number, client in enumerate(clients):
                await self._send(client, number % QUEUES, self.ledger.bodies(f"first{self.life}.{number}"))
            work = [self._produce(client, number) for number, client in enumerate(clients)]
            work += [self._consume(reader, queue_id) for queue_id in range(QUEUES)]
            await asyncio.gather(*work)
        finally:
            for client in (*clients, reader):
                await client.close()

    async def _produce(self, client: RemotingClient, number: int) -> None:
        bodies = self.ledger.bodies(f"{self.life}.{number}")
        await asyncio.gather(*(self._send_on(client, number % QUEUES, bodies) for _ in range(ON_THEIR_WAY)))

    async def _send_on(self, client: RemotingClient, queue_id: int, bodies: Iterator[bytes]) -> None:
        with suppress(RemotingError, RequestError):  # dead, or refused while it stops: not acknowledged
            while True:
                await self._send(client, queue_id, bodies)
                if self.pause_seconds:
                    await asyncio.sleep(self.pause_seconds)

    async def _send(self, client: RemotingClient, queue_id: int, bodies: Iterator[bytes]) -> None:
        body = next(bodies)
        reply = await client.call(self.address, send_request(queue_id), body)
        queue = self.ledger.queues[queue_id]
        assert reply.header.queue_offset not in queue.acknowledged
        queue.keep(queue.acknowledged, reply.header.queue_offset, body)

    async def _consume(self, client: RemotingClient, queue_id: int) -> None:
        queue = self.ledger.queues[queue_id]
        with suppress(RemotingError, RequestError):
            offset = await committed_offset(client, self.address, queue_id)
            while True:
                found = await pull(client, self.address, queue_id, offset, suspend_ms=5000)
                for body in found:
                    queue.keep(queue.consumed, offset, body)
                    offset += 1
                request = UpdateConsumerOffset(
                    consumer_group=GROUP, topic=TOPIC, queue_id=queue_id, commit_offset=offset
                )
                await client.call(self.address, request)
                queue.commits.append((time.monotonic(), offset))


async def committed_offset(client: RemotingClient, address: str, queue_id: int) -> int:
    """Where the group goes on."""
    request = QueryConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=queue_id, set_zero_if_not_found=False)
    try:
        return (await client.call(address, request)).header.offset
    except QueryNotFound:
        return 0


async def check(ledger: Ledger, address: str, *, whole: bool = False) -> None:
    """Read every queue (only what is new, or the whole) and compare it with the promises."""
    async with RemotingClient() as client:
        for queue_id, queue in enumerate(ledger.queues):
            offset = 0 if whole else queue.checked_to
            last_number: dict[str, int] = {}
            while found := await pull(client, address, queue_id, offset):
                for body in found:
                    producer, number = origin_of(body)
                    assert number > last_number.get(producer, -1), f"{producer}: {number} after {last_number[producer]}"
                    last_number[producer] = number
                    for known in (queue.acknowledged, queue.consumed):
                        assert known.get(offset, body) == body, f"queue {queue_id}, offset {offset}"
                    offset += 1
            end = max((*queue.acknowledged, *queue.consumed), default=-1) + 1
            assert offset >= end, f"queue {queue_id} ends at {offset}, but {end} messages were promised"
            queue.checked_to = offset


async def check_offsets(ledger: Ledger, address: str, safe_before: float) -> int:
    """What was committed before the moment is kept, nothing appears that nobody committed; returns the lowest bound."""
    bounds = []
    async with RemotingClient() as client:
        for queue_id, queue in enumerate(ledger.queues):
            offset = await committed_offset(client, address, queue_id)
            bounds.append(queue.committed_before(safe_before))
            assert bounds[-1] <= offset <= queue.committed_before(float("inf")), f"queue {queue_id}"
    return min(bounds)
