"""Pulls that are known by their shape are answered as those that are read in full."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path
from typing import Any

import orjson
import pytest

from skyrocket.broker.pull.pull import PullProcessor
from skyrocket.format.java_hash import java_hash
from skyrocket.format.queue_entry import ENTRY_SIZE
from skyrocket.format.record import decode_records
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.pull_shapes import PullShapes, ShapedPull
from skyrocket.protocol.requests.clients import HeartBeat, UnregisterClient
from skyrocket.protocol.send_shapes import SendShapes
from skyrocket.store.commit_log import PutMessage
from tests.cluster.broker.broker_fixture import GROUP, SMALL, TOPIC, RunningBroker, message, running_broker
from tests.maps import is_mapped
from tests.waiting import until

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


Change = Callable[[RunningBroker], Awaitable[None] | None]


async def unsubscribe(given: RunningBroker) -> None:
    await given.client.call(given.address, UnregisterClient(client_id="one", consumer_group=GROUP))


async def subscribe_to_even(given: RunningBroker) -> None:
    even = SubscriptionData(TOPIC, "even", tags=("even",), tag_codes=(java_hash("even"),), version=1)
    await beat_with(given, even)


async def subscribe_to_all(given: RunningBroker) -> None:
    await beat_with(given, SubscriptionData(TOPIC, version=2))


async def subscribe_to_another_topic(given: RunningBroker) -> None:
    await beat_with(given, SubscriptionData("Elsewhere"))


async def beat_with(given: RunningBroker, subscription: SubscriptionData, model: str = "CLUSTERING") -> None:
    data = ConsumerData(GROUP, "CONSUME_PASSIVELY", model, "CONSUME_FROM_LAST_OFFSET", (subscription,))
    await given.client.call(given.address, HeartBeat(), Heartbeat("one", (), (data,)).encode())


async def broadcast(given: RunningBroker) -> None:
    await beat_with(given, SubscriptionData(TOPIC, version=2), "BROADCASTING")


async def make_the_topic_again(given: RunningBroker) -> None:
    store, tables = given.broker.store, given.broker.tables
    tables.topics.delete(TOPIC)
    for queue in [queue for queue in store.queues if queue.topic == TOPIC]:
        store.queues.remove(queue)
    tables.topics.update(TopicConfig(TOPIC, 4, 4, 6))
    for number in range(130 * 2):
        store.put(PutMessage(TOPIC, number % 2, b"again %d" % number, b""))
    store.dispatch()
    store.queues.write_out()


def cut_the_queue(given: RunningBroker) -> None:
    queue = given.broker.store.queues.by_key[TOPIC, 0]
    queue.drop_from(max(queue.max_offset - 10, 100))


def group_with(**changes: Any) -> Change:
    return lambda given: given.broker.tables.groups.update(SubscriptionGroup(GROUP, **changes))


def setting(text: str) -> Change:
    return lambda given: given.broker.settings.apply(given.broker.settings.changed_by(text))


CHANGES: dict[str, Change] = {
    "nothing": lambda given: None,
    "the topic is closed to readers": lambda given: given.broker.tables.topics.update(TopicConfig(TOPIC, 4, 4, 2)),
    "the topic is open again": lambda given: given.broker.tables.topics.update(TopicConfig(TOPIC, 4, 4, 6)),
    "the topic has a queue less": lambda given: given.broker.tables.topics.update(TopicConfig(TOPIC, 1, 1, 6)),
    "the group may not consume": group_with(may_consume=False),
    "the group may not broadcast": group_with(may_consume_broadcast=False),
    "the group may consume": group_with(),
    "the group is sent to another broker": group_with(broker_id=3, broker_id_when_slow=4),
    "the group is deleted": lambda given: ignored(given.broker.tables.groups.delete(GROUP)),
    "the topic is forbidden": lambda given: given.broker.tables.groups.let_read(GROUP, TOPIC, readable=False),
    "the topic is allowed": lambda given: given.broker.tables.groups.let_read(GROUP, TOPIC, readable=True),
    "reads are sent to slaves": setting("slaveReadEnable=true"),
    "reads stay here": setting("slaveReadEnable=false"),
    "fewer messages at a time": setting("maxTransferCountOnMessageInMemory=17"),
    "more messages at a time": setting("maxTransferCountOnMessageInMemory=32"),
    "the topic is made again": make_the_topic_again,
    "the queue loses its end": cut_the_queue,
    "the consumer leaves": unsubscribe,
    "the consumer wants some": subscribe_to_even,
    "the consumer wants all": subscribe_to_all,
    "the consumer wants another topic": subscribe_to_another_topic,
    "the consumer broadcasts": broadcast,
}


def ignored(_: object) -> None: ...


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_is_changed_the_next_pull_of_a_known_shape_sees_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with running_broker(tmp_path) as given:
        await filled(given, 200)
        given.broker.store.queues.write_out()
        known, read = await consumers(given)
        went_on: set[str] = set()
        offset = 0
        for _ in range(150):
            name = chance.choice(sorted(CHANGES))
            change = CHANGES[name](given)
            if isawaitable(change):
                await change
            for step in range(4):
                if chance.random() < 0.05:
                    offset = 0
                queue_id = chance.choice((0, 0, 0, 1))
                fields = pull(queue_id, offset, offset, sysFlag=chance.choice(("0", str(COMMIT))))
                for consumer in (known, read):
                    consumer.ask(step, 11, fields)
                answer = await known.answer()
                assert answer == await read.answer(), (name, fields)
                if b'"code":0' in answer:
                    went_on.add(name)
                offset = offset + 32 if offset + 32 <= 168 else 0
        assert len(went_on) > 5
        known.close()
        read.close()


async def test_a_reset_is_told_to_a_pull_of_a_known_shape(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await filled(given, 200)
        given.broker.store.queues.write_out()
        known, other = await consumers(given)
        for offset in (0, 32, 64):
            known.ask(1, 11, pull(0, offset, offset, sysFlag=str(COMMIT)))
            assert b'"code":0' in await known.answer()
        given.broker.tables.offsets.reset(GROUP, TOPIC, {0: 7})
        known.ask(1, 11, pull(0, 96, 96, sysFlag=str(COMMIT)))
        answer = await known.answer()
        assert b'"nextBeginOffset":"7"' in answer
        assert b"OFFSET_RESET" in answer
        assert given.broker.tables.offsets.committed(GROUP, TOPIC, 0) == 7
        known.close()
        other.close()


async def test_a_reset_that_nobody_takes_leaves_pulls_of_other_groups_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path) as given:
        await filled(given, 200)
        given.broker.store.queues.write_out()
        known, other = await consumers(given)
        given.broker.tables.offsets.reset("Gone", TOPIC, {0: 3})
        ways: list[bool] = []
        go_on = PullProcessor._go_on

        def noted(self: PullProcessor, *asked: Any) -> Any:
            answer = go_on(self, *asked)
            ways.append(answer is not None)
            return answer

        monkeypatch.setattr(PullProcessor, "_go_on", noted)
        for opaque in range(4):
            known.ask(opaque, 11, pull(0, opaque * 32, 0))
            await known.answer()
        known.close()
        other.close()
        assert ways == [False, True, True]  # the first has no shape yet, and the next lets those that follow go on


async def test_what_a_pull_of_a_known_shape_commits_is_taken_also_when_its_messages_cannot_be_read(
    tmp_path: Path,
) -> None:
    async with running_broker(tmp_path) as given:
        await filled(given, 200)
        queues = given.broker.store.queues
        queues.write_out()
        known, other = await consumers(given)
        for offset in (0, 32, 64):
            known.ask(1, 11, pull(0, offset, offset, sysFlag=str(COMMIT)))
            assert b'"code":0' in await known.answer()
        mixed_up, another = queues.by_key[TOPIC, 0].entries, queues.by_key[TOPIC, 1].entries
        mixed_up.overwrite(0, another.read(0, 200 * ENTRY_SIZE))
        mixed_up.trusted.clear()
        known.ask(1, 11, pull(0, 96, 96, sysFlag=str(COMMIT)))
        assert b'"code":1,' in await known.answer()
        assert given.broker.tables.offsets.committed(GROUP, TOPIC, 0) == 96
        assert known.shaped == 3
        known.close()
        other.close()


async def test_messages_that_were_deleted_are_not_given_to_a_pull_of_a_known_shape(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=replace(SMALL, commit_log_file_size=1 << 18)) as given:
        await filled(given, 400)
        given.broker.store.queues.write_out()
        known, read = await consumers(given)
        for offset in (0, 32, 64):
            known.ask(1, 11, pull(0, offset, 0))
            assert b'"code":0' in await known.answer()
        log = given.broker.store.commit_log
        first = Path(log.files.path_of(0)).stat().st_ino
        assert is_mapped(first)
        given.broker.store.flush()
        log.files.drop_file(log.files.starts[0])
        for consumer in (known, read):
            consumer.ask(1, 11, pull(0, 96, 0))
        answer = await known.answer()
        assert answer == await read.answer()
        await until(lambda: not is_mapped(first))  # its room on the disk is free
        known.close()
        read.close()
