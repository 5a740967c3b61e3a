"""PushConsumer against real brokers: queues shared by members, locked, kept in order."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.pull.feature import PullFeature
from skyrocket.client.admin.admin import Admin
from skyrocket.client.consumer.handlers import ConsumeStatus, SuspendCurrentQueue
from skyrocket.client.consumer.orderly_consumption import OrderlyConsumption
from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.push_consumer import PushConsumer
from skyrocket.client.consumer.push_consumer_settings import PushConsumerSettings
from skyrocket.client.consumer.queue_locks import RENEW_SECONDS
from skyrocket.client.consumer.start_position import MessageModel
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.settings import ClientSettings
from skyrocket.client.producer.producer import Producer
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.locks import QueueLocks
from skyrocket.protocol.bodies.offsets import ResetOffsets
from skyrocket.protocol.requests.consumers import LockBatchMq
from skyrocket.remoting.client import RemotingClient
from tests.cluster.client.inside import assigned_queues, instance_of
from tests.cluster.client.push_consumers import FIRST, GROUP, TOPIC, committed, send
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until


@pytest.mark.requirement("A091", "B037")
async def test_a_message_in_order_blocks_its_queue_until_it_is_consumed(tmp_path: Path) -> None:
    got: list[tuple[bytes, int]] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for i in range(4):
            await producer.send(Message(TOPIC, b"%d" % i, sharding_key="k"))
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True, suspend_current_queue=0.02))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> ConsumeStatus:
            got.append((message.body, message.reconsume_times))
            if message.body == b"1" and message.reconsume_times == 0:
                raise SuspendCurrentQueue(0.01)
            if message.body == b"1" and message.reconsume_times == 1:
                return ConsumeStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
            return ConsumeStatus.SUCCESS

        async with consumer:
            await until(lambda: len(got) >= 6)
        assert got == [(b"0", 0), (b"1", 0), (b"1", 1), (b"1", 2), (b"2", 0), (b"3", 0)]


@pytest.mark.requirement("A071", "A086", "C128", "C074")
async def test_members_share_queues_when_they_come_and_go(tmp_path: Path) -> None:
    got: Counter[bytes] = Counter()
    members: list[PushConsumer] = []

    async def handle(message: ReceivedMessage) -> None:
        got[message.body] += 1

    async def join(given: Cluster) -> None:
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(consume_from=FIRST))
        consumer.subscribe(TOPIC, handle)
        await consumer.start()
        members.append(consumer)

    def share() -> list[int]:
        return [len([queue for queue in member.assignment if queue.topic == TOPIC]) for member in members]

    async with cluster(tmp_path, "broker-a", "broker-b") as given, Producer("Shop", given.names) as producer:
        await send(producer, 10)
        await asyncio.gather(*(producer.send(Message(TOPIC, b"%d" % i)) for i in range(10, 20)))
        sent = 20

        async def keep_sending() -> None:
            nonlocal sent
            while True:
                await producer.send(Message(TOPIC, b"%d" % sent))
                sent += 1
                await asyncio.sleep(0.002)

        sending = asyncio.create_task(keep_sending())
        await join(given)
        await until(lambda: sum(share()) == 8)
        await join(given)
        await join(given)
        await until(lambda: sorted(share()) == [2, 3, 3])
        owned = [queue for member in members for queue in member.assignment if queue.topic == TOPIC]
        assert len(owned) == len(set(owned)) == 8
        await members.pop(0).stop()
        await until(lambda: share() == [4, 4])
        await members.pop(0).stop()
        await until(lambda: share() == [8])
        sending.cancel()
        await asyncio.sleep(0)
        await until(lambda: {b"%d" % i for i in range(sent)} <= set(got))
        await members.pop(0).stop()
        got.pop(b"%d" % sent, None)  # was under way when sending ended
        assert set(got) == {b"%d" % i for i in range(sent)}
        assert sum(got.values()) - sent < sent / 2 + 200


@pytest.mark.requirement("A069", "A070", "A107")
async def test_members_hear_of_queues_that_come_and_go_from_the_broker(tmp_path: Path) -> None:
    """Routes are not asked for by themselves here: without the broker's word nobody would notice."""
    async with cluster(tmp_path) as given, Admin(given.names) as admin:
        await admin.create_topic(TOPIC, 4)
        members = []
        for name in ("one", "two"):
            client = ClientSettings(given.names, instance_name=name, route_refresh=3600)
            consumer = PushConsumer(GROUP, client=client, settings=PushConsumerSettings(consume_from=FIRST))
            consumer.subscribe(TOPIC, lambda message: None)
            await consumer.start()
            members.append(consumer)

        def share() -> list[int]:
            return [sum(queue.topic == TOPIC for queue in member.assignment) for member in members]

        await until(lambda: share() == [2, 2])
        await admin.create_topic(TOPIC, 10)
        await until(lambda: share() == [5, 5])
        await admin.create_topic(TOPIC, 2)
        await until(lambda: share() == [1, 1])
        for member in members:
            await member.stop()


