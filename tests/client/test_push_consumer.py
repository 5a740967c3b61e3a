"""PushConsumer against real brokers: handlers, order, sharing, retries, offsets, the end."""

import asyncio
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client.admin import Admin
from skyrocket.client.consumer_settings import PushConsumerSettings
from skyrocket.client.errors import AlreadyStarted, BrokerRefused, GroupInUse, IllegalSubscription, WrongUse
from skyrocket.client.handlers import ConsumeStatus, DeadLetter, ReconsumeLater, SuspendCurrentQueue, current_message
from skyrocket.client.hooks import ConsumeContext, ConsumeHook
from skyrocket.client.message import Message, ReceivedMessage, decode_messages
from skyrocket.client.producer import Producer
from skyrocket.client.push_consumer import PushConsumer
from skyrocket.client.queue_locks import RENEW_SECONDS
from skyrocket.client.send_back import SendBack
from skyrocket.client.settings import ClientSettings
from skyrocket.client.start_position import ConsumeFromWhere, MessageModel
from skyrocket.client.subscription import SqlFilter
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.locks import QUEUE_LOCKS
from skyrocket.protocol.bodies.offsets import CONSUMER_STATUS
from skyrocket.protocol.bodies.running_info import DIRECT_CONSUMPTION
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.locks import LockBatchMq
from skyrocket.protocol.requests.offsets import GetConsumerStatus
from skyrocket.protocol.requests.server_to_client import ConsumeMessageDirectly
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.peer import Peer
from tests.client.cluster import Cluster, cluster, run_bounded, until

TOPIC, GROUP = "Orders", "Billing"
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


async def send(producer: Producer, count: int, *, topic: str = TOPIC, **rest: str) -> None:
    await producer.send(Message(topic, b"0", **rest))  # type: ignore[arg-type]
    await asyncio.gather(*(producer.send(Message(topic, b"%d" % i, **rest)) for i in range(1, count)))  # type: ignore[arg-type]


def committed(given: Cluster, *, group: str = GROUP, topic: str = TOPIC) -> int:
    """The sum over all queues."""
    total = 0
    for broker in given.brokers.values():
        config = broker.topics.find(topic)
        for queue_id in range(config.read_queues if config is not None else 0):
            total += broker.offsets.committed(group, topic, queue_id) or 0
    return total


@pytest.mark.requirement("A063", "A065", "B020", "C012", "D019", "C108")
@pytest.mark.parametrize("orderly", [False, True])
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_every_message_is_handled_once_and_committed_at_the_end(tmp_path: Path, orderly: bool, kind: str) -> None:
    async def main() -> None:
        got: list[ReceivedMessage] = []
        threads: set[str] = set()
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 50, tags="TagA")
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=orderly))

            async def handle(message: ReceivedMessage) -> None:
                assert current_message.get() is message
                got.append(message)

            def handle_plainly(message: ReceivedMessage) -> None:
                assert current_message.get() is message
                threads.add(threading.current_thread().name)
                got.append(message)

            consumer.subscribe(TOPIC, handle if kind == "async" else handle_plainly)
            async with consumer:
                await until(lambda: len(got) >= 50)
                await send(producer, 50)
                await until(lambda: len(got) >= 100)
            assert Counter(message.body for message in got) == {b"%d" % i: 2 for i in range(50)}
            assert got[0].topic == TOPIC
            assert committed(given) == 100
            assert all(name.startswith("skyrocket-Billing") for name in threads)
            assert bool(threads) == (kind == "plain")

    run_bounded(main())


def test_an_idle_consumer_stops_at_once_and_leaves_the_group(tmp_path: Path) -> None:
    async def main() -> None:
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            for orderly in (False, True):
                consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=orderly))
                consumer.subscribe(TOPIC, lambda message: None)
                await consumer.start()
                await until(lambda consumer=consumer: len(consumer.assignment) == 5)  # type: ignore[misc]
                began = time.monotonic()
                await consumer.stop()
                await consumer.stop()
                assert time.monotonic() - began < 10
                assert given.brokers["broker-a"].consumers.find_group(GROUP) is None
                await asyncio.wait_for(consumer.wait_stopped(), 60)
            assert not [task for task in asyncio.all_tasks() if GROUP in task.get_name()]

    run_bounded(main())


