"""Messages of all kinds, numbered by their keys, each sent until it is acknowledged.

A unit is what is sent in one go: a message, a batch, a row of messages of one sharding key, a transaction. A broker
that is away makes its units wait; what was stored without an answer is sent again, so a number may be found twice.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from skyrocket.client import (
    ClientError,
    ClientSettings,
    Message,
    Producer,
    ProducerSettings,
    PushConsumer,
    ReceivedMessage,
    ReconsumeLater,
    TransactionProducer,
    TransactionState,
)
from skyrocket.remoting.errors import RemotingError
from tests.waiting import until

TOPIC: Final = "Orders"
RETURNED_TOPIC: Final = "Returned"
GROUP: Final = "Shop"
_AWAY_SECONDS: Final = 180.0  # of a broker, at most
_PAUSE_SECONDS: Final = 0.3
_ROW = 20  # messages of a batch, and of a sharding key
_LARGEST: Final = 4_190_000  # with what compression adds to random bytes it is below 4 MiB


class Kind(Enum):
    """How messages are sent."""

    PLAIN = "plain"
    BATCH = "batch"
    ORDERED = "ordered"
    DELAYED = "delayed by level"
    TIMED = "timer"
    TRANSACTION = "transaction"
    COMPRESSED = "compressed"
    LARGE = "large"


_SHARES: Final = {  # of all units, in thousandths
    Kind.PLAIN: 862,
    Kind.BATCH: 12,
    Kind.ORDERED: 4,
    Kind.DELAYED: 40,
    Kind.TIMED: 20,
    Kind.TRANSACTION: 20,
    Kind.COMPRESSED: 40,
    Kind.LARGE: 2,
}
_KINDS: Final = [kind for kind, share in _SHARES.items() for _ in range(share)]
_LARGE_AT_MOST: Final = 12


@dataclass(frozen=True)
class Unit:
    """Messages with these numbers."""

    kind: Kind
    numbers: range

    @property
    def is_rolled_back(self) -> bool:
        return self.kind is Kind.TRANSACTION and self.numbers[0] % 4 == 0


def units(count: int, seed: int) -> list[Unit]:
    """So many messages, in an order that the seed says; the same each time."""
    dice = random.Random(seed)
    found: list[Unit] = []
    number = larges = 0
    while number < count:
        kind = dice.choice(_KINDS)
        larges += kind is Kind.LARGE
        if kind is Kind.LARGE and larges > _LARGE_AT_MOST:
            kind = Kind.PLAIN
        size = _ROW if kind in (Kind.BATCH, Kind.ORDERED) else 1
        found.append(Unit(kind, range(number, min(number + size, count))))
        number += size
    return found


def parts(whole: Sequence[Unit], count: int) -> Iterator[Sequence[Unit]]:
    """Of about equal length."""
    for part in range(count):
        yield whole[len(whole) * part // count : len(whole) * (part + 1) // count]


class Load:
    """A producer with many sends under way."""

    def __init__(self, names: str) -> None:
        settings, client = ProducerSettings(retries=0, send_timeout=20.0), ClientSettings(name_servers=names)
        self._producer = Producer(GROUP, settings=settings, client=client)
        self._transactions = TransactionProducer(f"{GROUP}-transactions", settings=settings, client=client)
        self._transactions.checker(_outcome)
        self.acknowledged = 0
        self.sent_again = 0
        self._running = contextlib.AsyncExitStack()

    async def __aenter__(self) -> "Load":
        await self._running.enter_async_context(self._producer)
        await self._running.enter_async_context(self._transactions)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._running.aclose()

    async def send(self, wanted: Iterable[Unit], at_once: int = 200) -> None:
        """All of them; fails when one is not acknowledged although its broker has had time to come back."""
        left = iter(wanted)

        async def work() -> None:
            for unit in left:
                await self._send(unit)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(work())

    async def _send(self, unit: Unit) -> None:
        messages = [_message(unit, number) for number in unit.numbers]
        if unit.kind is Kind.BATCH:
            await self._until_acknowledged(partial(self._producer.send_batch, messages))
        elif unit.kind is Kind.TRANSACTION:
            await self._until_acknowledged(partial(self._transact, messages[0], unit))
        else:
            for message in messages:
                await self._until_acknowledged(partial(self._producer.send, message))
        self.acknowledged += len(messages)

    async def _transact(self, message: Message, unit: Unit) -> None:
        async with self._transactions.transaction(message) as transaction:
            if unit.is_rolled_back:
                transaction.roll_back()

    async def _until_acknowledged(self, attempt: Callable[[], Awaitable[object]]) -> None:
        deadline = time.monotonic() + _AWAY_SECONDS
        while True:
            try:
                await attempt()
            except (ClientError, RemotingError):
                if time.monotonic() > deadline:
                    raise
                self.sent_again += 1
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return


async def _outcome(message: ReceivedMessage) -> TransactionState:
    number = int(next(iter(message.keys)))
    return TransactionState.ROLLBACK if number % 4 == 0 else TransactionState.COMMIT


def _message(unit: Unit, number: int) -> Message:
    kind = unit.kind
    dice = random.Random(number)
    tags, keys = f"t{number % 3}", str(number)
    body = bytes(dice.randrange(1, 1500))
    if kind is Kind.ORDERED:
        return Message(TOPIC, body, tags=tags, keys=keys, sharding_key=f"o{unit.numbers[0]}")
    if kind is Kind.DELAYED:
        return Message(TOPIC, body, tags=tags, keys=keys, delay_level=1 + number % 2)
    if kind is Kind.TIMED:
        return Message(TOPIC, body, tags=tags, keys=keys, delay=2.0 + number % 3)
    if kind is Kind.COMPRESSED:
        body = b"%d, " % number * dice.randrange(1000, 5000)
    elif kind is Kind.LARGE:
        body = dice.randbytes(dice.choice((1_000_000, 2_500_000, _LARGEST)))
    return Message(TOPIC, body, tags=tags, keys=keys)


async def consume_on_the_second_try(names: str, load_count: int) -> None:
    """Messages that their consumer sends back once, and gets again from the group's retry topic."""
    client = ClientSettings(name_servers=names)
    tries: dict[str, int] = {}

    async def handle(message: ReceivedMessage) -> None:
        key = next(iter(message.keys))
        tries[key] = tries.get(key, 0) + 1
        if tries[key] < 2:
            raise ReconsumeLater(delay_level=1)

    async with Producer(f"{GROUP}-returned", client=client) as producer:
        for number in range(load_count):
            await producer.send(Message(RETURNED_TOPIC, b"again", keys=str(number)), timeout=30)
    consumer = PushConsumer(f"{GROUP}-returning", client=client)
    consumer.subscribe(RETURNED_TOPIC, handle)
    async with consumer:
        await until(
            lambda: len(tries) == load_count and min(tries.values()) >= 2,
            "every message is consumed again",
            seconds=_AWAY_SECONDS,
        )
