"""Sends that come in a row are taken together: stored and answered as if each had come alone."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.send.plain_send import PlainSends
from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.format.record import decode_record
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import ONEWAY_FLAG, RemotingCommand
from skyrocket.protocol.frames import encode
from skyrocket.protocol.requests.admin_topics import DeleteTopicInBroker
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.answers import LaterRun
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import SMALL, TOPIC, RunningBroker, new_topic, running_broker
from tests.cluster.broker.test_broker_admin_changes import change
from tests.cluster.broker.test_postponed_plain_sends import send
from tests.unit.remoting.peers import RawPeer
from tests.waiting import until

STORES = {"async": SMALL, "sync": replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)}
ODD = (
    "DELAY\x013\2",
    "WAIT\1false\2",
    "KEYS\1k\2",
    "TRAN_MSG\1true\2",
    "CLUSTER\1far\2",
    "UNIQ_KEY\1short\2",
    "broken",
)


def requests_of(dice: random.Random, count: int) -> list[RemotingCommand]:
    """Most are plain; some are odd in one of many ways."""
    made: list[RemotingCommand] = []
    for opaque in range(count):
        text = f"UNIQ_KEY\x01{opaque:032X}\2WAIT\1true\2"
        odd = dice.random() < 0.05
        body = (
            dice.choice((b"", b"x" * 5000, b"\0" * 40_000, b"x" * (5 << 20))) if odd and dice.random() < 0.2 else b"y"
        )
        text += dice.choice(ODD) if odd and body == b"y" else ""
        command = send(
            text, short=dice.random() < 0.99, queue_id=dice.choice((0, 1, 2, 3, 3, 9 if odd else 3)), body=body
        )
        command.opaque = opaque
        command.flag = ONEWAY_FLAG if dice.random() < 0.01 else 0
        made.append(command)
    return made


def chunks(dice: random.Random, requests: Sequence[RemotingCommand]) -> list[Sequence[RemotingCommand]]:
    cut: list[Sequence[RemotingCommand]] = []
    while requests:
        size = dice.choice((1, 2, 5, 30, 90))
        cut.append(requests[:size])
        requests = requests[size:]
    return cut


async def outcome(given: RunningBroker, seed: int) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """All answers, and all records, without what tells one broker or connection from another."""
    dice = random.Random(seed)
    answers: list[tuple[Any, ...]] = []
    await given.client.call(given.address, new_topic(TOPIC))
    async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
        for chunk in chunks(dice, requests_of(dice, 400)):
            peer.send(b"".join(map(encode, chunk)))
            expected = [command for command in chunk if not command.is_oneway]
            for answer in sorted(await peer.commands(len(expected)), key=lambda one: one.opaque):
                fields = dict(answer.ext_fields or {})
                fields["msgId"] = fields.get("msgId", "")[-16:]
                fields.pop("RECALL_HANDLE", None)  # names the broker
                answers.append((answer.opaque, answer.code, (answer.remark or "").partition(" Producer:")[0], fields))
    return answers, list(records(given))


def records(given: RunningBroker) -> Iterator[tuple[Any, ...]]:
    store, offset = given.broker.store, 0
    assert store.flush()  # what is only in the pool cannot be read yet
    assert store.commit_log.readable_offset == store.commit_log.written_offset
    while offset < store.commit_log.written_offset:
        raw = store.by_physical_offset(offset)
        if raw is None:  # the rest of a file
            offset += -offset % SMALL.commit_log_file_size
            continue
        one = decode_record(raw, check_crc=True)
        yield one.topic, one.queue_id, one.queue_offset, one.body, one.properties, one.flag, one.sys_flag
        offset += len(raw)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
async def test_a_row_of_sends_ends_as_each_of_them_alone_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: StoreConfig, seed: int
) -> None:
    together: list[int] = []
    handle_run = Router.handle_run

    def counted(self: Router, peer: Peer, requests: Sequence[RemotingCommand]) -> LaterRun | None:
        run = handle_run(self, peer, requests)
        together.append(len(run.requests) if run is not None else 0)
        return run

    monkeypatch.setattr(Router, "handle_run", counted)
    async with running_broker(tmp_path / "runs", store=store, clock=FakeClock()) as given:
        in_runs = await outcome(given, seed)
    monkeypatch.setattr(Router, "handle_run", lambda *_: None)
    async with running_broker(tmp_path / "each", store=store, clock=FakeClock()) as given:
        alone = await outcome(given, seed)
    for mine, theirs in zip(in_runs, alone, strict=True):
        different = [pair for pair in zip(mine, theirs, strict=True) if pair[0] != pair[1]]
        assert not different, different[0]
    assert sum(together) > 50  # else this has compared nothing


async def test_a_connection_that_is_lost_with_a_row_in_hand_leaves_nothing_behind(tmp_path: Path) -> None:
    slow = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with running_broker(tmp_path, store=slow, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        requests = [send(f"UNIQ_KEY\x01{n:032X}\2WAIT\1true\2", short=True) for n in range(60)]
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            await peer.asks(encode(requests[0]))
            peer.send(b"".join(map(encode, requests[1:])))
            await peer.writer.drain()
        router = given.broker.parts.router
        await until(lambda: len(list(records(given))) == len(requests))
        await until(lambda: not any(route.request_class.in_hand for route in router.routes()))


async def test_a_row_is_refused_where_each_of_it_would_be(tmp_path: Path) -> None:
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


async def codes_of_a_row(peer: RawPeer) -> list[int]:
    """What is answered to messages that look like one of which the shape was just learned."""
    first, *row = [encode(send(f"UNIQ_KEY\x01{n:032X}\2WAIT\1true\2", short=True)) for n in range(32)]
    await peer.asks(first)
    await peer.asks(first)
    peer.send(b"".join(row[:30]))
    return [answer.code for answer in await peer.commands(30)]


async def test_texts_stay_known_however_often_topics_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    look = PlainSends._look_at_text

    def counted(self: PlainSends, *given: Any) -> Any:
        looked_at.append(given[2])
        return look(self, *given)

    monkeypatch.setattr(PlainSends, "_look_at_text", counted)
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            for number in range(100):
                given.broker.parts.tables.topics.ensure(f"Other{number}", 1)
                assert await codes_of_a_row(peer) == [0] * 30
                assert len(looked_at) <= 30 + 2 * number, number  # the first row is read before its text is known


async def test_a_row_for_a_topic_that_is_deleted_in_its_turn_does_not_make_its_queue_anew(tmp_path: Path) -> None:
    async with running_broker(tmp_path, store=SMALL, clock=FakeClock()) as given:
        await given.client.call(given.address, new_topic(TOPIC))
        async with RawPeer.connected(Address("127.0.0.1", given.port)) as peer:
            await codes_of_a_row(peer)
            row = [send(f"UNIQ_KEY\x01{n:032X}\2WAIT\1true\2", short=True) for n in range(10)]
            peer.send(b"".join(map(encode, [*row, command_of(DeleteTopicInBroker(topic=TOPIC))])))
            assert {answer.code for answer in await peer.commands(11)} <= {0, ResponseCode.TOPIC_NOT_EXIST}
        given.broker.store.dispatch()
        assert not [queue for queue in given.broker.store.queues if queue.topic == TOPIC]
