"""Sends that meet travel together: whatever comes, is answered, fails or is cancelled, each has its own outcome."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.client.core.message import Message
from skyrocket.client.core.send_receipt import SendReceipt, SendStatus
from skyrocket.client.producer.gathering import MOST_UNDER_WAY, Gathering, may_travel_together
from skyrocket.client.producer.in_flight import InFlight
from skyrocket.client.sending.message_encoding import EncodedMessage, EncodingRules
from skyrocket.client.sending.retrying_sender import RetryingSender
from skyrocket.client.sending.topic_publish_info import TopicPublishInfo
from skyrocket.format.batch import decode_batch
from skyrocket.format.properties import decode_properties
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError, error_of
from skyrocket.remoting.errors import ConnectionLost
from skyrocket.testing.clock import FakeClock

TIMEOUT, MAX_BYTES = 3.0, 2000


@dataclass
class Asked:
    """A request on its way."""

    queue: MessageQueue
    bodies: list[bytes]
    keys: list[str]
    seconds: float
    size: int
    answer: "asyncio.Future[RemotingCommand]"


@dataclass
class SenderDouble:
    """Requests are kept until a test answers them; sends that go on alone are counted."""

    topics: dict[str, TopicPublishInfo]
    asked: list[Asked] = field(default_factory=list)
    alone: list[tuple[bytes, float, Exception | None]] = field(default_factory=list)
    is_connected: bool = True
    offset: int = 0

    def ask_plainly(
        self, info: TopicPublishInfo, index: int, body: bytes, properties: str, _: int, seconds: float
    ) -> "asyncio.Future[RemotingCommand] | None":
        key = decode_properties(properties.encode())["UNIQ_KEY"]
        return self._ask(info.queues[index], [body], [key], seconds, len(body))

    def ask_together(
        self, info: TopicPublishInfo, index: int, batch: EncodedMessage, _: int, seconds: float
    ) -> "asyncio.Future[RemotingCommand] | None":
        elements = decode_batch(batch.body)
        keys = [decode_properties(each.properties)["UNIQ_KEY"] for each in elements]
        assert keys == list(batch.unique_keys)
        return self._ask(info.queues[index], [each.body for each in elements], keys, seconds, len(batch.body))

    def _ask(
        self, queue: MessageQueue, bodies: list[bytes], keys: list[str], seconds: float, size: int
    ) -> "asyncio.Future[RemotingCommand] | None":
        if not self.is_connected:
            return None
        answer: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        self.asked.append(Asked(queue, bodies, keys, seconds, size, answer))
        return answer

    def receipt(self, answer: RemotingCommand, key: str, queue: MessageQueue, number: int) -> SendReceipt:
        fields = answer.ext_fields or {}
        return SendReceipt(SendStatus.SEND_OK, key, fields["msgId"], queue, int(fields["queueOffset"]))

    async def go_on(
        self, out: EncodedMessage, timeout: float, queue: MessageQueue, seconds: float, error: Exception
    ) -> SendReceipt:
        self.alone.append((out.body, timeout - seconds, error))
        return SendReceipt(SendStatus.SEND_OK, out.unique_key, "alone", queue, -1, attempts=2)

    async def send(self, out: EncodedMessage, timeout: float) -> SendReceipt:
        self.alone.append((out.body, timeout, None))
        return SendReceipt(SendStatus.SEND_OK, out.unique_key, "alone", MessageQueue("", "", 0), -1)

    def is_final(self, error: RequestError) -> bool:
        return int(error.code) == ResponseCode.MESSAGE_ILLEGAL

    def confirm(self, request: Asked) -> None:
        """As a broker: an id for each message, and the offset of the first."""
        ids = ",".join(f"id-{body.decode()}" for body in request.bodies)
        fields = {"msgId": ids, "queueOffset": str(self.offset), "queueId": "0"}
        self.offset += len(request.bodies)
        request.answer.set_result(RemotingCommand(0, ext_fields=fields))

    @property
    def under_way(self) -> list[Asked]:
        return [each for each in self.asked if not each.answer.done()]


def lanes(*brokers: str) -> tuple[SenderDouble, Gathering, FakeClock]:
    queues = [MessageQueue("Orders", broker, number) for broker in brokers for number in range(4)]
    info = TopicPublishInfo("Shop", "Orders", queues, template_topic="T", template_queues=4, unit_mode=False)
    double, clock = SenderDouble({"Orders": info}), FakeClock()
    sender = cast(RetryingSender, double)
    return double, Gathering(sender, InFlight(1024, 1 << 20), clock, max_bytes=MAX_BYTES, timeout=TIMEOUT), clock


async def turns(count: int = 3) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Senders:
    """Tasks that send, by the number in their bodies."""

    def __init__(self, gathering: Gathering) -> None:
        self._gathering = gathering
        self.tasks: list[asyncio.Task[SendReceipt]] = []

    def send(self, size: int = 0, **fields: Any) -> None:
        body = b"%d" % len(self.tasks)
        message = Message("Orders", body.rjust(size, b"0"), **fields)
        self.tasks.append(asyncio.create_task(self._gathering.send(message, "Orders")))


async def test_a_send_that_is_alone_leaves_at_once_as_a_plain_request() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    senders.send()
    await turns()
    (request,) = double.asked
    assert (request.bodies, request.seconds) == ([b"0"], TIMEOUT)
    double.confirm(request)
    receipt = await senders.tasks[0]
    assert (receipt.message_id, receipt.offset_message_id, receipt.queue_offset) == (request.keys[0], "id-0", 0)


async def test_sends_of_one_turn_are_one_request_with_a_receipt_each() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    for _ in range(5):
        senders.send()
    await turns()
    (request,) = double.asked
    assert request.bodies == [b"%d" % i for i in range(5)]
    double.confirm(request)
    receipts = await asyncio.gather(*senders.tasks)
    assert [each.message_id for each in receipts] == request.keys
    assert [each.offset_message_id for each in receipts] == [f"id-{i}" for i in range(5)]
    assert [each.queue_offset for each in receipts] == list(range(5))


async def test_what_comes_while_requests_are_under_way_leaves_with_what_their_senders_send_next() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    for _ in range(MOST_UNDER_WAY):
        senders.send()
        await turns()
    senders.send()
    senders.send()
    await turns()
    assert [each.bodies for each in double.asked] == [[b"0"], [b"1"]]
    double.confirm(double.asked[0])
    senders.tasks[0].add_done_callback(lambda _: senders.send())  # sends again as soon as it has its receipt
    await turns(4)
    assert double.asked[2].bodies[:2] == [b"2", b"3"]
    for request in double.under_way:
        double.confirm(request)
    await turns(4)
    for request in double.under_way:
        double.confirm(request)
    await asyncio.gather(*senders.tasks)


async def test_a_broker_that_hangs_holds_up_only_its_own_sends() -> None:
    double, gathering, _ = lanes("hangs", "works")
    senders = Senders(gathering)
    done = 0
    for _ in range(20):
        for _ in range(4):
            senders.send()
        await turns(4)
        for request in double.under_way:
            if request.queue.broker_name == "works":
                double.confirm(request)
        await turns(4)
        done = sum(task.done() for task in senders.tasks)
    assert done == len(senders.tasks) // 2
    for _ in range(3):
        for request in double.under_way:
            double.confirm(request)
        await turns(4)
    await asyncio.gather(*senders.tasks)


async def test_a_request_that_fails_sends_each_on_alone_with_its_own_time() -> None:
    double, gathering, clock = lanes("a")
    senders = Senders(gathering)
    for _ in range(MOST_UNDER_WAY):
        senders.send()
        await turns()
    senders.send()
    await turns()
    clock.advance(seconds=1)
    senders.send()
    await turns()
    double.confirm(double.asked[0])
    await turns()
    assert double.asked[2].bodies == [b"2", b"3"]
    assert double.asked[2].seconds == pytest.approx(2.0)  # of the older one
    error = ConnectionLost("broker", "gone")
    double.asked[2].answer.set_exception(error)
    await turns(4)
    assert [(body, told) for body, _, told in double.alone] == [(b"2", error), (b"3", error)]
    assert [left for _, left, _ in double.alone] == pytest.approx([2.0, 3.0])
    assert [(await senders.tasks[number]).attempts for number in (2, 3)] == [2, 2]
    double.confirm(double.asked[1])
    await asyncio.gather(*senders.tasks)


async def test_sends_of_very_different_age_do_not_share_a_time_out() -> None:
    double, gathering, clock = lanes("a")
    senders = Senders(gathering)
    for _ in range(MOST_UNDER_WAY + 1):
        senders.send()
        await turns()
    clock.advance(seconds=2)
    senders.send()
    await turns()
    for request in list(double.under_way):
        double.confirm(request)
    await turns()
    assert [each.bodies for each in double.asked[2:]] == [[b"2"], [b"3"]]
    assert [each.seconds for each in double.asked[2:]] == pytest.approx([1.0, 3.0])
    for request in list(double.under_way):
        double.confirm(request)
    await asyncio.gather(*senders.tasks)


@pytest.mark.parametrize(
    "fields",
    [
        {"delay": 5.0},
        {"delay_level": 3},
        {"deliver_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"priority": 1},
        {"flag": 7},
        {"sharding_key": "o-1001"},
        {"properties": {"INNER_MULTI_DISPATCH": "x"}},
        {"topic": "%RETRY%Shop"},
        {"body": b"x" * 4096},
        {"body": b""},
        {"body": bytearray(b"x")},
    ],
    ids=str,
)
def test_what_cannot_be_part_of_a_batch_does_not_travel_together(fields: dict[str, Any]) -> None:
    assert may_travel_together(Message("Orders", b"x", tags="paid", properties={"a": "b"}), EncodingRules())
    assert not may_travel_together(Message(**{"topic": "Orders", "body": b"x", **fields}), EncodingRules())
    assert not may_travel_together(Message("Orders", b"x"), EncodingRules(namespace="east"))


async def test_without_a_connection_or_a_route_each_goes_alone() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    double.is_connected = False
    senders.send()
    senders.send()
    await turns(4)
    double.topics.clear()
    senders.send()
    await asyncio.gather(*senders.tasks)
    assert [body for body, *_ in double.alone] == [b"0", b"1", b"2"]


async def test_messages_that_wait_for_the_disk_and_those_that_do_not_travel_apart() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    for number in range(6):
        senders.send(wait_store_ok=number % 2 == 0)
    await turns()
    assert [each.bodies for each in double.asked] == [[b"0", b"2", b"4"], [b"1", b"3", b"5"]]
    for request in double.asked:
        double.confirm(request)
    await asyncio.gather(*senders.tasks)


async def test_a_refusal_that_may_be_the_fault_of_one_is_judged_for_each() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    for _ in range(3):
        senders.send()
    await turns()
    double.asked[0].answer.set_exception(error_of(ResponseCode.MESSAGE_ILLEGAL, "one of them", None))
    await asyncio.gather(*senders.tasks)
    assert double.alone == [(b"%d" % i, TIMEOUT, None) for i in range(3)]


async def test_an_answer_that_makes_no_sense_is_told_to_all_of_its_senders() -> None:
    double, gathering, _ = lanes("a")
    senders = Senders(gathering)
    senders.send()
    senders.send()
    await turns()
    double.asked[0].answer.set_result(RemotingCommand(0, ext_fields={}))
    for task in senders.tasks:
        with pytest.raises(KeyError, match="msgId"):
            await task
    senders.send()
    await turns()
    double.confirm(double.asked[1])
    assert (await senders.tasks[2]).offset_message_id == "id-2"


steps = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 900)),
        st.tuples(st.sampled_from(["turn", "confirm", "fail", "cancel", "wait"]), st.integers(0, 50)),
    ),
    max_size=60,
)


@given(steps, st.sampled_from([("a",), ("a", "b")]))
def test_each_send_has_its_own_outcome_and_requests_keep_the_order(
    chosen: list[tuple[str, int]], brokers: tuple[str, ...]
) -> None:
    asyncio.run(_walk(chosen, brokers))


async def _walk(chosen: list[tuple[str, int]], brokers: tuple[str, ...]) -> None:
    double, gathering, clock = lanes(*brokers)
    senders = Senders(gathering)
    for step, number in chosen:
        if step == "send":
            senders.send(size=number)
        elif step == "turn":
            await turns(1)
        elif step == "wait":
            clock.advance(seconds=number / 40)
        elif step == "cancel" and senders.tasks:
            senders.tasks[number % len(senders.tasks)].cancel()
        elif step in ("confirm", "fail") and double.under_way:
            request = double.under_way[number % len(double.under_way)]
            if step == "confirm":
                double.confirm(request)
            else:
                request.answer.set_exception(ConnectionLost("broker", "lost"))
        for broker in brokers:
            assert sum(each.queue.broker_name == broker for each in double.under_way) <= MOST_UNDER_WAY
    while not all(task.done() for task in senders.tasks):
        for request in double.under_way:
            double.confirm(request)
        await turns(2)
    for broker in brokers:
        sent = [int(body) for each in double.asked if each.queue.broker_name == broker for body in each.bodies]
        assert sent == sorted(set(sent))  # nothing twice, nothing out of order
    for request in double.asked:
        assert request.size <= MAX_BYTES or len(request.bodies) == 1
        assert len(request.bodies) > 0
    of_key = {key: body for each in double.asked for key, body in zip(each.keys, each.bodies, strict=True)}
    for number, task in enumerate(senders.tasks):
        if task.cancelled():
            continue
        receipt = task.result()
        if receipt.offset_message_id != "alone":
            body = of_key[receipt.message_id]
            assert int(body) == number
            assert receipt.offset_message_id == f"id-{body.decode()}"