@pytest.mark.requirement("B035", "C141")
def test_tags_are_filtered(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[str | None] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for tag in ("A", "B", "C", "A", None, "Aa", "BB"):  # the last two have the same hash
                await producer.send(Message(TOPIC, b"x", tags=tag))
            consumer = PushConsumer(GROUP, given.names)

            @consumer.on(TOPIC, tags="A || C || BB")
            async def handle(message: ReceivedMessage) -> None:
                got.append(message.tags)

            async with consumer:
                await until(lambda: len(got) >= 4)
                await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 7)
            assert sorted(map(str, got)) == ["A", "A", "BB", "C"]

    run_bounded(main())


@pytest.mark.requirement("A083", "C036", "C041", "C118")
def test_what_fails_comes_again_and_is_then_committed(tmp_path: Path) -> None:
    async def main() -> None:
        seen: list[tuple[bytes, int, str]] = []
        ids: dict[bytes, set[str]] = {}
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 5)
            consumer = PushConsumer(GROUP, given.names)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> ConsumeStatus | None:
                seen.append((message.body, message.reconsume_times, message.topic))
                ids.setdefault(message.body, set()).add(message.message_id)
                if message.reconsume_times == 0 and message.body == b"3":
                    raise ReconsumeLater(delay_level=1)
                return ConsumeStatus.CONSUME_SUCCESS

            async with consumer:
                await until(lambda: len(seen) >= 6)
            assert seen[-1] == (b"3", 1, TOPIC)
            assert all(len(same) == 1 for same in ids.values())
            assert committed(given) == 5
            assert committed(given, topic=f"%RETRY%{GROUP}") == 1

    run_bounded(main())


@pytest.mark.requirement("C036", "C123")
@pytest.mark.parametrize("orderly", [False, True])
def test_what_fails_for_good_goes_to_the_dead_letters(tmp_path: Path, orderly: bool) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 3)
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=orderly))

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                got.append(message.body)
                if message.body == b"1":
                    raise DeadLetter("poison")

            async with consumer:
                await until(lambda: len(got) >= 3)
                await until(lambda: given.brokers["broker-a"].topics.find(f"%DLQ%{GROUP}") is not None)
            assert sorted(got) == [b"0", b"1", b"2"]
            assert committed(given) == 3
            assert given.brokers["broker-a"].store.max_offset(f"%DLQ%{GROUP}", 0) == 1

    run_bounded(main())


@pytest.mark.requirement("A091", "C038", "B037")
def test_a_message_in_order_blocks_its_queue_until_it_is_consumed(tmp_path: Path) -> None:
    async def main() -> None:
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

    run_bounded(main())


def test_in_order_too_many_failures_end_in_the_dead_letters(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for i in range(3):
                await producer.send(Message(TOPIC, b"%d" % i, sharding_key="k"))
            settings = PushConsumerSettings(orderly=True, suspend_current_queue=0.01, max_reconsume_times=2)
            consumer = PushConsumer(GROUP, given.names, settings)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                got.append(message.body)
                if message.body == b"1":
                    raise ValueError("never")

            async with consumer:
                await until(lambda: b"2" in got)
                await until(lambda: given.brokers["broker-a"].store.max_offset(f"%DLQ%{GROUP}", 0) == 1)
            assert got == [b"0", b"1", b"1", b"1", b"2"]

    run_bounded(main())


@pytest.mark.requirement("C013", "C117")
def test_batches_are_handed_over_as_lists_and_may_fail_from_the_middle(tmp_path: Path) -> None:
    async def main() -> None:
        pieces: list[list[bytes]] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for i in range(10):
                await producer.send(Message(TOPIC, b"%d" % i, sharding_key="k"))
            settings = PushConsumerSettings(consume_message_batch_max_size=4, max_concurrency=1)
            consumer = PushConsumer(GROUP, given.names, settings)

            @consumer.on(TOPIC, batch=True)
            async def handle(messages: list[ReceivedMessage]) -> None:
                pieces.append([message.body for message in messages])
                if len(pieces) == 1:
                    raise ReconsumeLater(first_failed=3, delay_level=1)

            async with consumer:
                await until(lambda: sum(map(len, pieces)) >= 11)
            assert [len(piece) for piece in pieces] == [4, 4, 2, 1]
            assert pieces[3] == [b"3"]
            assert committed(given) == 10

    run_bounded(main())


@pytest.mark.requirement("A078", "B041", "C118", "C127")
def test_one_slow_message_holds_back_the_committed_offset(tmp_path: Path) -> None:
    async def main() -> None:
        done: list[int] = []
        release = asyncio.Event()
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for i in range(10):
                await producer.send(Message(TOPIC, b"%d" % i, sharding_key="order-1001"))
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(persist_interval=0.02))

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                if message.queue_offset == 4:
                    await release.wait()
                done.append(message.queue_offset)

            async with consumer:
                await until(lambda: len(done) == 9)
                await until(lambda: committed(given) == 4)
                release.set()
                await until(lambda: committed(given) == 10)

    run_bounded(main())


