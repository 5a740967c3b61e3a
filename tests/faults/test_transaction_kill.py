"""kill -9 of the broker while transactions begin, end and are checked: delivered if and only if committed, and once."""

import asyncio
import contextlib
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from skyrocket.format.record import decode_records
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.cluster.broker.transaction_producer import TOPIC, TransactionProducer
from tests.integration.program import Standalone
from tests.unit.broker.transaction_model import TransactionsAgainstAModel

SETTINGS: Final = (
    "transactionTimeOut=200",
    "transactionCheckInterval=200",
    "transactionCheckMax=100000",
    "transactionOpBatchInterval=400",
    "flushConsumerOffsetInterval=100",
)
PULL_CODES: Final = frozenset({0, 19, 20, 21})
PATIENCE_SECONDS: Final = 30.0


class Book:
    """What was begun, and what became of it. Every third is ended by the producer only when it is asked."""

    def __init__(self) -> None:
        self.words: dict[bytes, int] = {}
        self.acknowledged: list[bytes] = []

    def next(self) -> tuple[bytes, int]:
        number = len(self.words)
        body = b"%06d" % number
        self.words[body] = ROLLBACK if number % 4 == 1 else COMMIT
        return body, number

    @property
    def expected(self) -> set[bytes]:
        return {body for body in self.acknowledged if self.words[body] == COMMIT}


async def work(address: str, book: Book, client_id: str) -> None:
    """Begin and end transactions until the broker is gone."""
    with contextlib.suppress(RemotingError, RequestError, OSError):
        async with TransactionProducer(address, book.words, client_id) as producer:
            while True:
                body, number = book.next()
                half = await producer.begin(body, time.time_ns() // 1_000_000)
                book.acknowledged.append(body)
                if number % 3:
                    await producer.end_oneway(half, book.words[body])
                await asyncio.sleep(0.002)


async def killed_at_work(program: Standalone, book: Book, seconds: float) -> None:
    workers = [asyncio.create_task(work(program.broker, book, f"producer-{number}")) for number in range(3)]
    await asyncio.sleep(seconds)
    program.process.kill()
    await asyncio.wait_for(asyncio.gather(*workers), 20)


async def delivered(client: RemotingClient, address: str) -> list[bytes]:
    bodies: list[bytes] = []
    while True:
        request = PullMessage(
            consumer_group="Shop",
            topic=TOPIC,
            queue_id=0,
            queue_offset=len(bodies),
            max_msg_nums=32,
            sys_flag=0x4,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            expression_type="TAG",
        )
        reply = await client.call(address, request, accepted=PULL_CODES)
        found = [record.body for record in decode_records(reply.body)]
        if not found:
            return bodies
        bodies += found


async def check(address: str, book: Book) -> None:
    """With a producer that answers, everything ends at last; nothing ends otherwise than it was said."""
    async with TransactionProducer(address, book.words, "last"), RemotingClient() as client:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not book.expected <= set(bodies := await delivered(client, address)):
            assert time.monotonic() < deadline, f"missing: {sorted(book.expected - set(bodies))[:10]}"
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)  # whoever delivers twice has had the time
        counts = Counter(await delivered(client, address))
    assert {body for body in counts if book.words[body] != COMMIT} == set()
    assert {body: count for body, count in counts.items() if count > 1} == {}


async def live_and_die(folder: Path, lives: int, seed: int) -> None:
    book, random = Book(), Random(seed)
    for _ in range(lives):
        with Standalone(folder, *SETTINGS) as program:
            await killed_at_work(program, book, random.uniform(0.4, 1.2))
    with Standalone(folder, *SETTINGS) as program:
        await check(program.broker, book)
    assert len(book.acknowledged) > 50 * lives


async def test_transactions_survive_kills(tmp_path: Path) -> None:
    await live_and_die(tmp_path, lives=3, seed=3)


@pytest.mark.slow
async def test_transactions_survive_thirty_kills(tmp_path: Path) -> None:
    await live_and_die(tmp_path, lives=30, seed=4)


@pytest.mark.slow
def test_transactions_follow_their_model_for_long() -> None:
    patient = settings(max_examples=60, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(TransactionsAgainstAModel, settings=patient)
