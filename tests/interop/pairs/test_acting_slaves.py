"""A slave of another maker than its master acts in its place: RocketMQ's of ours, ours of RocketMQ's."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from skyrocket.client import (
    Admin,
    ClientSettings,
    Message,
    MessageQueue,
    PoppedMessage,
    Producer,
    ReceivedMessage,
    SimpleConsumer,
    SimpleConsumerSettings,
    TransactionProducer,
    TransactionState,
)
from skyrocket.format.timer_checkpoint import decode_timer_checkpoint
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo, GetTimerCheckPoint
from skyrocket.protocol.requests.admin_groups import UpdateAndCreateSubscriptionGroup
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopic
from skyrocket.protocol.requests.offsets import QueryConsumerOffset, UpdateConsumerOffset
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from tests.client_steps import FIRST, soon
from tests.integration.seen_messages import TOPIC, Seen, numbered, received, send
from tests.interop.apache import Apache
from tests.interop.pairs.members import ApacheMember, Member, NameServer, OurMember
from tests.interop.rocketmq_broker import await_port, place_log_settings, process_of
from tests.interop.test_replication_pairs import identical
from tests.ports import free_port
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

OURS, APACHES = "ours", "5.4.0"
POPPED = "Popped"
QUEUES = 4
MAKERS = pytest.mark.parametrize("makers", [(APACHES, OURS), (OURS, APACHES)], ids=lambda makers: "-".join(makers))
SECONDS = 60.0
SETTINGS = {
    "enableSlaveActingMaster": "true",
    "enableRemoteEscape": "true",
    "brokerNotActiveTimeoutMillis": 5000,
    "messageDelayLevel": "1s 20s 60s",
    "flushConsumerOffsetInterval": 500,
    "transactionTimeOut": 12_000,  # no master asks before the slave acts
    "transactionCheckInterval": 10_000,  # RocketMQ asks again in the next round while it has not noted the end: 3 s
    "reviveQueueNum": 2,
}


@contextlib.contextmanager
def name_server(maker: str, folder: Path, apache: Apache, *, tells: bool = False) -> Iterator[str]:
    """It `tells` members of a set that another one has the smallest id."""
    more = {"supportActingMaster": "true", "notifyMinBrokerIdChanged": str(tells).lower()}
    if maker == OURS:
        with NameServer(folder, *(f"{key}={value}" for key, value in more.items())) as ours:
            yield ours.address
        return
    port, home = free_port(), folder / "names"
    home.mkdir()
    place_log_settings(home)
    settings = {"listenPort": port, **more}
    main_class = "org.apache.rocketmq.namesrv.NamesrvStartup"
    with process_of(apache, home, "namesrv", main_class, settings) as process:
        await_port(process, port, home / "namesrv.log")
        yield f"127.0.0.1:{port}"


class MixedSet:
    """A master and a slave, and the master of another set, which is of the master's maker."""

    def __init__(
        self, folder: Path, names: str, apache: Apache, makers: tuple[str, str], settings: Mapping[str, object]
    ) -> None:
        self._folder, self._names, self._apache = folder, names, apache
        self._settings = settings
        self.client = ClientSettings(
            name_servers=names, route_refresh=0.5, heartbeat_interval=1.0, client_ip="127.0.0.1"
        )
        master, slave = makers
        self.master = self._member("master", master, "ASYNC_MASTER", brokerName="broker-a", totalReplicas=2)
        self.slave = self._member("slave", slave, "SLAVE", brokerName="broker-a", totalReplicas=2)
        self.other = self._member("other", master, "ASYNC_MASTER", brokerName="broker-b")

    def _member(self, name: str, maker: str, role: str, **more: object) -> Member:
        settings = {**self._settings, **more}
        if maker == OURS:
            return OurMember(self._folder, name, role, self._names, settings)
        return ApacheMember(self._apache, self._folder, name, role, self._names, settings)

    async def start(self) -> None:
        """All at work, with a topic that both masters have; the slave knows it."""
        self.master.start()
        self.other.start()
        async with Admin(client=self.client) as admin, RemotingClient() as client:
            async with asyncio.timeout(SECONDS):
                while len((await admin.cluster()).brokers) < 2:
                    await asyncio.sleep(0.1)
            for topic in (TOPIC, POPPED):
                await admin.create_topic(topic, QUEUES)
                await soon(admin, topic, 2 * QUEUES)
            self.slave.start()
            await self._teach_slave(client)
            # A name server tells of changes those whom it knows already.
            async with asyncio.timeout(SECONDS):
                while len((await admin.cluster()).brokers["broker-a"].addresses) < 2:
                    await asyncio.sleep(0.1)

    async def _teach_slave(self, client: RemotingClient) -> None:
        """RocketMQ's asks its master for topics after a minute, and how far timers are after ten seconds."""
        for topic in (TOPIC, POPPED) if isinstance(self.slave, ApacheMember) else ():
            request = UpdateAndCreateTopic(
                topic=topic,
                default_topic="TBW102",
                read_queue_nums=QUEUES,
                write_queue_nums=QUEUES,
                perm=6,
                topic_filter_type="SINGLE_TAG",
            )
            await client.call(self.slave.address, request)
        async with asyncio.timeout(SECONDS):
            while not await self._timers_delivered_before(client):
                await asyncio.sleep(0.5)

    async def _timers_delivered_before(self, client: RemotingClient) -> int:
        reply = await client.call(self.slave.address, GetTimerCheckPoint())
        return decode_timer_checkpoint(bytes(reply.body)).last_read_time_ms

    async def copied(self) -> None:
        async with RemotingClient() as client:
            await identical(client, self.master.address, self.slave.address)

    async def progress_copied(self, group: str, topic: str, queue_id: int, queue_offset: int) -> None:
        """The slave knows how far a group is. RocketMQ's would ask its master after a minute: it is told."""
        async with RemotingClient() as client, asyncio.timeout(SECONDS):
            if isinstance(self.slave, ApacheMember):
                new_group = b'{"groupName":"%s"}' % group.encode()
                await client.call(self.slave.address, UpdateAndCreateSubscriptionGroup(), new_group)
                commit = UpdateConsumerOffset(
                    consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=queue_offset
                )
                await client.call(self.slave.address, commit)
            question = QueryConsumerOffset(
                consumer_group=group, topic=topic, queue_id=queue_id, set_zero_if_not_found=True
            )
            while (await client.call(self.slave.address, question)).header.offset != queue_offset:
                await asyncio.sleep(0.2)

    async def acts(self, acts: bool) -> None:
        """Wait until the slave does, or does not any more."""
        async with RemotingClient() as client, asyncio.timeout(SECONDS):
            while True:
                with contextlib.suppress(RemotingError, RequestError):
                    reply = await client.call(self.slave.address, GetBrokerRuntimeInfo(), timeout_seconds=10)
                    if KvTable.decode(bytes(reply.body)).table["brokerActive"] == str(acts).lower():
                        return
                await asyncio.sleep(0.2)

    def kill(self) -> None:
        for member in (self.master, self.slave, self.other):
            member.kill()