@pytest.mark.requirement("A084", "A088")
def test_stop_lets_running_handlers_finish_and_commits_them(tmp_path: Path) -> None:
    async def main() -> None:
        began: list[bytes] = []
        ended: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 30)
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(max_concurrency=4))

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                began.append(message.body)
                await asyncio.sleep(0.1)
                ended.append(message.body)

            async with consumer:
                await until(lambda: len(began) >= 4)
            assert sorted(began) == sorted(ended)
            assert len(ended) < 30
            handled = list(ended)
            second = PushConsumer(GROUP, given.names)
            second.subscribe(TOPIC, lambda message: handled.append(message.body))
            async with second:
                await until(lambda: len(set(handled)) >= 30)
            assert set(handled) == {b"%d" % i for i in range(30)}

    run_bounded(main())


@pytest.mark.requirement("A069", "A070", "A071", "A072", "A086", "C128", "C074")
def test_members_share_queues_when_they_come_and_go(tmp_path: Path) -> None:
    async def main() -> None:
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

    run_bounded(main())


@pytest.mark.requirement("C146", "B002", "B037")
def test_order_is_kept_while_members_come_and_go(tmp_path: Path) -> None:
    async def main() -> None:
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
            assert given.brokers["broker-a"].locks.are_held(GROUP) is False

    run_bounded(main())


@pytest.mark.requirement("A064", "A067")
def test_broadcasting_gives_every_member_everything_and_remembers_in_a_file(tmp_path: Path) -> None:
    async def main() -> None:
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

    run_bounded(main())


@pytest.mark.requirement("A081")
def test_a_new_group_begins_where_it_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 8)
            await asyncio.sleep(0.05)
            middle = datetime.now(UTC)
            await asyncio.sleep(0.05)
            await send(producer, 4, tags="late")
            expected = {
                ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET: 12,
                ConsumeFromWhere.CONSUME_FROM_TIMESTAMP: 4,
                ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET: 0,
            }
            for number, (where, count) in enumerate(expected.items()):
                got: list[ReceivedMessage] = []
                settings = PushConsumerSettings(consume_from=where, consume_timestamp=middle, new_group_from_zero=False)
                consumer = PushConsumer(f"Group{number}", given.names, settings)
                consumer.subscribe(TOPIC, got.append)
                async with consumer:
                    await until(lambda consumer=consumer: len(consumer.assignment) == 5)  # type: ignore[misc]
                    await until(lambda got=got, count=count: len(got) >= count)  # type: ignore[misc]
                    await asyncio.sleep(0.05)
                assert len(got) == count, where

    run_bounded(main())


def test_pause_stops_pulling_and_resume_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 4)
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe(TOPIC, lambda message: got.append(message.body))
            async with consumer:
                await until(lambda: len(got) == 4)
                await until(lambda: given.brokers["broker-a"]._polling.held_count == 5)  # of four queues, and retries
                consumer.pause()
                await send(producer, 4)  # ends the polls under way
                await until(lambda: len(got) == 8)
                await send(producer, 4)
                await asyncio.sleep(0.2)
                assert len(got) == 8
                consumer.resume()
                await until(lambda: len(got) == 12)

    run_bounded(main())


