"""Batches of one turn are stored and answered together, as if each had come alone and been looked at in full."""

import logging
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.send.plain_batches import PlainBatches
from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.frames import encode
from skyrocket.protocol.requests.admin_broker import CleanExpiredConsumeQueue
from skyrocket.protocol.requests.admin_topics import DeleteTopicInBroker
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessageV2
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.remoting import server
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.store.batch_records import PlainBatch
from skyrocket.store.intake import Intake
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, TOPIC, RunningBroker, new_topic, running_broker
from tests.cluster.broker.test_broker_admin_changes import change
from tests.cluster.broker.test_plain_batches import batch
from tests.cluster.broker.test_postponed_plain_sends import send
from tests.cluster.broker.test_runs_of_sends import chunks, records
from tests.unit.remoting.peers import RawPeer

STORES = {
    "async": SMALL,
    "sync": replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH),
    "sealed": replace(SMALL, append_record_crc=True),
    "pooled": replace(SMALL, transient_pool=True),
}
_PROPERTIES = 4  # of what `records` gives
WAYS = ("together", "alone", "in full")
ODD = ("DELAY\x013\2", "WAIT\1false\2", "INNER_BASE\x013\2", "KEYS\1k\2", "broken")


def body_of(dice: random.Random, number: int) -> bytes:
    """Most are even; some of those differ in length from others."""
    count = dice.choice((1, 2, 16, 16, 16, 40))
    size = dice.choice((128, 128, 128, 7, 0))
    look = dice.choice(
        ("UNIQ_KEY\1%032X\2WAIT\1true\2",) * 4 + ("UNIQ_KEY\1%032X\2TAGS\1A\2KEYS\1a b\2", "TAGS\1%d\2", "")
    )
    texts = [(look % (number * 100 + each) if "%" in look else look).encode() for each in range(count)]
    elements = [BatchElement(each, b"%d" % each * size, text) for each, text in enumerate(texts)]
    elements = [element._replace(body=element.body[:size]) for element in elements]
    body = encode_batch(elements)
    if dice.random() < 0.9:
        return body
    inner = encode_batch([*elements, BatchElement(1, b"", b"INNER_NUM\x013\2")])
    named = encode_batch([BatchElement(1, b"INNER_NUM\x013\2", b"")] * 3)
    return dice.choice((body[:-1], body + body[:9], inner, named, b"", encode_batch([*elements, elements[0]][1:])))


def requests_of(dice: random.Random, count: int) -> list[RemotingCommand]:
    made: list[RemotingCommand] = []
    for opaque in range(count):
        text = f"UNIQ_KEY\x01{opaque:032X}\2WAIT\1true\2" if dice.random() < 0.9 else "WAIT\1true\2"
        text += dice.choice(ODD) if dice.random() < 0.05 else ""
        if dice.random() < 0.05:
            command = send(f"UNIQ_KEY\1{opaque:032X}\2", short=True, queue_id=1, body=b"y")
        else:
            form = SendBatchMessage if dice.random() < 0.95 else SendMessageV2
            command = batch(form, text, body_of(dice, opaque), dice.choice((0, 1, 2, 3)))
        command.opaque = opaque
        command.flag = ONEWAY_FLAG if dice.random() < 0.01 else 0
        made.append(command)
    return made


async def outcome(given: RunningBroker, seed: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """All answers, and all records, without what tells one broker or connection from another."""
    dice = random.Random(seed)
    answers: list[tuple[Any, ...]] = []
    await given.client.call(given.address, new_topic(TOPIC))
    async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
        for chunk in chunks(dice, requests_of(dice, 300)):
            peer.send(b"".join(map(encode, chunk)))
            expected = [command for command in chunk if not command.is_oneway]
            for answer in sorted(await peer.commands(len(expected)), key=lambda one: one.opaque):
                fields = dict(answer.ext_fields or {})
                fields["msgId"] = ",".join(one[16:] for one in fields.get("msgId", "").split(","))
                remark = (answer.remark or "").partition(", skyrocket.")[0].partition(" Producer:")[0]
                answers.append((answer.opaque, answer.code, remark, fields))
    stored = list(records(given))
    for record in stored:
        record[_PROPERTIES].pop("__CRC32#", None)  # also of the producer's port
    return answers, stored


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
async def test_batches_of_one_turn_end_as_each_of_them_alone_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: StoreConfig, seed: int
) -> None:
    together: list[int] = []
    put, keep = Intake.put_plain_batches, PlainBatches.keep

    def counted(self: Intake, batches: list[PlainBatch]) -> Any:
        together.append(len(batches))
        return put(self, batches)

    def kept_alone(self: PlainBatches, peer: Peer, request: Any) -> LaterAnswer | None:
        later = keep(self, peer, request)
        self.store()
        return later

    monkeypatch.setattr(Intake, "put_plain_batches", counted)
    found = []
    for way, stand_in in zip(WAYS, (keep, kept_alone, lambda *_: None), strict=True):
        monkeypatch.setattr(PlainBatches, "keep", stand_in)
        async with running_broker(tmp_path / way, store=store, clock=FakeClock()) as given:
            found.append(await outcome(given, seed))
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            different = [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]]
            assert not different, different[0]
    if not store.append_record_crc:
        assert max(together) > 5  # else this has compared nothing


async def test_a_refusal_of_one_batch_of_a_turn_leaves_the_others(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC, order=True))
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            assert await codes_of_a_row(peer) == [0] * 30
            await change(given, "brokerPermission=4\n")
            before = given.broker.store.commit_log.written_offset
            assert await codes_of_a_row(peer) == [ResponseCode.NO_PERMISSION] * 30
            assert given.broker.store.commit_log.written_offset == before
            await change(given, "brokerPermission=6\n")
            assert await codes_of_a_row(peer) == [0] * 30


