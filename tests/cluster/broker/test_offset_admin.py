"""Operators move groups: reset by time and by offset, by the broker and by its clients; copies and corrections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skyrocket.broker.pull.feature import PullFeature
from skyrocket.config.sections import BrokerConfig
from skyrocket.fastjson import loads
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import CorrectionOffsets, ResetOffsets
from skyrocket.protocol.codes import LanguageCode, RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ConsumerNotOnline, GroupNotExist, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.offsets import CloneGroupOffset, QueryConsumerOffset, ResetOffset, UpdateConsumerOffset
from skyrocket.protocol.requests.query import QueryCorrectionOffset
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.exchange import command_of
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import GROUP, SLAVE, TOPIC, RunningBroker, heartbeat, running_broker
from tests.waiting import until

BY_CLIENTS = BrokerConfig(server_side_reset=False)
OTHER = "CID_ONSAPI_OWNER"  # a group that is always there
NO_CORRECTION = (1 << 63) - 1


class Consumer:
    """A client that is told to go on elsewhere."""

    def __init__(self, given: RunningBroker) -> None:
        self.told: list[RemotingCommand] = []
        router = Router()
        router.register(RequestCode.RESET_CONSUMER_CLIENT_OFFSET, self._reset)
        self.client = RemotingClient(router=router)
        self.address = given.address

    def _reset(self, _: Peer, request: RemotingCommand) -> Outcome:
        self.told.append(request)
        return None

    async def beat(
        self, client_id: str, language: LanguageCode | None = LanguageCode.JAVA, version: int | None = None
    ) -> None:
        command = command_of(HeartBeat(), heartbeat(client_id))
        command.language = language
        command.version = command.version if version is None else version
        assert (await self.client.invoke(self.address, command)).code == 0


@asynccontextmanager
async def consumer(given: RunningBroker) -> AsyncIterator[Consumer]:
    made = Consumer(given)
    async with made.client:
        yield made


async def reset(
    given: RunningBroker,
    timestamp: int,
    *,
    topic: str = TOPIC,
    group: str = GROUP,
    force: bool = True,
    queue_id: int = -1,
    offset: int | None = None,
) -> dict[int, int]:
    header = ResetOffset(
        topic=topic, group=group, timestamp=timestamp, is_force=force, queue_id=queue_id, offset=offset
    )
    reply = await given.client.call(given.address, header)
    offsets = ResetOffsets.decode(reply.body).offsets
    assert all((queue.topic, queue.broker_name) == (topic, "broker-a") for queue in offsets)
    return {queue.queue_id: value for queue, value in offsets.items()}


async def commit(
    given: RunningBroker, offset: int, queue_id: int = 0, *, group: str = GROUP, topic: str = TOPIC
) -> str | None:
    header = UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset)
    return (await given.client.call(given.address, header)).remark


async def committed(given: RunningBroker, queue_id: int = 0, *, group: str = GROUP, topic: str = TOPIC) -> int:
    header = QueryConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id)
    return (await given.client.call(given.address, header)).header.offset


# ── by the broker ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("B006")
async def test_a_group_goes_on_at_a_time_in_all_queues(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        for _ in range(4):
            await given.send()
            await given.send(queue_id=1)
            clock.advance(seconds=10)
        await given.pull(0)  # makes the group
        await commit(given, 4)
        assert await reset(given, clock.now_ms() - 25_000) == {0: 2, 1: 2, 2: 0, 3: 0}
        assert await committed(given) == 2
        assert await commit(given, 4) == "Offset has been previously reset"
        moved = await given.pull(4)
        assert (moved.code, moved.remark, moved.header.next_begin_offset) == (21, "OFFSET_RESET", 2)
        assert (await given.pull(2)).code == 0
        assert await commit(given, 3) is None
        assert await committed(given) == 3


@pytest.mark.parametrize("timestamp", [-1, -3_600_000])
async def test_a_negative_time_is_the_end_of_every_queue(tmp_path: Path, timestamp: int) -> None:
    async with running_broker(tmp_path) as given:
        for _ in range(3):
            await given.send()
        await given.pull(0)
        assert await reset(given, timestamp) == {0: 3, 1: 0, 2: 0, 3: 0}


@pytest.mark.requirement("B006")
async def test_one_queue_may_be_moved_to_an_offset_within_its_range(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for _ in range(3):
            await given.send(queue_id=2)
        await given.pull(0)
        assert await reset(given, -1, queue_id=2, offset=1) == {2: 1}
        assert await reset(given, -1, queue_id=2, offset=-1) == {2: 3}
        assert await reset(given, 0, queue_id=2) == {2: 0}
        with pytest.raises(SystemFailure, match=r"Target offset 5 not in consume queue range \[0-3\]"):
            await reset(given, -1, queue_id=2, offset=5)


async def test_a_group_without_members_can_be_moved_and_a_restart_keeps_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for _ in range(3):
            await given.send()
        await given.pull(0)
        await commit(given, 3)
        await reset(given, 0)
    async with running_broker(tmp_path) as given:
        assert await committed(given) == 0


async def test_a_pull_that_waits_hears_of_the_reset_when_it_is_woken(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send()
        waiting = asyncio.ensure_future(given.pull(1, suspend_ms=20_000))
        await until(lambda: given.broker.feature(PullFeature).polling.held_count == 1)
        await reset(given, 0)
        await given.send()
        moved = await waiting
        assert (moved.code, moved.remark, moved.header.next_begin_offset) == (21, "OFFSET_RESET", 0)


async def test_what_is_not_there_cannot_be_moved(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        with pytest.raises(TopicNotExist, match="Topic Orders does not exist"):
            await reset(given, -1)
        await given.send()
        with pytest.raises(GroupNotExist, match="Group Shop does not exist"):
            await reset(given, -1)


async def test_a_slave_moves_nobody(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(broker_id=1), SLAVE) as given:
        with pytest.raises(SystemFailure, match="Can not reset offset in slave broker"):
            await reset(given, -1)


# ── by the clients ───────────────────────────────────────────────────────────────────────────────────────────────────


async def consumed(given: RunningBroker, messages: int) -> None:
    """A topic whose four queues the group has consumed to the end."""
    for queue_id in range(4):
        for _ in range(messages):
            await given.send(queue_id=queue_id)
    await given.pull(0)
    for queue_id in range(4):
        await commit(given, messages, queue_id)


async def test_every_member_is_told_where_to_go_on(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_CLIENTS) as given, consumer(given) as one, consumer(given) as two:
        await consumed(given, 2)
        await one.beat("one")
        await two.beat("two")
        assert await reset(given, 0) == dict.fromkeys(range(4), 0)
        await until(lambda: len(one.told) == len(two.told) == 1)
        told = one.told[0]
        assert told.is_oneway
        assert told.ext_fields == {
            "topic": TOPIC,
            "group": GROUP,
            "timestamp": "0",
            "isForce": "false",
            "queueId": "-1",
        }
        assert ResetOffsets.decode(told.body).offsets == {
            MessageQueue(TOPIC, "broker-a", queue_id): 0 for queue_id in range(4)
        }
        assert await committed(given) == 2  # the members commit what they make of it
        assert (await given.pull(2)).remark != "OFFSET_RESET"


async def test_a_cpp_member_is_told_in_a_list(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_CLIENTS) as given, consumer(given) as one:
        await consumed(given, 1)
        await one.beat("one", LanguageCode.CPP)
        await reset(given, 0)
        await until(lambda: len(one.told) == 1)
        body = loads(bytes(one.told[0].body))
        expected = [
            {"brokerName": "broker-a", "offset": 0, "queueId": queue_id, "topic": TOPIC} for queue_id in range(4)
        ]
        assert body == {"offsetTable": expected}


async def test_without_force_a_group_only_goes_back(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_CLIENTS) as given, consumer(given) as one:
        await consumed(given, 3)
        await one.beat("one")
        await commit(given, 1, 0)
        assert await reset(given, -1, force=False) == {0: 1, 1: 3, 2: 3, 3: 3}
        assert await reset(given, -1, force=True) == {0: 3, 1: 3, 2: 3, 3: 3}
        assert await reset(given, 0, force=False) == {0: 0, 1: 0, 2: 0, 3: 0}


async def test_clients_must_be_there_and_understand_a_reset(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BY_CLIENTS) as given, consumer(given) as one:
        with pytest.raises(TopicNotExist, match=r"\[reset-offset\] reset offset failed, no topic in this broker"):
            await reset(given, -1)
        await given.send()
        with pytest.raises(SystemFailure, match="THe consumer group <Shop> not exist"):
            await reset(given, -1)
        await consumed(given, 1)
        with pytest.raises(ConsumerNotOnline) as refused:
            await reset(given, -1)
        assert refused.value.remark == (
            "Consumer not online, so can not reset offset, Group: Shop Topic: Orders Timestamp: -1"
        )
        await one.beat("one", version=27)
        with pytest.raises(SystemFailure, match=r"the client does not support this feature\. version=27"):
            await reset(given, -1)
        assert one.told == []


# ── copies and corrections ───────────────────────────────────────────────────────────────────────────────────────────


async def clone(given: RunningBroker, topic: str | None, *, offline: bool = False) -> None:
    header = CloneGroupOffset(src_group=GROUP, dest_group=OTHER, topic=topic, offline=offline)
    await given.client.call(given.address, header)


async def test_a_group_takes_over_the_offsets_of_another(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await consumed(given, 2)
        await given.send(topic="Bills")
        await commit(given, 1, topic="Bills")
        await clone(given, TOPIC)
        assert [given.broker.tables.offsets.committed(OTHER, TOPIC, queue_id) for queue_id in range(4)] == [2, 2, 2, 2]
        assert given.broker.tables.offsets.committed(OTHER, "Bills", 0) is None
        await clone(given, "")
        assert given.broker.tables.offsets.committed(OTHER, "Bills", 0) == 1


async def test_an_online_group_gives_only_what_it_subscribes_to(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await consumed(given, 1)
        await given.send(topic="Bills")
        await commit(given, 1, topic="Bills")
        await given.beat()
        await clone(given, "Bills")
        assert given.broker.tables.offsets.topics_of(OTHER) == ()
        await clone(given, "Bills", offline=True)
        assert given.broker.tables.offsets.topics_of(OTHER) == ("Bills",)
        await clone(given, "Nothing")
        assert given.broker.tables.offsets.topics_of(OTHER) == ("Bills",)


async def test_a_correction_is_the_smallest_offset_of_the_other_groups(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await consumed(given, 5)
        await commit(given, 3, 0, group=OTHER)
        await commit(given, 1, 1, group="CID_ONSAPI_PULL")
        header = QueryCorrectionOffset(topic=TOPIC, compare_group="Nobody")
        reply = await given.client.call(given.address, header)
        assert CorrectionOffsets.decode(reply.body).offsets == {0: 3, 1: 1, 2: 5, 3: 5}
        header = QueryCorrectionOffset(topic=TOPIC, compare_group=OTHER, filter_groups=f"CID_ONSAPI_PULL,{OTHER}")
        reply = await given.client.call(given.address, header)
        assert CorrectionOffsets.decode(reply.body).offsets == {0: NO_CORRECTION, 1: 5, 2: 5, 3: 5}
        assert await committed(given, 1, group="CID_ONSAPI_PULL") == 1  # RocketMQ deletes those that it leaves out
