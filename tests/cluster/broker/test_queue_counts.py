"""Topics with very many queues: how many a topic may have, and that nobody waits while all of them are visited."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.broker.core.slices import Slices
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.statistics import TopicStats
from skyrocket.protocol.errors import InvalidParameter, SystemBusy
from skyrocket.protocol.requests.admin_broker import UpdateBrokerConfig
from skyrocket.protocol.requests.admin_groups import UpdateAndCreateSubscriptionGroup
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo, UpdateAndCreateTopic
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import RunningBroker, running_broker

MOST = 4096


def topic(read: int, write: int, name: str = "Wide") -> UpdateAndCreateTopic:
    return UpdateAndCreateTopic(
        topic=name,
        default_topic="TBW102",
        read_queue_nums=read,
        write_queue_nums=write,
        perm=6,
        topic_filter_type="SINGLE_TAG",
        order=False,
    )


@pytest.mark.parametrize(("read", "write"), [(2**31 - 1, 4), (4, 2**31 - 1), (MOST + 1, MOST), (MOST, MOST + 1)])
async def test_a_topic_with_more_queues_than_the_setting_allows_is_refused_by_its_name(
    tmp_path: Path, read: int, write: int
) -> None:
    async with running_broker(tmp_path) as given:
        with pytest.raises(InvalidParameter, match=rf"{max(read, write)} queues.*{MOST}.*maxTopicQueueNums"):
            await given.client.call(given.address, topic(read, write))
        await given.client.call(given.address, topic(MOST, MOST))


async def test_a_group_whose_retry_topic_would_have_more_queues_is_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        body = SUBSCRIPTION_GROUP.encode(SubscriptionGroup("G", retry_queues=2**31 - 1))
        with pytest.raises(InvalidParameter, match="maxTopicQueueNums"):
            await given.client.call(given.address, UpdateAndCreateSubscriptionGroup(), body)


async def test_the_number_can_be_changed_while_the_broker_runs_and_a_wide_topic_stays_what_it_is(
    tmp_path: Path,
) -> None:
    async with running_broker(tmp_path, BrokerConfig(max_topic_queues=8)) as given:
        with pytest.raises(InvalidParameter):
            await given.client.call(given.address, topic(9, 9))
        await given.client.call(given.address, UpdateBrokerConfig(), b"maxTopicQueueNums=9")
        await given.client.call(given.address, topic(9, 9))
        await given.client.call(given.address, UpdateBrokerConfig(), b"maxTopicQueueNums=8")
        await given.client.call(given.address, topic(9, 4))  # as many as it has: somebody else made it so
        with pytest.raises(InvalidParameter):
            await given.client.call(given.address, topic(9, 10))


async def test_statistics_of_all_queues_leave_the_loop_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyrocket.broker.core.slices._SLICE_SECONDS", 0)  # every queue is a slice
    async with running_broker(tmp_path) as given:
        await given.client.call(given.address, topic(MOST, MOST))
        asked = asyncio.create_task(_statistics(given))
        turns = 0
        while not asked.done():
            await asyncio.sleep(0)
            turns += 1
        assert len(await asked) == MOST
        assert turns > MOST


async def _statistics(given: RunningBroker) -> list[int]:
    reply = await given.client.call(given.address, GetTopicStatsInfo(topic="Wide"), timeout_seconds=30)
    return [queue.queue_id for queue in TopicStats.decode(reply.body).offsets]


async def test_only_one_long_walk_has_a_slice_in_a_turn() -> None:
    clock = FakeClock()
    slices = Slices(clock)
    visited: list[str] = []

    def visit(item: str) -> str:
        visited.append(item)
        clock.advance(seconds=1)  # each is a slice of its own
        return item.upper()

    first, second = await asyncio.gather(slices.map(visit, ["a", "b", "c"]), slices.map(visit, ["x", "y"]))
    assert (first, second) == (["A", "B", "C"], ["X", "Y"])
    assert visited == ["a", "b", "c", "x", "y"]


async def test_when_too_many_walks_wait_the_next_one_is_told_to_come_later() -> None:
    clock = FakeClock()
    slices = Slices(clock)

    def visit(_: int) -> None:
        clock.advance(seconds=1)

    outcomes = await asyncio.gather(*(slices.map(visit, range(2)) for _ in range(70)), return_exceptions=True)
    assert [isinstance(outcome, SystemBusy) for outcome in outcomes] == [False] * 64 + [True] * 6
    assert await slices.map(visit, range(2)) == [None, None]
