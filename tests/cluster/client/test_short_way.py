"""Plain sends go a shorter way than others: the same request, the same judgement of answers, the same retries."""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import Admin, Message, Producer, ProducerSettings, SendFailed, SendHook, SendTimeout
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.connection import Connection
from skyrocket.remoting.peer import Peer
from tests.cluster.client.inside import instance_of, sends_in_flight
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until

TOPIC = "Orders"
HOOKS = pytest.mark.parametrize("hooks", [(), (SendHook(),)], ids=["short", "long"])
BROKER = object()  # what a judge says when the broker shall answer
Judge = Callable[[RemotingCommand, int], Any]


@contextmanager
def answered_by(given: Cluster, judge: Judge) -> Iterator[list[RemotingCommand]]:
    """Sends are first shown to `judge`, with their number; BROKER lets the broker answer. Gives what was seen."""
    route = given.route(RequestCode.SEND_MESSAGE_V2)
    own = route.handler
    seen: list[RemotingCommand] = []

    def handler(peer: Peer, request: RemotingCommand) -> Outcome:
        seen.append(request)
        answer = judge(request, len(seen))
        return own(peer, request) if answer is BROKER else answer

    route.handler = handler
    try:
        yield seen
    finally:
        route.handler = own


def connection_of(producer: Producer, given: Cluster) -> Connection | None:
    return instance_of(producer).remoting.connection(str(given.brokers["broker-a"].identity.address))


def only_first(code: ResponseCode) -> Judge:
    return lambda request, number: request.answer(code, "go") if number == 1 else BROKER


async def test_both_ways_send_the_same_request(tmp_path: Path) -> None:
    message = Message(TOPIC, b"paid", tags="TagA", keys=["k1", "k2"], properties={"größe": 'a"b\\'})
    requests: list[dict[str, str]] = []
    async with cluster(tmp_path) as given:
        for hooks in ((), (SendHook(),)):
            async with Producer("Shop", given.names, hooks=hooks) as producer:
                await producer.send(message)
                with answered_by(given, lambda *_: BROKER) as seen:
                    for _ in range(4):
                        await producer.send(message)
                assert {each.body for each in seen} == {b"paid"}
                requests += [each.ext_fields or {} for each in seen]
    short, long = requests[:4], requests[4:]
    assert [list(each) for each in short] == [list(each) for each in long]  # the order too
    varying = re.compile(r"UNIQ_KEY\x01[0-9A-F]{32}\x02")
    for fields in requests:
        assert 1 << 40 < int(fields.pop("g")) < 1 << 42
        fields["i"], count = varying.subn("", fields["i"])
        assert count == 1
    by_queue = sorted(short, key=lambda fields: fields["e"])
    assert by_queue == sorted(long, key=lambda fields: fields["e"])
    assert [fields["e"] for fields in by_queue] == ["0", "1", "2", "3"]


@HOOKS
async def test_a_refusal_that_may_pass_is_tried_again_with_the_same_key(
    tmp_path: Path, hooks: tuple[SendHook, ...]
) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names, hooks=hooks) as producer:
        await producer.send(Message(TOPIC, b"x"))
        with answered_by(given, only_first(ResponseCode.SYSTEM_BUSY)) as seen:
            receipt = await producer.send(Message(TOPIC, b"x"))
        assert receipt.attempts == 2
        assert [receipt.message_id in (each.ext_fields or {})["i"] for each in seen] == [True, True]
        with (
            answered_by(given, lambda request, _: request.answer(ResponseCode.SYSTEM_BUSY, "[REJECTREQUEST]")),
            pytest.raises(SendFailed, match=r"3 attempts: 1\) broker-a after .* code 2 SYSTEM_BUSY") as caught,
        ):
            await producer.send(Message(TOPIC, b"x"))
        assert [each.broker_name for each in caught.value.attempts] == ["broker-a"] * 3
        assert sends_in_flight(producer).count == 0


@HOOKS
async def test_a_broker_that_says_go_away_gets_the_message_over_a_new_connection(
    tmp_path: Path, hooks: tuple[SendHook, ...]
) -> None:
    settings = ProducerSettings(retries=0)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings, hooks=hooks) as producer:
        await producer.send(Message(TOPIC, b"x"))
        first = connection_of(producer, given)

        def goes_away(request: RemotingCommand, _: int) -> object:
            return request.answer(ResponseCode.GO_AWAY) if connection_of(producer, given) is first else BROKER

        with answered_by(given, goes_away):
            assert (await producer.send(Message(TOPIC, b"x"))).is_durable
        assert connection_of(producer, given) is not first


