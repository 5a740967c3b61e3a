"""A message that asks for a reply, and the reply that goes straight to who waits for it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import BrokerConfig, FlushDiskType
from skyrocket.format.properties import decode_properties
from skyrocket.format.record import decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.protocol.bodies.heartbeat import Heartbeat, ProducerData
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import InvalidParameter, NoPermission
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.messaging import SendMessage, SendReplyMessage, SendReplyMessageV2
from skyrocket.protocol.requests.server_to_client import PushReplyMessageToClient
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from tests.cluster.broker.broker_fixture import SMALL, RunningBroker, message, running_broker
from tests.golden_wire import capture
from tests.waiting import until

REPLY_TOPIC = "DefaultCluster_REPLY_TOPIC"
CLIENT_ID = "192.0.2.7@1234#5"


class Requester:
    """A client that waits for replies; it takes them with the given code."""

    def __init__(self, given: RunningBroker, code: int = 0) -> None:
        self.replies: list[RemotingCommand] = []
        self._given = given
        self._code = code
        router = Router()
        router.register(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, self._take)
        self.client = RemotingClient(router=router)

    def _take(self, _: Peer, request: RemotingCommand) -> Outcome:
        self.replies.append(request)
        return request.answer(self._code, None if self._code == 0 else "no such correlation")

    async def beat(self, client_id: str = CLIENT_ID) -> None:
        body = Heartbeat(client_id, (ProducerData("Requesters"),), ()).encode()
        await self.client.call(self._given.address, HeartBeat(), body)


@contextlib.asynccontextmanager
async def requester(given: RunningBroker, code: int = 0) -> AsyncIterator[Requester]:
    waiting = Requester(given, code)
    async with waiting.client:
        await waiting.beat()
        yield waiting


def reply_request(kind: type[SendMessage] = SendReplyMessageV2, **changes: Any) -> SendMessage:
    plain = message(REPLY_TOPIC)
    values = {field.attribute: getattr(plain, field.attribute) for field in SendMessage.wire_fields}
    values["properties"] = (
        f"MSG_TYPE\x01reply\x02REPLY_TO_CLIENT\x01{CLIENT_ID}\x02UNIQ_KEY\x01U9\x02TTL\x015000\x02CORRELATION_ID\x01c-1\x02"
    )
    return kind(**(values | changes))


async def reply(given: RunningBroker, body: bytes = b"the answer", **changes: Any) -> RemotingCommand:
    return await given.client.invoke(given.address, command_of(reply_request(**changes), body))


def kept(given: RunningBroker) -> list[StoredMessage]:
    return list(decode_records(given.broker.store.get(REPLY_TOPIC, 0, 0, 32).join()))


@pytest.mark.parametrize("kind", [SendReplyMessage, SendReplyMessageV2])
async def test_a_reply_is_pushed_to_who_waits_for_it_and_kept(tmp_path: Path, kind: type[SendMessage]) -> None:
    async with running_broker(tmp_path) as given, requester(given) as waiting:
        answer = await reply(given, kind=kind, flag=6)
        (pushed,) = waiting.replies
        assert pushed.body == b"the answer"
        header = PushReplyMessageToClient.from_fields(pushed.ext_fields)
        assert (header.topic, header.producer_group, header.queue_id, header.flag) == (
            REPLY_TOPIC,
            "Producers",
            0,
            6,
        )
        assert header.store_host == given.address
        assert header.born_host is not None
        assert header.born_host.startswith("127.0.0.1:")
        properties = decode_properties((header.properties or "").encode())
        assert int(properties.pop("PUSH_REPLY_TIME")) >= header.store_timestamp > 1_700_000_000_000
        expected = {
            "MSG_TYPE": "reply",
            "REPLY_TO_CLIENT": CLIENT_ID,
            "UNIQ_KEY": "U9",
            "TTL": "5000",
            "CORRELATION_ID": "c-1",
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
        }
        assert properties == expected
        await until(lambda: len(kept(given)) == 1)
        (record,) = kept(given)
        assert (record.body, record.flag, record.properties) == (b"the answer", 6, expected)
        assert (answer.code, answer.remark) == (ResponseCode.SUCCESS, None)
        assert answer.ext_fields == {
            "queueId": "0",
            "msgId": f"{_host(given)}{record.physical_offset:016X}",
            "TRACE_ON": "true",
            "MSG_REGION": "DefaultRegion",
            "queueOffset": "0",
        }


def _host(given: RunningBroker) -> str:
    return f"7F000001{given.port:08X}"


async def test_a_reply_is_kept_even_when_nobody_waits_for_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        answer = await reply(given)
        assert (answer.code, answer.remark) == (
            1,
            f"push reply message fail, channel of <{CLIENT_ID}> not found.",
        )
        assert answer.ext_fields is not None
        assert (answer.ext_fields["queueId"], answer.ext_fields["queueOffset"]) == ("0", "0")
        answer = await reply(given, properties="CORRELATION_ID\x01c\x02")
        assert (answer.code, answer.remark) == (1, "reply message properties[REPLY_TO_CLIENT] is null")
        await until(lambda: len(kept(given)) == 2)


async def test_a_client_that_does_not_take_the_reply_is_named(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given, requester(given, code=1) as waiting:
        answer = await reply(given)
        assert len(waiting.replies) == 1
        assert (answer.code, answer.remark) == (1, f"push reply message to {CLIENT_ID}fail.")


async def test_a_client_that_has_gone_is_no_longer_found(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        async with requester(given):
            assert (await reply(given)).code == 0
        await until(lambda: given.broker.tables.producers.find(CLIENT_ID) is None)
        assert (await reply(given)).code == 1


async def test_replies_need_not_be_kept(tmp_path: Path) -> None:
    config = BrokerConfig(store_replies=False)
    async with running_broker(tmp_path, config) as given, requester(given) as waiting:
        answer = await reply(given)
        assert len(waiting.replies) == 1
        assert answer.ext_fields == {
            "queueId": "0",
            "msgId": "0",
            "TRACE_ON": "true",
            "MSG_REGION": "DefaultRegion",
            "queueOffset": "0",
        }
        lost = await reply(given, properties="")
        assert (lost.code, lost.ext_fields) == (1, {"TRACE_ON": "true", "MSG_REGION": "DefaultRegion"})
        assert given.broker.store.max_offset(REPLY_TOPIC, 0) == 0


async def test_a_reply_that_the_store_does_not_take_is_pushed_all_the_same(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given, requester(given) as waiting:
        given.broker.store.gate.fail(OSError("the disk is gone"))
        answer = await reply(given)
        assert len(waiting.replies) == 1
        assert answer.ext_fields is not None
        assert (answer.code, answer.ext_fields["msgId"]) == (0, "0")


async def test_with_sync_flush_a_reply_is_on_disk_when_it_is_answered(tmp_path: Path) -> None:
    store = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with running_broker(tmp_path, store=store) as given, requester(given):
        assert (await reply(given)).code == 0
        log = given.broker.store.commit_log
        assert log.flushed_offset == log.written_offset > 0
        await until(lambda: len(kept(given)) == 1)


async def test_the_topic_of_a_reply_is_checked_like_that_of_a_send(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        with pytest.raises(InvalidParameter, match=r"request queueId\[7\] is illegal") as refused:
            await given.client.call(given.address, reply_request(queue_id=7), b"x")
        assert refused.value.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        with pytest.raises(NoPermission):
            await given.client.call(given.address, reply_request(topic="SCHEDULE_TOPIC_XXXX"), b"x")


async def test_a_slow_requester_holds_up_nobody_else(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        router = Router()
        released = asyncio.Event()

        async def slow(_: Peer, request: RemotingCommand) -> RemotingCommand:
            await released.wait()
            return request.answer(ResponseCode.SUCCESS)

        router.register(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, lambda peer, request: slow(peer, request))
        waiting = Requester(given)
        waiting.client = RemotingClient(router=router)
        async with waiting.client:
            await waiting.beat()
            pending = asyncio.create_task(reply(given))
            await asyncio.sleep(0.05)
            await given.send(b"meanwhile")
            assert not pending.done()
            released.set()
            assert (await pending).code == 0


@pytest.mark.parametrize("name", ["java54-request-reply.jsonl.gz", "java49c-request-reply.jsonl.gz"])
async def test_pushes_and_answers_are_those_of_the_real_broker(tmp_path: Path, name: str) -> None:
    frames = capture(name)
    requests = [frame for frame in frames if not frame.is_response and frame.header["code"] == 325]
    real_push = next(frame for frame in frames if frame.header["code"] == 326 and not frame.is_response)
    wanted = decode_properties(real_push.header["extFields"]["properties"].encode())
    async with running_broker(tmp_path) as given:
        waiting = Requester(given)
        async with waiting.client:
            await waiting.beat(wanted["REPLY_TO_CLIENT"])
            for frame in requests:
                (command,) = FrameReader().receive(frame.raw)
                answer = await given.client.invoke(given.address, command)
                real = next(
                    each.header
                    for each in frames
                    if each.is_response
                    and (each.connection, each.header["opaque"]) == (frame.connection, frame.header["opaque"])
                )
                assert (answer.code, answer.remark) == (real["code"], real.get("remark"))
                assert answer.ext_fields is not None
                assert list(answer.ext_fields) == list(real["extFields"])
                assert answer.ext_fields["queueId"] == real["extFields"]["queueId"]
            (push,) = waiting.replies
            assert push.body == real_push.body
            assert push.ext_fields is not None
            assert list(push.ext_fields) == list(real_push.header["extFields"])
            for field in real_push.header["extFields"].keys() - {
                "bornHost",
                "storeHost",
                "storeTimestamp",
                "properties",
            }:
                assert push.ext_fields[field] == real_push.header["extFields"][field]
            assert decode_properties(push.ext_fields["properties"].encode()).keys() == wanted.keys()