def row_of_batches(count: int) -> list[RemotingCommand]:
    body = encode_batch([BatchElement(0, b"x", b"a\1b\2")] * 9)
    return [batch(SendBatchMessage, f"UNIQ_KEY\x01{n:032X}\2WAIT\1true\2", body, 0) for n in range(count)]


async def codes_of_a_row(peer: RawPeer) -> list[int]:
    """What is answered to batches that look like one of which the shape was just learned."""
    first, *row = map(encode, row_of_batches(31))
    await peer.asks(first)
    await peer.asks(first)
    peer.send(b"".join(row))
    return [answer.code for answer in await peer.commands(30)]


async def test_batches_for_a_topic_that_is_deleted_in_their_turn_do_not_make_its_queue_anew(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            await codes_of_a_row(peer)
            peer.send(b"".join(map(encode, [*row_of_batches(10), command_of(DeleteTopicInBroker(topic=TOPIC))])))
            assert {answer.code for answer in await peer.commands(11)} <= {0, ResponseCode.TOPIC_NOT_EXIST}
        given.broker.store.dispatch()
        assert not [queue for queue in given.broker.store.queues if queue.topic == TOPIC]


async def test_batches_of_a_turn_in_which_topics_change_are_stored_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        topics, store = given.broker.parts.tables.topics, PlainBatches.store

        def store_after_a_change(self: PlainBatches) -> None:
            topics.ensure(f"Other{topics.generation}", 1)
            store(self)

        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            assert await codes_of_a_row(peer) == [0] * 30
            monkeypatch.setattr(PlainBatches, "store", store_after_a_change)
            peer.send(b"".join(map(encode, row_of_batches(5))))
            places = [(answer.ext_fields or {})["queueOffset"] for answer in await peer.commands(5)]
        assert places == [str(32 * 9 + 9 * number) for number in range(5)]


@pytest.mark.parametrize("kind", ["batches", "messages"])
async def test_messages_for_a_queue_that_is_cleaned_away_in_their_turn_are_found(tmp_path: Path, kind: str) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        row = row_of_batches(3)
        if kind == "messages":
            row = [send(f"UNIQ_KEY\x01{number:032X}\2", short=True, queue_id=0) for number in range(3)]
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            for _ in range(2):  # so that they are known
                await peer.asks(encode(row[0]))
            store = given.broker.store
            store.dispatch()
            store.queues.by_key[TOPIC, 0].max_physical_offset = 0  # as if all its records had left the log
            peer.send(b"".join(map(encode, [*row, command_of(CleanExpiredConsumeQueue())])))
            answers = await peer.commands(4)
        assert [answer.code for answer in answers] == [0] * 4
        store.dispatch()
        queue = store.queues.by_key[TOPIC, 0]
        assert queue.max_offset == queue.next_offset == 3 * (9 if kind == "batches" else 1)


@pytest.mark.parametrize("kind", ["batches", "messages", "messages in a row"])
async def test_one_whose_sender_was_gone_before_it_was_accepted_does_not_disturb_the_others_of_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """A connection that was reset has no address any more, but what it sent can still be read."""
    row = row_of_batches(3)
    times = 4 if kind == "messages in a row" else 1
    if kind != "batches":
        row = [send(f"UNIQ_KEY\x01{number:032X}\2", short=True, queue_id=0) for number in range(3)]
    if kind == "messages":
        row[0] = send(f"UNIQ_KEY\x01{0:032X}\2KEYS\1other\2", short=True, queue_id=0)  # not one of a run
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        address = Address("127.0.0.1", given.port)
        async with RawPeer.connected(address) as one, RawPeer.connected(address) as two:
            for _ in range(2):  # so that they are known
                await one.asks(encode(row[1]))
                await two.asks(encode(row[2]))
            monkeypatch.setattr(server, "_peer_address", lambda _: Address("", 0))
            async with RawPeer.connected(address) as gone:
                await gone.asks(encode(command_of(GetMaxOffset(topic=TOPIC, queue_id=0))))
                gone.send(encode(row[0]) * times)
                one.send(encode(row[1]) * times)
                two.send(encode(row[2]) * times)
                codes = [[each.code for each in await peer.commands(times)] for peer in (gone, one, two)]
        assert codes == [[ResponseCode.SYSTEM_ERROR] * times, [0] * times, [0] * times]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_batch_whose_records_fit_into_no_file_is_refused_and_the_others_of_its_turn_are_not(
    tmp_path: Path,
) -> None:
    tiny = encode_batch([BatchElement(0, b"x", b"a\1b\2")] * 20_000)
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            assert await codes_of_a_row(peer) == [0] * 30
            first, second, third = row_of_batches(3)
            second.body = tiny
            peer.send(b"".join(map(encode, [first, second, third])))
            assert [answer.code for answer in await peer.commands(3)] == [0, ResponseCode.MESSAGE_ILLEGAL, 0]


async def test_a_row_that_cannot_be_stored_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            assert await codes_of_a_row(peer) == [0] * 30

            def fails(*_: object) -> None:
                raise ValueError("a bug")

            monkeypatch.setattr(Intake, "put_plain_batches", fails)
            peer.send(b"".join(map(encode, row_of_batches(5))))
            assert [answer.code for answer in await peer.commands(5)] == [ResponseCode.SYSTEM_ERROR] * 5
    assert "batches could not be stored count=" in caplog.text