@pytest.mark.requirement("A089", "C111")
def test_a_queue_is_pulled_no_further_than_its_limits_allow(tmp_path: Path) -> None:
    async def main() -> None:
        started = 0
        release = asyncio.Event()
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for _ in range(4):
                await producer.send_batch([Message(TOPIC, b"x")] * 100, queue=None)
            settings = PushConsumerSettings(pull_threshold_for_queue=40, pull_batch_size=16, max_concurrency=2)
            consumer = PushConsumer(GROUP, given.names, settings)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                nonlocal started
                started += 1
                await release.wait()

            async with consumer:
                await until(lambda: started == 2)
                in_hand = consumer._queues.in_hand
                await until(lambda: max(process_queue.count for process_queue in in_hand.values()) > 40)
                await asyncio.sleep(0.1)
                assert max(process_queue.count for process_queue in in_hand.values()) <= 56
                release.set()
                await until(lambda: started >= 400)

    run_bounded(main())


def test_a_consumer_survives_the_restart_of_its_broker(tmp_path: Path) -> None:
    async def main() -> None:
        got: Counter[bytes] = Counter()
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 5)
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe(TOPIC, lambda message: got.update([message.body]))
            async with consumer:
                await until(lambda: len(got) == 5)
                await given.stop_broker()
                await asyncio.sleep(0.3)
                await given.start_broker()
                for i in range(5, 10):
                    await producer.send(Message(TOPIC, b"%d" % i), timeout=5)
                await until(lambda: len(got) == 10)

    run_bounded(main())


@pytest.mark.requirement("C129")
def test_subscriptions_can_change_while_running(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[str] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1, topic="A")
            await send(producer, 1, topic="B")
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe("A", lambda message: got.append(message.topic))
            async with consumer:
                await until(lambda: got == ["A"])
                consumer.subscribe("B", lambda message: got.append(message.topic))
                await until(lambda: got == ["A", "B"])
                consumer.unsubscribe("A")
                await until(lambda: {queue.topic for queue in consumer.assignment} == {"B", f"%RETRY%{GROUP}"})

    run_bounded(main())


def test_a_topic_that_appears_later_is_consumed(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(consume_from=FIRST))
            consumer.subscribe("Later", lambda message: got.append(message.body))
            async with consumer:
                await asyncio.sleep(0.1)
                await producer.send(Message("Later", b"x"))
                await until(lambda: got == [b"x"])

    run_bounded(main())


def test_hooks_see_what_handlers_did(tmp_path: Path) -> None:
    async def main() -> None:
        seen: list[tuple[bool | None, str]] = []

        class Hook(ConsumeHook):
            def after_consume(self, context: ConsumeContext) -> None:
                seen.append((context.succeeded, context.status))

        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            consumer = PushConsumer(GROUP, given.names, hooks=[Hook()])

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                if message.reconsume_times == 0:
                    raise ReconsumeLater(delay_level=1)

            async with consumer:
                await until(lambda: len(seen) == 2)
            assert seen == [(False, "FAILED"), (True, "SUCCESS")]

    run_bounded(main())


