"""A broker on real sockets: send, pull, offsets, waiting pulls, groups, restart."""

import asyncio
import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import pytest

from skyrocket.config.sections import BrokerConfig, FlushDiskType
from skyrocket.fastjson import loads
from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.format.record import decode_records
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.connections import ConsumerList
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat, ProducerData
from skyrocket.protocol.bodies.locks import LockedQueues, QueueLocks
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.codes import RequestCode, ResponseCode, SerializeType
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import (
    GroupNotExist,
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    QueryNotFound,
    SubscriptionNotExist,
    SystemFailure,
    TopicNotExist,
)
from skyrocket.protocol.requests.clients import HeartBeat, UnregisterClient
from skyrocket.protocol.requests.consumers import GetConsumerListByGroup, LockBatchMq, UnlockBatchMq
from skyrocket.protocol.requests.messaging import SendBatchMessage, SendMessage, SendMessageAnswer
from skyrocket.protocol.requests.offsets import (
    GetEarliestMsgStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    SearchOffsetByTimestamp,
    UpdateConsumerOffset,
)
from skyrocket.protocol.requests.pulling import PullMessageAnswer
from skyrocket.protocol.requests.query import QueryMessage, ViewMessageById
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import Reply, command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from tests.cluster.broker.broker_fixture import (
    GROUP,
    PULL_CODES,
    SMALL,
    TOPIC,
    RunningBroker,
    message,
    pull_request,
    running_broker,
)
from tests.cluster.namesrv import name_server_fixture
from tests.waiting import until

LONGER_THAN_A_TEST_MS = 600_000  # who is answered was woken: the time of the pull cannot be over


