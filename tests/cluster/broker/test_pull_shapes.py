"""Pulls that are known by their shape are answered as those that are read in full."""

import asyncio
import random
import re
from pathlib import Path

import orjson

from skyrocket.format.record import decode_records
from skyrocket.protocol.pull_shapes import PullShapes, ShapedPull
from skyrocket.protocol.send_shapes import SendShapes
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker, message, running_broker

COMMIT, SUSPEND, SUBSCRIPTION = 0x1, 0x2, 0x4


class Consumer:
    """A connection that asks in one order of fields: ours is that of Java's client, which has shapes, or another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, turned: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._turned = turned
        self.shapes = PullShapes(SendShapes().pull_room)
        self.shaped = 0

    def ask(self, opaque: int, code: int, fields: dict[str, str]) -> None:
        ordered = dict(reversed(fields.items())) if self._turned else fields
        rest = {"flag": 0, "language": "JAVA", "opaque": opaque, "serializeTypeCurrentRPC": "JSON", "version": 493}
        header = orjson.dumps({"code": code, "extFields": ordered, **rest})
        self.shaped += isinstance(self.shapes.command(header, b""), ShapedPull)  # as the broker's connection does
        self._writer.write((4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header)

    async def answer(self) -> bytes:
        async with asyncio.timeout(20):
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return re.sub(rb"127\.0\.0\.1:\d+", b"peer", await self._reader.readexactly(size))  # refusals say whom

    def close(self) -> None:
        self._writer.close()


def pull(queue_id: int, offset: int, committed: int, **changes: str) -> dict[str, str]:
    return {
        "queueId": str(queue_id),
        "maxMsgNums": "32",
        "sysFlag": "0",
        "commitOffset": str(committed),
        "suspendTimeoutMillis": "15000",
        "topic": TOPIC,
        "queueOffset": str(offset),
        "expressionType": "TAG",
        "subVersion": "0",
        "consumerGroup": GROUP,
        **changes,
    }


async def consumers(given: RunningBroker) -> tuple[Consumer, Consumer]:
    made = [await asyncio.open_connection("127.0.0.1", given.port) for _ in range(2)]
    return Consumer(*made[0], turned=False), Consumer(*made[1], turned=True)


async def filled(given: RunningBroker, rounds: int) -> None:
    for number in range(rounds):
        for queue_id in range(4):
            tag = "even" if number % 2 == 0 else "odd"
            body = b"%d" % number if queue_id != 3 else b"x" * (1 + number * 7)
            await given.client.call(given.address, message(TOPIC, queue_id, f"TAGS\x01{tag}\x02"), body)
    await given.beat()


async def test_shapes_lead_to_the_same_answers_and_commits(tmp_path: Path) -> None:
    chance = random.Random(18)
    variants: list[dict[str, str]] = [
        {},
        {"sysFlag": str(COMMIT)},
        {"sysFlag": str(SUBSCRIPTION), "subscription": "odd"},
        {"sysFlag": str(SUBSCRIPTION), "subscription": "*"},
        {"sysFlag": str(SUBSCRIPTION | COMMIT), "subscription": "even || odd"},
        {"maxMsgNums": "0"},
        {"maxMsgNums": "5", "maxMsgBytes": "700"},
        {"maxMsgNums": "100"},
        {"maxMsgNums": "many"},
        {"subVersion": "9999999999999"},
        {"topic": "Nowhere"},
        {"consumerGroup": "Nobody"},
    ]
    async with running_broker(tmp_path) as given:
        await filled(given, 200)
        given.broker.store.queues.write_out()
        known, read = await consumers(given)
        for number in range(1500):
            code = chance.choice((11, 11, 11, 361))
            offset = chance.choice((number % 190, 0, 199, 200, 201, 10**17, chance.randrange(200)))
            fields = pull(chance.choice((0, 1, 2, 3, 7)), offset, chance.randrange(200), **chance.choice(variants))
            for consumer in (known, read):
                consumer.ask(number, code, fields)
            assert await known.answer() == await read.answer(), fields
        for queue_id in range(4):
            expected = [str(number).encode() for number in range(200)]
            got: list[bytes] = []
            while len(got) < 200:
                for consumer in (known, read):
                    consumer.ask(len(got), 11, pull(queue_id, len(got), 0))
                answer = await known.answer()
                assert answer == await read.answer()
                body = answer[4 + int.from_bytes(answer[:4], "big") :]
                got += [record.body for record in decode_records(body)]
            assert queue_id == 3 or got == expected
        assert known.shaped > 1000  # else this has compared nothing
        assert read.shaped == 0
        known.close()
        read.close()


async def test_a_commit_of_a_known_shape_is_its_own_and_not_that_of_the_first(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await filled(given, 10)
        known, other = await consumers(given)
        for committed in (3, 5, 9):
            known.ask(1, 11, pull(0, committed, committed, sysFlag=str(COMMIT)))
            await known.answer()
            assert given.broker.tables.offsets.committed(GROUP, TOPIC, 0) == committed
        known.close()
        other.close()


async def test_a_pull_of_a_known_shape_waits_for_the_message_at_its_own_offset(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await filled(given, 3)
        known, other = await consumers(given)
        known.ask(1, 11, pull(0, 0, 0, sysFlag=str(SUSPEND)))
        await known.answer()
        known.ask(2, 11, pull(0, 3, 0, sysFlag=str(SUSPEND)))
        waiting = asyncio.ensure_future(known.answer())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await given.send(b"new")
        answer = await waiting
        assert b'"opaque":2' in answer
        body = answer[4 + int.from_bytes(answer[:4], "big") :]
        assert [(record.queue_offset, record.body) for record in decode_records(body)] == [(3, b"new")]
        assert known.shaped == 1
        known.close()
        other.close()