@pytest.mark.requirement("A072")
async def test_a_member_more_than_there_are_queues_stays_idle(tmp_path: Path) -> None:
    got: dict[str, set[int]] = {"one": set(), "two": set(), "three": set()}
    members = []
    async with cluster(tmp_path) as given, Admin(given.names) as admin, Producer("Shop", given.names) as producer:
        await admin.create_topic(TOPIC, 2)
        for name in got:
            client = ClientSettings(given.names, instance_name=name)
            consumer = PushConsumer(GROUP, client=client, settings=PushConsumerSettings(consume_from=FIRST))
            consumer.subscribe(TOPIC, lambda message, name=name: got[name].add(message.queue_id))
            await consumer.start()
            members.append(consumer)

        def share() -> list[int]:
            return sorted(sum(queue.topic == TOPIC for queue in member.assignment) for member in members)

        await until(lambda: share() == [0, 1, 1])
        await asyncio.gather(*(producer.send(Message(TOPIC, b"x")) for _ in range(20)))
        await until(lambda: committed(given) == 20)
        assert sorted(map(len, got.values())) == [0, 1, 1]
        for member in members:
            await member.stop()


@pytest.mark.requirement("C146", "B002", "B037")
async def test_order_is_kept_while_members_come_and_go(tmp_path: Path) -> None:
    log: list[tuple[str, int]] = []
    running: set[str] = set()
    overlaps: list[str] = []
    members: list[PushConsumer] = []

    async def handle(message: ReceivedMessage) -> None:
        key = str(message.queue)
        if key in running:
            overlaps.append(key)
        running.add(key)
        await asyncio.sleep(0.003)
        log.append((key, message.queue_offset))
        running.discard(key)

    async def join(given: Cluster) -> None:
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True))
        consumer.subscribe(TOPIC, handle)
        await consumer.start()
        members.append(consumer)

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 4)
        await join(given)
        sending = [asyncio.create_task(producer.send(Message(TOPIC, b"%d" % i))) for i in range(400)]
        await asyncio.gather(*sending)
        await join(given)
        await until(lambda: all(len([q for q in m.assignment if q.topic == TOPIC]) == 2 for m in members))
        await members.pop(0).stop()
        await until(lambda: len(set(log)) >= 404)
        await members.pop(0).stop()
        assert not overlaps
        last: dict[str, int] = {}
        for key, offset in log:  # a step back is a repetition, never a gap
            assert offset <= last.get(key, -1) + 1
            last[key] = max(last.get(key, -1), offset)
        assert len(log) - len(set(log)) <= 8
        assert given.brokers["broker-a"].tables.locks.are_held(GROUP) is False


@pytest.mark.requirement("A064")
async def test_broadcasting_gives_every_member_everything_and_remembers_in_a_file(tmp_path: Path) -> None:
    got: dict[str, list[bytes]] = {"one": [], "two": []}
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        settings = PushConsumerSettings(
            message_model=MessageModel.BROADCASTING, consume_from=FIRST, local_offsets=tmp_path / "offsets"
        )

        def member(name: str) -> PushConsumer:
            client = ClientSettings(given.names, instance_name=name)
            consumer = PushConsumer(GROUP, settings=settings, client=client)
            consumer.subscribe(TOPIC, lambda message: got[name].append(message.body))
            return consumer

        await send(producer, 10)
        async with member("one"), member("two"):
            await until(lambda: all(len(bodies) == 10 for bodies in got.values()))
        assert len(list((tmp_path / "offsets").rglob("offsets.json"))) == 2
        await producer.send(Message(TOPIC, b"new"))
        async with member("one"):
            await until(lambda: len(got["one"]) == 11)
            await asyncio.sleep(0.1)
        assert got["one"][-1] == b"new"
        assert len(got["one"]) == 11
        assert committed(given) == 0