@pytest.mark.requirement("C085")
def test_namespaced_groups_see_plain_names(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[tuple[str, int]] = []
        async with cluster(tmp_path) as given:
            client = ClientSettings(given.names, namespace="ns1")
            consumer = PushConsumer(GROUP, client=client, settings=PushConsumerSettings(consume_from=FIRST))

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                got.append((message.topic, message.reconsume_times))
                if message.reconsume_times == 0:
                    raise ReconsumeLater(delay_level=1)

            async with Producer("Shop", client=client) as producer:
                await producer.send(Message(TOPIC, b"x"))
                async with consumer:
                    await until(lambda: len(got) == 2)
            assert got == [(TOPIC, 0), (TOPIC, 1)]
            assert given.brokers["broker-a"].topics.find(f"%RETRY%ns1%{GROUP}") is not None

    run_bounded(main())


@pytest.mark.requirement("C107")
def test_wrong_use_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(WrongUse, match="pull_batch_size=0 is out of range: it must be between 1 and 1024"):
            PushConsumerSettings(pull_batch_size=0)
        with pytest.raises(WrongUse, match="'tomorrow' is not of the form 20260131235959"):
            PushConsumerSettings(consume_timestamp="tomorrow")
        async with cluster(tmp_path) as given:
            empty = PushConsumer(GROUP, given.names)
            with pytest.raises(IllegalSubscription, match=r"has no subscription: add one with @consumer.on\(topic\)"):
                await empty.start()
            client = ClientSettings(given.names, instance_name="shared")
            one, two = PushConsumer(GROUP, client=client), PushConsumer(GROUP, client=client)
            for consumer in (one, two):
                consumer.subscribe(TOPIC, lambda message: None)
            async with one:
                with pytest.raises(
                    GroupInUse, match=r"consumer group Billing is already used by client .*@shared: stop"
                ):
                    await two.start()
                with pytest.raises(AlreadyStarted, match="push consumer Billing was already started"):
                    await one.start()
                assert one._instance.consumers[GROUP] is one

    run_bounded(main())


@pytest.mark.requirement("A079", "A080", "C057")
def test_members_with_different_subscriptions_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            one, two = PushConsumer(GROUP, given.names), PushConsumer(GROUP, given.names)
            one.subscribe(TOPIC, lambda message: None, "A")
            await asyncio.sleep(0.01)
            two.subscribe(TOPIC, lambda message: None, "B")
            async with one, two:
                from skyrocket.client.subscription_check import SubscriptionCheck

                check = SubscriptionCheck(one._instance, GROUP)
                await check.run(list(one._subscriptions.values()))
                await check.run(list(one._subscriptions.values()))
        said = [record.getMessage() for record in caplog.records if "different things" in record.getMessage()]
        assert said == [
            "members of consumer group Billing subscribe to different things, so messages get lost: topic Orders: here "
            "'A' (TAG), another member has 'B' (TAG). Give all members the same subscriptions, or different groups"
        ]

    run_bounded(main())


@pytest.mark.requirement("A094")
@pytest.mark.parametrize("by", ["broker", "push to clients"])
def test_offsets_are_reset_from_outside_while_running(tmp_path: Path, by: str) -> None:
    async def main() -> None:
        got: list[bytes] = []
        config = BrokerConfig(server_side_reset=by == "broker")
        async with cluster(tmp_path, config=config) as given, Producer("Shop", given.names) as producer:
            await send(producer, 6)
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(persist_interval=0.05))
            consumer.subscribe(TOPIC, lambda message: got.append(message.body))
            async with consumer, Admin(given.names) as admin:
                await until(lambda: len(got) == 6)
                await until(lambda: committed(given) == 6)
                await admin.reset_offsets(GROUP, TOPIC, 0.0)
                if by == "broker":  # heard with the next pull: end those that wait
                    for queue in await producer.queues(TOPIC):
                        await producer.send(Message(TOPIC, b"new"), queue=queue)
                    await until(lambda: got.count(b"new") == 4)
                await until(lambda: sum(body != b"new" for body in got) == 12)
                got.clear()
                await consumer.reset_to(0.0)
                await until(lambda: sum(body != b"new" for body in got) == 6)

    run_bounded(main())


@pytest.mark.requirement("C106")
def test_tools_can_ask_a_running_consumer(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 2)
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe(TOPIC, lambda message: got.append(message.body), "*")
            async with consumer, Admin(given.names) as admin:
                await until(lambda: len(got) == 2)
                (member,) = (await admin.consumer_connections(GROUP)).connections
                assert member.client_id == consumer._instance.client_id
                info = await admin.running_info(GROUP, member.client_id, with_stacks=True)
                assert set(info.queues) == consumer.assignment
                assert info.properties["PROP_CONSUMEORDERLY"] == "false"
                assert "skyrocket" in (info.jstack or "")
                assert {each.topic for each in info.subscriptions} == {TOPIC, f"%RETRY%{GROUP}"}
                assert consumer.offsets_of(TOPIC).keys() <= set(consumer.assignment)
                queue = MessageQueue(TOPIC, "broker-a", 0)
                with pytest.raises(WrongUse, match="negative"):
                    await consumer.commit_offset(queue, -1)
                await consumer.commit_offset(queue, 0)
                assert given.brokers["broker-a"].offsets.committed(GROUP, TOPIC, 0) == 0

    run_bounded(main())