@HOOKS
async def test_without_an_answer_the_time_counts_and_the_connection_is_left(
    tmp_path: Path, hooks: tuple[SendHook, ...]
) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names, hooks=hooks) as producer:
        await producer.send(Message(TOPIC, b"x"))
        first = connection_of(producer, given)
        with (
            answered_by(given, lambda *_: None),
            pytest.raises(SendTimeout, match="request 310 had no answer within 300 ms"),
        ):
            await producer.send(Message(TOPIC, b"x"), timeout=0.3)
        await until(lambda: connection_of(producer, given) is not first)
        assert (await producer.send(Message(TOPIC, b"x"))).is_durable


@HOOKS
async def test_a_cancelled_send_leaves_room_for_the_next(tmp_path: Path, hooks: tuple[SendHook, ...]) -> None:
    settings = ProducerSettings(max_in_flight=1)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings, hooks=hooks) as producer:
        await producer.send(Message(TOPIC, b"x"))
        with answered_by(given, lambda *_: None) as seen:
            sending = asyncio.create_task(producer.send(Message(TOPIC, b"x")))
            await until(lambda: bool(seen))
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            assert sending.cancelled()
        assert (await producer.send(Message(TOPIC, b"x"))).is_durable


@pytest.mark.requirement("C083")
@HOOKS
async def test_a_oneway_send_is_never_repeated(tmp_path: Path, hooks: tuple[SendHook, ...]) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names, hooks=hooks) as producer:
        await producer.send(Message(TOPIC, b"x"))
        with answered_by(given, lambda request, _: request.answer(ResponseCode.SYSTEM_BUSY, "full")) as seen:
            await producer.send_oneway(Message(TOPIC, b"told"))
            await until(lambda: bool(seen))
            await asyncio.sleep(0.2)
            assert [(each.body, each.is_oneway) for each in seen] == [(b"told", True)]


async def test_sends_that_meet_are_batches_with_a_receipt_for_each_message(tmp_path: Path) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send(Message(TOPIC, b"first"))
        with answered_by(given, lambda *_: BROKER) as seen:  # sees single sends alone
            receipts = await asyncio.gather(
                *(producer.send(Message(TOPIC, b"%d" % i, keys=f"k{i}")) for i in range(200))
            )
        assert len(seen) < 100
        assert len({each.message_id for each in receipts}) == len({each.offset_message_id for each in receipts}) == 200
        async with Admin(given.names) as admin:
            for number in (0, 57, 199):
                receipt = receipts[number]
                by_id = await admin.message(TOPIC, receipt.offset_message_id)
                assert (by_id.body, by_id.message_id) == (b"%d" % number, receipt.message_id)
                assert (by_id.queue.queue_id, by_id.queue_offset) == (receipt.queue.queue_id, receipt.queue_offset)


async def test_sends_are_requests_of_their_own_when_that_is_wanted(tmp_path: Path) -> None:
    settings = ProducerSettings(gather_sends=False)
    async with cluster(tmp_path) as given, Producer("Shop", given.names, settings) as producer:
        await producer.send(Message(TOPIC, b"first"))
        with answered_by(given, lambda *_: BROKER) as seen:
            await asyncio.gather(*(producer.send(Message(TOPIC, b"x")) for _ in range(50)))
        assert len(seen) == 50


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_ERROR, ResponseCode.MESSAGE_ILLEGAL])
async def test_a_broker_that_refuses_batches_gets_single_messages(tmp_path: Path, code: ResponseCode) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send(Message(TOPIC, b"first"))
        route = given.route(RequestCode.SEND_BATCH_MESSAGE)
        own = route.handler
        route.handler = lambda peer, request: request.answer(code, "no batches here")
        try:
            receipts = await asyncio.gather(*(producer.send(Message(TOPIC, b"x")) for _ in range(20)))
        finally:
            route.handler = own
        # A refusal for good may be the fault of one message: each is judged anew, and that is no further attempt.
        assert {each.attempts for each in receipts} == ({1} if code is ResponseCode.MESSAGE_ILLEGAL else {2})
        assert len({each.offset_message_id for each in receipts}) == 20