@contextlib.asynccontextmanager
async def mixed_set(
    folder: Path, names: str, apache: Apache, makers: tuple[str, str], settings: Mapping[str, object] = SETTINGS
) -> AsyncIterator[MixedSet]:
    given = MixedSet(folder, names, apache, makers, settings)
    try:
        await given.start()
        yield given
    finally:
        given.kill()


@MAKERS
async def test_a_slave_of_another_maker_acts_and_its_master_comes_back(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], makers: tuple[str, str]
) -> None:
    apache = apache_of_version(APACHES)
    plain, new = numbered("plain", 40), numbered("new", 40)
    early = [*numbered("level", 8, delay_level=2), *numbered("timer", 8, delay=20.0)]
    late = [*numbered("late level", 8, delay_level=3), *numbered("late timer", 8, delay=60.0)]
    with name_server(makers[0], tmp_path, apache) as names:
        async with (
            mixed_set(tmp_path, names, apache, makers) as given,
            Producer("Selling", client=given.client) as producer,
        ):
            taken = await send(producer, *plain, *early, *late)
            assert taken["broker-a"] > 10
            await given.copied()
            given.master.kill()
            await given.acts(True)
            seen = Seen(given.client)
            async with seen.consuming():
                await seen.has(message.body for message in plain)
                await seen.has(message.body for message in early)
                assert {seen.of(message.body) for message in early} == {"broker-b"}
            given.master.start()
            await given.acts(False)
            async with seen.consuming():
                await send(producer, *new)
                await seen.has(message.body for message in new)
                await seen.has(message.body for message in late)
                await asyncio.sleep(3)
            assert [body for body, times in seen.bodies.items() if times > 1] == []