@pytest.mark.requirement("C042")
def test_broadcasting_drops_what_fails(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            settings = PushConsumerSettings(
                message_model=MessageModel.BROADCASTING, consume_from=FIRST, local_offsets=tmp_path / "offsets"
            )
            await send(producer, 3)
            consumer = PushConsumer(GROUP, given.names, settings)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                got.append(message.body)
                raise ValueError("nobody will see it again")

            async with consumer:
                await until(lambda: len(got) == 3)
                await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 3)
            assert given.brokers["broker-a"].topics.find(f"%RETRY%{GROUP}") is None or committed(given) == 0
            assert len(got) == 3

    run_bounded(main())


@pytest.mark.requirement("C125", "C074")
def test_a_message_that_the_broker_does_not_take_back_is_sent_to_the_retry_topic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(*_: object) -> None:
        raise WrongUse("not taken back")

    async def main() -> None:
        monkeypatch.setattr(SendBack, "_to_broker", refused)
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(max_reconsume_times=3))

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                raise ValueError("once more")

            async with consumer:
                waiting = given.brokers["broker-a"].store
                await until(lambda: waiting.max_offset("SCHEDULE_TOPIC_XXXX", 2) == 1)  # level 3
                await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 1)
            (record,) = decode_messages(b"".join(waiting.get("SCHEDULE_TOPIC_XXXX", 2, 0, 1).slices), "broker-a")
            assert record.properties["REAL_TOPIC"] == f"%RETRY%{GROUP}"
            assert record.properties["RETRY_TOPIC"] == TOPIC
            assert record.reconsume_times == 1
            assert record.properties["ORIGIN_MESSAGE_ID"] == record.message_id

    run_bounded(main())


def test_a_message_that_can_go_nowhere_stays_in_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(*_: object) -> bool:
        return False

    async def main() -> None:
        calls = 0
        monkeypatch.setattr(SendBack, "send", fails)
        monkeypatch.setattr("skyrocket.client.consumption._RESUBMIT_SECONDS", 0.05)
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            consumer = PushConsumer(GROUP, given.names)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                nonlocal calls
                calls += 1
                assert message.reconsume_times == calls - 1
                if calls < 3:
                    raise ValueError("once more")

            async with consumer:
                await until(lambda: calls == 3)
            assert committed(given) == 1

    run_bounded(main())


@pytest.mark.requirement("C116")
def test_a_handler_that_takes_too_long_does_not_hold_back_its_queue(tmp_path: Path) -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            settings = PushConsumerSettings(consume_timeout=0.1, persist_interval=0.05)
            consumer = PushConsumer(GROUP, given.names, settings)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                await release.wait()

            async with consumer:
                await until(lambda: given.brokers["broker-a"].store.max_offset("SCHEDULE_TOPIC_XXXX", 2) == 1)
                release.set()
                await until(lambda: committed(given) == 1)

    run_bounded(main())


@pytest.mark.requirement("A082", "C055")
def test_received_messages_tell_how_far_behind_they_are(tmp_path: Path) -> None:
    async def main() -> None:
        lags: list[int] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for _ in range(4):
                await producer.send(Message(TOPIC, b"x", sharding_key="k"))
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe(
                TOPIC, lambda message: lags.append(int(message.properties["MAX_OFFSET"]) - message.queue_offset)
            )
            async with consumer:
                await until(lambda: len(lags) == 4)
            assert sorted(lags) == [1, 2, 3, 4]

    run_bounded(main())


def test_tools_can_have_a_message_consumed_and_offsets_shown(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            receipt = await producer.send(Message(TOPIC, b"x"))
            consumer = PushConsumer(GROUP, given.names)

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                got.append(message.body)
                if len(got) == 3:
                    raise ValueError("not a third time")

            async with consumer, Admin(given.names) as admin:
                await until(lambda: len(got) == 1)
                address = str(given.brokers["broker-a"].identity.address)
                results = []
                for _ in range(2):
                    request = ConsumeMessageDirectly(
                        consumer_group=GROUP,
                        client_id=consumer._instance.client_id,
                        msg_id=receipt.offset_message_id,
                        broker_name="broker-a",
                        topic=TOPIC,
                    )
                    reply = await admin._instance.remoting.call(address, request)
                    results.append(DIRECT_CONSUMPTION.decode(reply.body))
                assert [result.result for result in results] == ["CR_SUCCESS", "CR_THROW_EXCEPTION"]
                assert results[1].remark == "ValueError('not a third time')"
                status = await admin._instance.remoting.call(address, GetConsumerStatus(topic=TOPIC, group=GROUP))
                by_client = CONSUMER_STATUS.decode(status.body).by_client
                assert sum(by_client[consumer._instance.client_id].values()) == 1
            assert len(got) == 3

    run_bounded(main())


def test_a_queue_that_is_being_left_is_unlocked_when_its_consumer_stops(tmp_path: Path) -> None:
    async def main() -> None:
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
            second = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True))
            second.subscribe(TOPIC, lambda message: None)
            async with second:
                await until(lambda: len(first._queues.leaving) >= 2)
                stopping = asyncio.create_task(first.stop())
                await asyncio.sleep(0.1)
                release.set()
                await stopping
                await until(lambda: sum(queue.topic == TOPIC for queue in second.assignment) == 4)
            assert committed(given) == 4

    run_bounded(main())