@pytest.mark.requirement("A067")
async def test_broadcasting_keeps_its_offsets_under_the_users_home_by_client_and_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[bytes] = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ROCKETMQ_CLIENT_OFFSETS", raising=False)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 3)
        settings = PushConsumerSettings(message_model=MessageModel.BROADCASTING, consume_from=FIRST)
        client = ClientSettings(given.names, client_ip="10.1.2.3")
        consumer = PushConsumer(GROUP, settings=settings, client=client)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with consumer:
            await until(lambda: len(got) == 3)
    file = tmp_path / ".rocketmq_offsets" / "10.1.2.3@DEFAULT" / GROUP / "offsets.json"
    assert sum(ResetOffsets.decode(file.read_bytes()).offsets.values()) == 3


@pytest.mark.requirement("C171")
async def test_broadcasting_from_the_newest_skips_what_came_while_it_was_stopped(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        settings = PushConsumerSettings(message_model=MessageModel.BROADCASTING, broadcast_from_newest=True)
        for number in range(2):
            await send(producer, 4, tags="missed")
            consumer = PushConsumer(GROUP, given.names, settings)
            consumer.subscribe(TOPIC, lambda message: got.append(message.body))
            async with consumer:
                await until(lambda consumer=consumer: len(consumer.assignment) == 4)  # type: ignore[misc]
                await producer.send(Message(TOPIC, b"heard %d" % number))
                await until(lambda number=number: len(got) > number)  # type: ignore[misc]
        assert got == [b"heard 0", b"heard 1"]
    with pytest.raises(WrongUse, match="is for BROADCASTING"):
        PushConsumerSettings(broadcast_from_newest=True)


@pytest.mark.requirement("C038")
async def test_in_order_a_message_is_tried_without_end_a_second_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    times: list[int] = []

    async def rest(_: OrderlyConsumption, __: ProcessQueue, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(OrderlyConsumption, "_rest", rest)
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send(Message(TOPIC, b"x"))
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True, consume_from=FIRST))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            times.append(message.reconsume_times)
            if len(times) <= 40:
                raise ValueError("not yet")

        async with consumer:
            await until(lambda: len(times) == 41)
        assert times == list(range(41))
        assert pauses == [1.0] * 40
        assert given.brokers["broker-a"].tables.topics.find(f"%DLQ%{GROUP}") is None


@pytest.mark.requirement("A090")
@pytest.mark.parametrize(("orderly", "most"), [(False, 6), (True, 2)])
async def test_handlers_run_at_once_per_thread_and_node_but_per_queue_in_order(
    tmp_path: Path, orderly: bool, most: int
) -> None:
    running, highest, release = 0, 0, asyncio.Event()
    async with cluster(tmp_path) as given, Admin(given.names) as admin, Producer("Shop", given.names) as producer:
        await admin.create_topic(TOPIC, 2)
        members = []
        for name in ("one", "two"):
            settings = PushConsumerSettings(orderly=orderly, max_concurrency=3, consume_from=FIRST)
            member = PushConsumer(GROUP, client=ClientSettings(given.names, instance_name=name), settings=settings)

            @member.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                nonlocal running, highest
                running += 1
                highest = max(highest, running)
                await release.wait()
                running -= 1

            await member.start()
            members.append(member)

        def share() -> list[int]:
            return [sum(queue.topic == TOPIC for queue in member.assignment) for member in members]

        await until(lambda: share() == [1, 1])
        await asyncio.gather(*(producer.send(Message(TOPIC, b"x")) for _ in range(20)))
        await until(lambda: running == most)
        release.set()
        await until(lambda: committed(given) == 20)
        assert highest == most
        for member in members:
            await member.stop()


@pytest.mark.requirement("A079", "A080", "C057")
async def test_members_with_different_subscriptions_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 1)
        one, two = PushConsumer(GROUP, given.names), PushConsumer(GROUP, given.names)
        one.subscribe(TOPIC, lambda message: None, "A")
        await asyncio.sleep(0.01)
        two.subscribe(TOPIC, lambda message: None, "B")
        async with one, two:
            from skyrocket.client.consumer.subscription_check import SubscriptionCheck

            check = SubscriptionCheck(instance_of(one), GROUP)
            for _ in range(2):
                await check.run(one.heartbeat_data().subscriptions)
    said = [record.getMessage() for record in caplog.records if "different things" in record.getMessage()]
    assert said == [
        "members of consumer group Billing subscribe to different things, so messages get lost: topic Orders: here "
        "'A' (TAG), another member has 'B' (TAG). Give all members the same subscriptions, or different groups"
    ]