class Member:
    """A client that is told of changes in its group."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.notified: list[str] = []
        router = Router()
        router.register(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self._notice)
        self.client = RemotingClient(router=router)

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()

    def _notice(self, _: Peer, request: RemotingCommand) -> Outcome:
        self.notified.append((request.ext_fields or {})["consumerGroup"])
        return None


def bodies(reply: Reply[PullMessageAnswer]) -> list[bytes]:
    return [record.body for record in decode_records(reply.body)]


# ── sending and pulling ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C078")
async def test_what_is_sent_can_be_pulled_at_once(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        sent = [await given.send(b"%d" % i, properties=f"KEYS\x01k\x02UNIQ_KEY\x01U{i}\x02") for i in range(3)]
        assert [answer.queue_offset for answer in sent] == [0, 1, 2]
        assert sent[0].transaction_id == "U0"
        pulled = await given.pull(0)
        records = list(decode_records(pulled.body))
        assert [record.body for record in records] == [b"0", b"1", b"2"]
        assert pulled.remark == "FOUND"
        assert (pulled.header.next_begin_offset, pulled.header.max_offset) == (3, 3)
        assert records[0].properties == {
            "KEYS": "k",
            "UNIQ_KEY": "U0",
            "MSG_REGION": "DefaultRegion",
            "TRACE_ON": "true",
            "CLUSTER": "DefaultCluster",
        }
        viewed = await given.client.call(given.address, ViewMessageById(offset=int(sent[1].msg_id[-16:], 16)))
        assert [record.body for record in decode_records(viewed.body)] == [b"1"]


async def test_both_names_of_fields_and_both_header_forms_are_understood(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.client.call(given.address, SendMessage(**_values()), b"long")
        command = command_of(message(), b"binary")
        command.serialize_type = SerializeType.ROCKETMQ
        answer = await given.client.invoke(given.address, command)
        assert (answer.code, answer.serialize_type) == (ResponseCode.SUCCESS, SerializeType.JSON)
        assert SendMessageAnswer.from_fields(answer.ext_fields).queue_offset == 1
        command = command_of(pull_request(0))
        command.serialize_type = SerializeType.ROCKETMQ
        pulled = await given.client.invoke(given.address, command)
        assert [record.body for record in decode_records(pulled.body)] == [b"long", b"binary"]


def _values() -> dict[str, Any]:
    header = message()
    return {field.attribute: getattr(header, field.attribute) for field in SendMessage.wire_fields}


async def test_many_sends_at_once_keep_their_order_and_get_their_own_answers(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"first")
        answers = await asyncio.gather(*(given.send(b"%d" % i) for i in range(500)))
        assert [answer.queue_offset for answer in answers] == list(range(1, 501))
        found: list[bytes] = []
        while len(found) < 501:
            found += bodies(await given.pull(len(found)))
        assert found == [b"first", *(b"%d" % i for i in range(500))]


async def test_a_oneway_send_alone_in_its_turn_is_stored(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.client.call_oneway(given.address, message(), b"alone")
        deadline = time.monotonic() + 60
        while not (found := bodies(await given.pull(0))) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        assert found == [b"alone"]


async def test_a_batch_is_stored_as_messages_of_their_own(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        body = encode_batch([BatchElement(0, b"%d" % i, b"UNIQ_KEY\x01B%d\x02" % i) for i in range(4)])
        request = SendBatchMessage(**{**_values(), "batch": True})
        one, batch, two = await asyncio.gather(
            given.send(b"before"), given.client.call(given.address, request, body), given.send(b"after")
        )
        assert (one.queue_offset, batch.header.queue_offset, two.queue_offset) == (0, 1, 5)
        assert len(batch.header.msg_id.split(",")) == 4
        assert batch.header.transaction_id is None
        assert bodies(await given.pull(0)) == [b"before", b"0", b"1", b"2", b"3", b"after"]
        with pytest.raises(SystemFailure):
            await given.client.call(given.address, request, body[:-1])


async def test_sends_are_answered_when_the_disk_has_them(tmp_path: Path) -> None:
    store = replace(SMALL, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    async with running_broker(tmp_path, store=store) as given:
        await asyncio.gather(*(given.send(b"%d" % i) for i in range(50)))
        log = given.broker.store.commit_log
        assert log.flushed_offset == log.written_offset
        assert len(bodies(await given.pull(0, count=64))) == 32


@pytest.mark.requirement("C091", "C078")
async def test_refusals_of_a_send_say_what_rocketmq_says(tmp_path: Path) -> None:
    config = BrokerConfig(auto_create_topic=False)
    async with running_broker(tmp_path, config, replace(SMALL, max_message_size=1000)) as given:
        with pytest.raises(TopicNotExist, match=r"topic\[Orders\] not exist, apply first please!") as refused:
            await given.send(b"x")
        assert refused.value.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        with pytest.raises(InvalidParameter, match="contains illegal characters"):
            await given.send(b"x", topic="a b")
        with pytest.raises(NoPermission, match="is forbidden"):
            await given.send(b"x", topic="SCHEDULE_TOPIC_XXXX")
        with pytest.raises(InvalidParameter, match=r"request queueId\[9999\] is illegal"):
            await given.send(b"x", topic="BenchmarkTest", queue_id=9999)
        with pytest.raises(MessageIllegal, match="msg body length limit 1000B"):
            await given.send(bytes(2000), topic="BenchmarkTest")
        assert (await given.send(b"x", topic="BenchmarkTest")).queue_offset == 0


# ── pulls ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C002", "B003", "C112")
async def test_the_code_of_a_pull_says_where_its_offset_lies(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"0", properties="TAGS\x01red\x02")
        await given.send(b"1", properties="TAGS\x01blue\x02")
        seen = [
            ((pulled := await given.pull(offset, queue_id=queue_id)).code, pulled.remark)
            for offset, queue_id in ((2, 0), (7, 0), (0, 1), (3, 1))
        ]
        assert seen == [
            (19, "OFFSET_OVERFLOW_ONE"),
            (21, "OFFSET_OVERFLOW_BADLY"),
            (19, "NO_MESSAGE_IN_QUEUE"),
            (21, "NO_MESSAGE_IN_QUEUE"),
        ]
        assert bodies(await given.pull(0, expression="blue || green")) == [b"1"]
        unmatched = await given.pull(0, expression="green")
        assert (unmatched.code, unmatched.header.next_begin_offset) == (20, 2)
        with pytest.raises(InvalidParameter, match=r"queueId\[4\] is illegal.* consumer:\[/127") as refused:
            await given.pull(0, queue_id=4)
        assert refused.value.ext_fields == {}
        plain = replace(pull_request(0), sys_flag=0)
        with pytest.raises(SubscriptionNotExist, match="the consumer's group info not exist"):
            await given.client.call(given.address, plain)


@pytest.mark.requirement("A038", "B036")
async def test_a_waiting_pull_is_woken_by_its_message_at_once(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"0")
        waiting = asyncio.create_task(given.pull(1, suspend_ms=LONGER_THAN_A_TEST_MS))
        filtered = asyncio.create_task(given.pull(1, suspend_ms=LONGER_THAN_A_TEST_MS, expression="red"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await given.send(b"1", properties="TAGS\x01blue\x02")
        assert bodies(await waiting) == [b"1"]
        await asyncio.sleep(0.05)
        assert not filtered.done()
        await given.send(b"2", properties="TAGS\x01red\x02")
        assert bodies(await filtered) == [b"2"]


async def test_a_waiting_pull_is_answered_when_its_time_is_over(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"0")
        began = time.monotonic()
        pulled = await given.pull(1, suspend_ms=300)
        assert (pulled.code, pulled.header.next_begin_offset) == (19, 1)
        assert time.monotonic() - began > 0.25


# ── offsets, queries, locks ──────────────────────────────────────────────────────────────────────────────────────────


async def test_offsets_are_committed_and_queried(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        client, address = given.client, given.address
        for i in range(3):
            await given.send(b"%d" % i)
        query = QueryConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0)
        assert (await client.call(address, query)).header.offset == 0
        with pytest.raises(QueryNotFound):
            await client.call(address, replace(query, set_zero_if_not_found=False))
        update = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=2)
        with pytest.raises(GroupNotExist, match="Group Shop not exist!"):
            await client.call(address, update)
        await given.pull(0)
        await client.call(address, update)
        assert (await client.call(address, query)).header.offset == 2
        with_commit = replace(pull_request(3), sys_flag=0x5, commit_offset=3)
        await client.call(address, with_commit, accepted=PULL_CODES)
        assert (await client.call(address, query)).header.offset == 3
        assert (await client.call(address, GetMaxOffset(topic=TOPIC, queue_id=0))).header.offset == 3
        assert (await client.call(address, GetMinOffset(topic=TOPIC, queue_id=0))).header.offset == 0
        search = SearchOffsetByTimestamp(topic=TOPIC, queue_id=0, timestamp=int(time.time() * 1000) + 60_000)
        assert (await client.call(address, search)).header.offset == 3
        earliest = await client.call(address, GetEarliestMsgStoreTime(topic=TOPIC, queue_id=0))
        assert abs(earliest.header.timestamp - time.time() * 1000) < 60_000


@pytest.mark.requirement("C004")
async def test_messages_are_found_by_key(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"a", properties="KEYS\x01k1\x02UNIQ_KEY\x01U1\x02")
        await given.send(b"b", properties="KEYS\x01k2\x02")
        query = QueryMessage(topic=TOPIC, key="k2", max_num=32, begin_timestamp=0, end_timestamp=1 << 62)
        found = await given.client.call(given.address, query)
        assert [record.body for record in decode_records(found.body)] == [b"b"]
        unique = replace(query, key="U1", unique_key_query=True)
        assert [r.body for r in decode_records((await given.client.call(given.address, unique)).body)] == [b"a"]
        with pytest.raises(QueryNotFound):
            await given.client.call(given.address, replace(query, key="k3"))


async def test_a_queue_is_locked_for_one_client(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        queue = MessageQueue(TOPIC, "broker-a", 0)

        async def held(client_id: str) -> tuple[MessageQueue, ...]:
            body = QueueLocks(GROUP, client_id, (queue,)).encode()
            reply = await given.client.call(given.address, LockBatchMq(), body)
            return LockedQueues.decode(reply.body).queues

        assert await held("one") == (queue,)
        assert await held("two") == ()
        body = QueueLocks(GROUP, "one", (queue,)).encode()
        await given.client.call(given.address, UnlockBatchMq(), body)
        assert await held("two") == (queue,)


# ── clients ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A070")
async def test_members_of_a_group_hear_when_one_comes_or_goes(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given, Member(given.address) as first:
        async with Member(given.address) as second:
            await beat(first, "one")
            await beat(second, "two")
            await until(lambda: len(first.notified) == 2 and len(second.notified) == 1)
            assert await members(first) == {"one", "two"}
            assert given.broker.tables.topics.find(f"%RETRY%{GROUP}") is not None
            leave = UnregisterClient(client_id="two", consumer_group=GROUP, producer_group="Producers")
            await second.client.call(second.address, leave)
            await until(lambda: len(first.notified) == 3)
            await beat(second, "two")
            await until(lambda: len(first.notified) == 4)
        await until(lambda: len(first.notified) == 5)  # the connection of the second is gone
        assert await members(first) == {"one"}


async def beat(given: RunningBroker | Member, client_id: str) -> None:
    data = ConsumerData(
        GROUP, "CONSUME_PASSIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET", (SubscriptionData(TOPIC),)
    )
    body = Heartbeat(client_id, (ProducerData("Producers"),), (data,)).encode()
    reply = await given.client.call(given.address, HeartBeat(), body)
    assert reply.header.supports_v2


async def members(given: RunningBroker | Member) -> set[str]:
    reply = await given.client.call(given.address, GetConsumerListByGroup(consumer_group=GROUP))
    return set(ConsumerList.decode(reply.body).client_ids)


# ── lifecycle ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A082")
async def test_a_commit_is_in_the_table_at_once_and_then_in_the_file_and_pulls_tell_where_the_queue_ends(
    tmp_path: Path,
) -> None:
    async with running_broker(tmp_path) as given:
        for i in range(5):
            await given.send(b"%d" % i)
        found = (await given.pull(2)).header
        assert (found.min_offset, found.max_offset, found.next_begin_offset) == (0, 5, 5)
        update = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=4)
        await given.client.call(given.address, update)
        assert given.broker.tables.offsets.committed(GROUP, TOPIC, 0) == 4
    saved: Any = loads((tmp_path / "store" / "config" / "consumerOffset.json").read_bytes())
    assert saved["offsetTable"][f"{TOPIC}@{GROUP}"] == {0: 4}


@pytest.mark.requirement("A021")
async def test_the_store_is_by_default_in_the_users_home_and_has_rocketmqs_files(tmp_path: Path) -> None:
    assert BrokerConfig().store_root == "~/store"
    async with running_broker(tmp_path) as given:
        await given.client.call(given.address, message(properties="KEYS\x01k\x02"), b"x")
        await given.pull()
        given.broker.store.queues.write_out()
        assert (tmp_path / "store" / "abort").exists()
    names = {path.name for path in (tmp_path / "store").iterdir()}
    assert names >= {"checkpoint", "commitlog", "config", "consumequeue", "index", "lock"}
    assert "abort" not in names


@pytest.mark.requirement("A068")
async def test_a_restart_keeps_messages_topics_groups_and_offsets(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for i in range(5):
            await given.send(b"%d" % i)
        await given.pull(0)
        update = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=4)
        await given.client.call(given.address, update)
    assert not (tmp_path / "store" / "abort").exists()
    async with running_broker(tmp_path, BrokerConfig(auto_create_topic=False, auto_create_group=False)) as given:
        query = QueryConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0)
        assert (await given.client.call(given.address, query)).header.offset == 4
        assert bodies(await given.pull(0)) == [b"%d" % i for i in range(5)]
        assert (await given.send(b"5")).queue_offset == 5


async def test_stopping_answers_pulls_that_wait(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"0")
        waiting = asyncio.create_task(given.pull(1, suspend_ms=LONGER_THAN_A_TEST_MS))
        await asyncio.sleep(0.1)
        await given.broker.stop()
        assert (await waiting).code == 19


async def test_a_broker_registers_new_topics_at_once_and_leaves_with_a_word(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path) as (_, name_server), RemotingClient() as client:
        config = BrokerConfig(name_servers=str(name_server))
        route = GetRouteInfoByTopic(topic=TOPIC)
        async with running_broker(tmp_path, config) as given:
            with pytest.raises(TopicNotExist):
                await client.call(str(name_server), route)
            await given.send(b"0")
            deadline = time.monotonic() + 60
            while True:
                with contextlib.suppress(TopicNotExist):
                    found = TopicRoute.decode((await client.call(str(name_server), route)).body)
                    break
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            assert [dict(broker.addresses) for broker in found.brokers] == [{0: given.address}]
            template = await client.call(str(name_server), GetRouteInfoByTopic(topic="TBW102"))
            assert TopicRoute.decode(template.body).brokers
        with pytest.raises(TopicNotExist):
            await client.call(str(name_server), route)
