"""Our consumers and Java's in one group: both compute the same shares, and order is kept while members come and go.

Beside Skyrocket and Apache RocketMQ 5.4.0 runs the Java client 5.4.0, beside 4.9.7 that of 4.9.7.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import pytest

from skyrocket.client import (
    Admin,
    Averagely,
    ClientError,
    ClientSettings,
    ConsumeFromWhere,
    Message,
    Producer,
    PushConsumer,
    PushConsumerSettings,
    ReceivedMessage,
)
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, running
from tests.interop.client_kinds import JAVA_49, JAVA_54, launch_of
from tests.interop.client_program import ClientProgram, running_client
from tests.waiting import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

TOPIC, GROUP = "Mixed", "Billing"
Given: TypeAlias = tuple[str, int, int]  # member, queue, queue offset
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


class Mixed:
    """A server, a Java program that can run consumers, and what ours were given."""

    def __init__(self, names: str, java: ClientProgram) -> None:
        self.names = names
        self.java = java
        self.members: dict[str, PushConsumer] = {}  # by instance name
        self.log: list[Given] = []

    async def join(self, name: str, *, orderly: bool = False) -> None:
        settings = PushConsumerSettings(consume_from=FIRST, orderly=orderly)
        consumer = PushConsumer(GROUP, self.names, settings, client=ClientSettings(instance_name=name))

        @consumer.on(TOPIC)
        async def handle(message: ReceivedMessage) -> None:
            self.log.append((name, message.queue_id, message.queue_offset))

        await consumer.start()
        self.members[name] = consumer

    async def java_joins(self, name: str, *, orderly: bool = False) -> None:
        await asyncio.to_thread(self.java.consume, name, GROUP, TOPIC, orderly=orderly)

    async def stop(self) -> None:
        for consumer in self.members.values():
            await consumer.stop()


@pytest.fixture(params=SERVER_PARAMETERS)
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mixed]:
    kind = JAVA_49 if request.param == "4.9.7" else JAVA_54
    launch = launch_of(kind)
    if isinstance(launch, str):
        pytest.skip(f"no {kind} client: {launch}")
    home = tmp_path / "java"
    home.mkdir()
    assert request.param == OURS or request.param in str(kind)
    with (
        running(request.param, tmp_path) as servers,
        running_client(launch.command(servers.names, home), launch.environment, home) as java,
    ):
        yield Mixed(servers.names, java)


async def shares_are_as_computed(mixed: Mixed, admin: Admin, members: int) -> dict[str, set[int]]:
    """Wait until every member has exactly the queues that the common rule gives it; returns them by member."""
    queues = sorted(await admin.queues(TOPIC))
    found: dict[str, set[int]] = {}
    for _ in range(300):
        with contextlib.suppress(ClientError):  # a member that is just coming or going cannot be asked
            ids = sorted(each.client_id or "" for each in (await admin.consumer_connections(GROUP)).connections)
            found = {identity.partition("@")[2]: await _queues_of(mixed, admin, identity) for identity in ids}
            rule = {
                identity.partition("@")[2]: {queue.queue_id for queue in Averagely()(GROUP, identity, queues, ids)}
                for identity in ids
            }
            if len(ids) == members and found == rule:
                return found
        await asyncio.sleep(0.2)
    raise AssertionError(f"the members do not share the queues as computed: {found}")


async def _queues_of(mixed: Mixed, admin: Admin, identity: str) -> set[int]:
    ours = mixed.members.get(identity.partition("@")[2])
    # Java says itself what it has.
    held = (await admin.running_info(GROUP, identity)).queues if ours is None else ours.assignment
    return {queue.queue_id for queue in held if queue.topic == TOPIC}


async def topic_with(admin: Admin, queues: int) -> None:
    await admin.create_topic(TOPIC, queues)
    for _ in range(1000):
        with contextlib.suppress(ClientError):
            if len(await admin.queues(TOPIC)) == queues:
                return
        await asyncio.sleep(0.05)
    raise AssertionError("the topic did not appear")


@pytest.mark.slow  # the other test looks at shares as well, with fewer members
async def test_a_group_of_python_and_java_members_shares_queues_as_both_compute(mixed: Mixed) -> None:
    async with Admin(mixed.names) as admin, Producer("Shop", mixed.names) as producer:
        await topic_with(admin, 8)
        await mixed.join("b-python")
        await shares_are_as_computed(mixed, admin, 1)
        await mixed.java_joins("a-java")
        await shares_are_as_computed(mixed, admin, 2)
        await mixed.join("d-python")
        await mixed.java_joins("c-java")
        shares = await shares_are_as_computed(mixed, admin, 4)
        assert sorted(len(queues) for queues in shares.values()) == [2, 2, 2, 2]
        await asyncio.gather(*(producer.send(Message(TOPIC, b"%d" % i)) for i in range(80)))
        for _ in range(150):
            given: list[Given] = [*mixed.log]
            for name in ("a-java", "c-java"):
                from_java = await asyncio.to_thread(mixed.java.deliveries, name)
                given += [(name, each.queue_id, each.queue_offset) for each in from_java]
            if len(given) >= 80:
                break
            await asyncio.sleep(0.2)
        assert len(given) == len({(queue, offset) for _, queue, offset in given}) == 80
        assert all(queue in shares[name] for name, queue, _ in given)
        await asyncio.to_thread(mixed.java.stop, "a-java")
        await shares_are_as_computed(mixed, admin, 3)
        await mixed.members.pop("b-python").stop()
        await shares_are_as_computed(mixed, admin, 2)
        await mixed.stop()


async def test_order_is_kept_when_queues_move_between_python_and_java(mixed: Mixed) -> None:
    sent = 0
    async with Admin(mixed.names) as admin, Producer("Shop", mixed.names) as producer:
        await topic_with(admin, 4)

        async def keep_sending() -> None:
            nonlocal sent
            while True:
                await producer.send(Message(TOPIC, b"%d" % sent))
                sent += 1
                await asyncio.sleep(0.01)

        await mixed.join("b-python", orderly=True)
        sending = asyncio.create_task(keep_sending())
        await until(lambda: len(mixed.log) > 50)
        await mixed.java_joins("a-java", orderly=True)
        await shares_are_as_computed(mixed, admin, 2)
        await moves_on(mixed, 50)
        await mixed.join("c-python", orderly=True)
        await shares_are_as_computed(mixed, admin, 3)
        await moves_on(mixed, 50)
        await mixed.members.pop("b-python").stop()
        await shares_are_as_computed(mixed, admin, 2)
        await moves_on(mixed, 50)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        ends = {each.queue_id: await admin.max_offset(each) for each in await admin.queues(TOPIC)}
        log = await all_of(mixed, ends)
        await mixed.stop()
    for queue_id, end in ends.items():
        each_in_order(log, queue_id, end)


async def moves_on(mixed: Mixed, count: int) -> None:
    """Both kinds of members are given messages."""
    ours, java = len(mixed.log), len(await asyncio.to_thread(mixed.java.deliveries, "a-java"))
    for _ in range(300):
        if (
            len(mixed.log) > ours + count
            and len(await asyncio.to_thread(mixed.java.deliveries, "a-java")) > java + count
        ):
            return
        await asyncio.sleep(0.2)
    raise AssertionError("a member gets nothing any more")


async def all_of(mixed: Mixed, ends: dict[int, int]) -> list[Given]:
    """What all members were given, once nothing is missing."""
    log: list[Given] = []
    for _ in range(300):
        given = await asyncio.to_thread(mixed.java.deliveries, "a-java")
        log = mixed.log + [("a-java", each.queue_id, each.queue_offset) for each in given]
        if len({(queue, offset) for _, queue, offset in log}) >= sum(ends.values()):
            return log
        await asyncio.sleep(0.2)
    raise AssertionError(f"{len(log)} of {sum(ends.values())}")


def each_in_order(log: list[Given], queue_id: int, end: int) -> None:
    """Every member went forward, nothing is missing, and no queue was worked on by two members at once."""
    stints: dict[int, str] = {}
    for member in ("a-java", "b-python", "c-python"):
        offsets = [offset for name, queue, offset in log if queue == queue_id and name == member]
        assert offsets == sorted(set(offsets)), f"{member} went back in queue {queue_id}: {offsets}"
        for offset in offsets:
            assert offset not in stints, f"queue {queue_id}: offset {offset} was given to {member} and {stints[offset]}"
            stints[offset] = member
    assert sorted(stints) == list(range(end))
    owners = [stints[offset] for offset in range(end)]
    # It changes hands at most once for each of the three times that a member comes or goes.
    assert sum(one != other for one, other in pairwise(owners)) <= 3, f"queue {queue_id}: {owners}"