async def test_a_queue_that_is_being_left_is_unlocked_when_its_consumer_stops(tmp_path: Path) -> None:
    release = asyncio.Event()
    running = 0

    async def slow(message: ReceivedMessage) -> None:
        nonlocal running
        running += 1
        await release.wait()

    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        for queue in await producer.queues(TOPIC):
            await producer.send(Message(TOPIC, b"x"), queue=queue)
        first = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True))
        first.subscribe(TOPIC, slow)
        await first.start()
        await until(lambda: running == 4)
        second = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True, persist_interval=0.1))
        second.subscribe(TOPIC, lambda message: None)
        async with second:
            await until(lambda: len(assigned_queues(first).leaving) >= 2)
            stopping = asyncio.create_task(first.stop())
            await asyncio.sleep(0.1)
            release.set()
            await stopping
            await until(lambda: sum(queue.topic == TOPIC for queue in second.assignment) == 4)
            # What the first handled while it left the queue is not committed, as in RocketMQ: the second gets it again.
            await until(lambda: committed(given) == 4)


@pytest.mark.requirement("C149")
async def test_in_order_a_queue_that_another_member_has_locked_waits_until_it_is_free(tmp_path: Path) -> None:
    got: list[int] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await producer.send(Message(TOPIC, b"x"))
        for queue in await producer.queues(TOPIC):
            await producer.send(Message(TOPIC, b"x"), queue=queue)
        held, locks = MessageQueue(TOPIC, "broker-a", 2), given.brokers["broker-a"].tables.locks
        assert locks.lock(GROUP, "another", [held]) == (held,)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True, consume_from=FIRST))
        consumer.subscribe(TOPIC, lambda message: got.append(message.queue_id))
        async with consumer:
            await until(lambda: {0, 1, 3} <= set(got))
            await asyncio.sleep(0.2)
            assert 2 not in got
            locks.unlock(GROUP, "another", [held])
            await until(lambda: 2 in got)


@pytest.mark.requirement("C130")
async def test_a_queue_that_was_not_pulled_for_two_minutes_is_dropped_and_begun_anew(tmp_path: Path) -> None:
    got: list[bytes] = []
    async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
        await send(producer, 4)
        consumer = PushConsumer(GROUP, given.names)
        consumer.subscribe(TOPIC, lambda message: got.append(message.body))
        async with consumer:
            await until(lambda: len(got) == 4)
            await until(
                lambda: given.brokers["broker-a"].feature(PullFeature).polling.held_count == 5
            )  # of four queues, and retries
            queues = assigned_queues(consumer)
            before = {queue: queues.in_hand[queue] for queue in queues.of_topic(TOPIC)}
            stuck, other, *_ = sorted(before)
            before[stuck].last_pulled -= 121
            before[other].last_pulled -= 100
            await queues.have(TOPIC, set(before))
            assert [queue for queue in before if before[queue].is_dropped] == [stuck]
            await until(lambda: stuck in queues.in_hand or stuck not in queues.leaving)
            await queues.have(TOPIC, set(before))
            await send(producer, 8)
            await until(lambda: len(got) == 12)


@pytest.mark.requirement("C148")
async def test_locks_are_renewed_in_one_request_to_each_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, asked = RemotingClient.call, list[tuple[float, float, str, int]]()

    async def call(client: RemotingClient, address: str, request: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(request, LockBatchMq):
            count = len(QueueLocks.decode(rest[0]).queues)
            asked.append((time.monotonic(), options["timeout_seconds"], address, count))
        return await own(client, address, request, *rest, **options)

    assert RENEW_SECONDS == 20.0
    monkeypatch.setattr("skyrocket.client.consumer.push_consumer.RENEW_SECONDS", 0.4)
    monkeypatch.setattr(RemotingClient, "call", call)
    async with cluster(tmp_path, "broker-a", "broker-b") as given:
        async with Admin(given.names) as admin:
            await admin.create_topic(TOPIC, 4)
        consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True))
        consumer.subscribe(TOPIC, lambda message: None)
        async with consumer:
            began = time.monotonic()
            await until(lambda: len(consumer.assignment) == 10)
            asked.clear()
            await until(lambda: len(asked) == 4)
        masters = {str(broker.identity.address) for broker in given.brokers.values()}
        assert {(seconds, address, count) for _, seconds, address, count in asked} == {(1.0, m, 5) for m in masters}
        assert 0.9 < asked[0][0] - began < 4.0
        assert asked[2][0] - asked[0][0] > 0.3