@MAKERS
async def test_a_slave_acts_when_the_name_server_of_another_maker_says_who_is_there(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], makers: tuple[str, str]
) -> None:
    apache = apache_of_version(APACHES)
    asks_once = {**SETTINGS, "syncBrokerMemberGroupPeriod": 3_600_000}
    with name_server(makers[0], tmp_path, apache, tells=True) as names:
        async with mixed_set(tmp_path, names, apache, makers, asks_once) as given:
            await given.copied()
            given.master.kill()
            await given.acts(True)
            given.master.start()
            await given.acts(False)


@MAKERS
async def test_halves_and_popped_messages_of_a_set_whose_slave_is_of_another_maker(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], makers: tuple[str, str]
) -> None:
    apache = apache_of_version(APACHES)
    asked: Counter[bytes] = Counter()

    def check(message: ReceivedMessage) -> TransactionState:
        asked[message.body] += 1
        return TransactionState.COMMIT if message.body.startswith(b"kept") else TransactionState.ROLLBACK

    with name_server(makers[0], tmp_path, apache) as names:
        async with mixed_set(tmp_path, names, apache, makers) as given:
            producer = TransactionProducer("Paying", client=given.client)
            producer.checker(check)
            seen = Seen(given.client)
            settings = SimpleConsumerSettings(consume_from=FIRST)
            consumer = SimpleConsumer("Popping", settings=settings, subscription={POPPED: "*"}, client=given.client)
            async with producer:
                for message in (*numbered("kept", 8), *numbered("dropped", 8)):
                    async with producer.transaction(message) as transaction:
                        transaction.leave_open()
                for body in (b"done", b"hidden", b"lost"):
                    await producer.send(Message(POPPED, body), queue=MessageQueue(POPPED, "broker-a", 0))
                await given.copied()
                given.master.kill()
                await given.acts(True)
                async with seen.consuming(), consumer:
                    popped: dict[bytes, PoppedMessage] = {}
                    async with asyncio.timeout(SECONDS):
                        while len(popped) < 3:
                            popped |= {each.body: each for each in await consumer.receive(invisible_seconds=15.0)}
                    await consumer.ack(popped[b"done"])
                    await consumer.change_invisible(popped[b"hidden"], 40.0)
                    again = [await received(consumer)]
                    await until(lambda: len(asked) == 16)
                    await seen.has(b"kept %d" % number for number in range(8))
                    given.master.start()
                    await given.acts(False)
                    again.append(await received(consumer))
                    assert await consumer.receive(wait_seconds=6.0) == []
    assert [(each.body, each.broker_name, each.reconsume_times) for each in again] == [
        (b"lost", "broker-b", 1),
        (b"hidden", "broker-b", 1),
    ]
    assert seen.bodies == {b"kept %d" % number: 1 for number in range(8)}


@MAKERS
async def test_what_was_popped_before_its_master_died_comes_again_from_the_slave_of_another_maker(
    tmp_path: Path, apache_of_version: Callable[[str], Apache], makers: tuple[str, str]
) -> None:
    apache = apache_of_version(APACHES)
    with name_server(makers[0], tmp_path, apache) as names:
        async with mixed_set(tmp_path, names, apache, makers) as given:
            settings = SimpleConsumerSettings(consume_from=FIRST)
            consumer = SimpleConsumer("Popping", settings=settings, subscription={POPPED: "*"}, client=given.client)
            async with Producer("Selling", client=given.client) as producer, consumer:
                for body in (b"done", b"hidden", b"lost"):
                    await producer.send(Message(POPPED, body), queue=MessageQueue(POPPED, "broker-a", 0))
                popped: dict[bytes, PoppedMessage] = {}
                async with asyncio.timeout(SECONDS):
                    while len(popped) < 3:
                        popped |= {each.body: each for each in await consumer.receive(invisible_seconds=40.0)}
                await consumer.ack(popped[b"done"])
                await consumer.change_invisible(popped[b"hidden"], 60.0)
                await given.progress_copied("Popping", POPPED, 0, 3)
                await given.copied()
                given.master.kill()
                await given.acts(True)
                again: list[PoppedMessage] = []
                while not {b"lost", b"hidden"} <= {each.body for each in again}:
                    again.append(await received(consumer))
                late = await consumer.receive(wait_seconds=6.0)
    assert {(each.broker_name, each.reconsume_times) for each in again} == {("broker-b", 1)}
    if makers[1] == OURS:  # RocketMQ's sends acknowledgements to any queue, where they miss their check points
        assert [each.body for each in again] == [b"lost", b"hidden"]
        assert late == []