def test_an_sql_filter_chooses_by_properties_and_a_broken_one_is_refused_at_the_start(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        config = BrokerConfig(property_filter=True)
        async with cluster(tmp_path, config=config) as given, Producer("Shop", given.names) as producer:
            for i in range(6):
                await producer.send(Message(TOPIC, b"%d" % i, properties={"price": str(i)}))
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(consume_from=FIRST))

            @consumer.on(TOPIC, sql="price > 3")
            async def handle(message: ReceivedMessage) -> None:
                got.append(message.body)

            async with consumer:
                await until(lambda: sum(consumer.offsets_of(TOPIC).values()) == 6)
            assert sorted(got) == [b"4", b"5"]
            broken = PushConsumer("Other", given.names)
            broken.subscribe(TOPIC, handle, SqlFilter("price >"))
            with pytest.raises(BrokerRefused, match=r"the filter 'price >' was refused by broker .* code 23"):
                await broken.start()

    run_bounded(main())


def seen_by_broker(given: Cluster, code: RequestCode) -> list[RemotingCommand]:
    """Grows with every request of this code; the broker answers as usual."""
    route = given.brokers["broker-a"]._router._routes[code]
    own, seen = route.handler, list[RemotingCommand]()

    def handler(peer: Peer, request: RemotingCommand) -> Outcome:
        seen.append(request)
        return own(peer, request)

    route.handler = handler
    return seen


@pytest.mark.requirement("C115", "E015")
def test_a_pull_names_its_queue_and_offset_and_wants_32_messages_that_are_handled_one_by_one(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[int] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            for _ in range(40):
                await producer.send(Message(TOPIC, b"x", sharding_key="k"))
            (queue_id,) = {each for each in range(4) if given.brokers["broker-a"].store.max_offset(TOPIC, each)}
            pulls = seen_by_broker(given, RequestCode.PULL_MESSAGE)
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe(TOPIC, lambda messages: got.append(len(messages)), batch=True)
            async with consumer:
                await until(lambda: len(got) == 40)
            assert got == [1] * 40
            fields = [pull.ext_fields or {} for pull in pulls]
            asked = [each for each in fields if (each["topic"], each["queueId"]) == (TOPIC, str(queue_id))]
            assert list(dict.fromkeys(each["queueOffset"] for each in asked)) == ["0", "32", "40"]
            assert {(each["maxMsgNums"], each["consumerGroup"]) for each in asked} == {("32", GROUP)}

    run_bounded(main())


@pytest.mark.requirement("C106")
def test_only_a_group_that_shares_messages_has_a_retry_topic(tmp_path: Path) -> None:
    async def main() -> None:
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 1)
            for model, topics in (("CLUSTERING", {TOPIC, f"%RETRY%{GROUP}"}), ("BROADCASTING", {TOPIC})):
                settings = PushConsumerSettings(MessageModel(model), local_offsets=tmp_path / "offsets")
                consumer = PushConsumer(GROUP, given.names, settings)
                consumer.subscribe(TOPIC, lambda message: None)
                async with consumer, Admin(given.names) as admin:
                    await until(lambda consumer=consumer: len(consumer.assignment) >= 4)  # type: ignore[misc]
                    info = await admin.running_info(GROUP, consumer._instance.client_id)
                    assert {each.topic for each in info.subscriptions} == topics

    run_bounded(main())


@pytest.mark.requirement("C149")
def test_in_order_a_queue_that_another_member_has_locked_waits_until_it_is_free(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[int] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await producer.send(Message(TOPIC, b"x"))
            for queue in await producer.queues(TOPIC):
                await producer.send(Message(TOPIC, b"x"), queue=queue)
            held, locks = MessageQueue(TOPIC, "broker-a", 2), given.brokers["broker-a"].locks
            assert locks.lock(GROUP, "another", [held]) == (held,)
            consumer = PushConsumer(GROUP, given.names, PushConsumerSettings(orderly=True, consume_from=FIRST))
            consumer.subscribe(TOPIC, lambda message: got.append(message.queue_id))
            async with consumer:
                await until(lambda: {0, 1, 3} <= set(got))
                await asyncio.sleep(0.2)
                assert 2 not in got
                locks.unlock(GROUP, "another", [held])
                await until(lambda: 2 in got)

    run_bounded(main())


@pytest.mark.requirement("C043")
def test_what_failed_at_one_member_may_come_again_at_another(tmp_path: Path) -> None:
    async def main() -> None:
        first: dict[bytes, str] = {}
        again: dict[bytes, str] = {}

        def member(given: Cluster, name: str) -> PushConsumer:
            client = ClientSettings(given.names, instance_name=name)
            consumer = PushConsumer(GROUP, client=client, settings=PushConsumerSettings(consume_from=FIRST))

            @consumer.on(TOPIC)
            async def handle(message: ReceivedMessage) -> None:
                (again if message.reconsume_times else first)[message.body] = name
                if not message.reconsume_times:
                    raise ReconsumeLater(delay_level=1)

            return consumer

        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            given.brokers["broker-a"].topics.ensure(TOPIC, 4)
            await given.brokers["broker-a"]._registration.register()
            async with member(given, "one") as one, member(given, "two") as two:
                await until(lambda: all(sum(q.topic == TOPIC for q in m.assignment) == 2 for m in (one, two)))
                for number, queue in enumerate(await producer.queues(TOPIC)):
                    await producer.send(Message(TOPIC, b"%d" % number), queue=queue)
                await until(lambda: len(again) == 4)
            assert set(first.values()) == {"one", "two"}
            assert len(set(again.values())) == 1  # the retry topic has one queue

    run_bounded(main())


@pytest.mark.requirement("C130")
def test_a_queue_that_was_not_pulled_for_two_minutes_is_dropped_and_begun_anew(tmp_path: Path) -> None:
    async def main() -> None:
        got: list[bytes] = []
        async with cluster(tmp_path) as given, Producer("Shop", given.names) as producer:
            await send(producer, 4)
            consumer = PushConsumer(GROUP, given.names)
            consumer.subscribe(TOPIC, lambda message: got.append(message.body))
            async with consumer:
                await until(lambda: len(got) == 4)
                await until(lambda: given.brokers["broker-a"]._polling.held_count == 5)  # of four queues, and retries
                queues = consumer._queues
                before = {queue: queues.in_hand[queue] for queue in queues.of_topic(TOPIC)}
                stuck, other, *_ = sorted(before)
                before[stuck].last_pulled -= 121
                before[other].last_pulled -= 100
                await queues.have(TOPIC, set(before), {TOPIC, f"%RETRY%{GROUP}"})
                assert [queue for queue in before if before[queue].is_dropped] == [stuck]
                await until(lambda: stuck in queues.in_hand or stuck not in queues.leaving)
                await queues.have(TOPIC, set(before), {TOPIC, f"%RETRY%{GROUP}"})
                await send(producer, 8)
                await until(lambda: len(got) == 12)

    run_bounded(main())


@pytest.mark.requirement("C148")
def test_locks_are_renewed_in_one_request_to_each_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, asked = RemotingClient.call, list[tuple[float, float, str, int]]()

    async def call(client: RemotingClient, address: str, request: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(request, LockBatchMq):
            count = len(QUEUE_LOCKS.decode(rest[0]).queues)
            asked.append((time.monotonic(), options["timeout_seconds"], address, count))
        return await own(client, address, request, *rest, **options)

    async def main() -> None:
        assert RENEW_SECONDS == 20.0
        monkeypatch.setattr("skyrocket.client.push_consumer.RENEW_SECONDS", 0.4)
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

    run_bounded(main())
