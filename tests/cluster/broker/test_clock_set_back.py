"""The wall clock is set back an hour while messages and requests wait: what was asked for as a delay stays one."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.broker.pop.feature import PopFeature
from skyrocket.broker.pull.feature import PullFeature
from skyrocket.broker.transactions.feature import TransactionsFeature
from skyrocket.clock import SteadyClock
from skyrocket.config.sections import BrokerConfig
from skyrocket.format.record import decode_records
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.transaction import COMMIT
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import RunningBroker, running_broker
from tests.cluster.broker.test_pop import messages, pop
from tests.cluster.broker.transaction_producer import TransactionProducer
from tests.waiting import until

HOUR_MS = 3_600_000


def set_back(wall: FakeClock) -> None:
    wall.set(wall.now_ms() - HOUR_MS)


async def bodies(given: RunningBroker) -> list[bytes]:
    return [record.body for record in decode_records((await given.pull()).body)]


@pytest.mark.parametrize("asked", ["DELAY\x013\x02", "TIMER_DELAY_SEC\x0110\x02", "TIMER_DELAY_MS\x0110000\x02"])
async def test_a_delayed_message_comes_after_its_delay(tmp_path: Path, asked: str) -> None:
    wall = FakeClock()
    async with running_broker(tmp_path, clock=SteadyClock(wall)) as given:
        await given.send(b"before", properties=asked)
        set_back(wall)
        await given.send(b"after", properties=asked)
        wall.advance(seconds=9)
        await asyncio.sleep(0.5)  # some looks of the service that would deliver
        assert await bodies(given) == []
        wall.advance(seconds=3)
        async with asyncio.timeout(60):
            while await bodies(given) != [b"before", b"after"]:
                await asyncio.sleep(0.05)


async def test_a_popped_message_comes_again_after_its_invisible_time(tmp_path: Path) -> None:
    wall = FakeClock()
    async with running_broker(tmp_path, clock=SteadyClock(wall)) as given:
        await given.send(b"x")
        assert len(messages(await pop(given, invisible_time=10_000))) == 1
        set_back(wall)
        async with asyncio.timeout(60):
            while not (found := messages(await pop(given))):
                wall.advance(seconds=1)
                await asyncio.sleep(0.05)
        assert found[0].message.body == b"x"
        assert wall.monotonic() < 120


async def test_polls_that_are_held_end_in_time(tmp_path: Path) -> None:
    wall = FakeClock()
    async with running_broker(tmp_path, clock=SteadyClock(wall)) as given:
        await given.beat()
        await given.send(b"x")
        offset = (await given.pull()).header.max_offset
        assert messages(await pop(given))
        popping = asyncio.create_task(pop(given, born_time=wall.now_ms(), poll_time=15_000))
        pulling = asyncio.create_task(given.pull(offset, suspend_ms=15_000))
        held_pops, held_pulls = given.broker.feature(PopFeature).polling.pops, given.broker.feature(PullFeature).polling
        await until(lambda: held_pops.held_count == 1 and held_pulls.held_count == 1)
        set_back(wall)
        wall.advance(seconds=16)
        assert (await popping).code == ResponseCode.POLLING_TIMEOUT
        assert (await pulling).code == ResponseCode.PULL_NOT_FOUND


async def test_a_pop_of_a_client_whose_clock_was_set_back_too_is_held(tmp_path: Path) -> None:
    wall = FakeClock()
    async with running_broker(tmp_path, clock=SteadyClock(wall)) as given:
        await given.send(b"x")
        set_back(wall)
        assert messages(await pop(given))
        popping = asyncio.create_task(pop(given, born_time=wall.now_ms(), poll_time=15_000))
        await until(lambda: given.broker.feature(PopFeature).polling.pops.held_count == 1)
        wall.advance(seconds=16)
        assert (await popping).code == ResponseCode.POLLING_TIMEOUT


@pytest.mark.parametrize("immunity", [{}, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "40"}])
async def test_producers_are_asked_about_transactions_after_the_immunity_time(
    tmp_path: Path, immunity: dict[str, str]
) -> None:
    wall = FakeClock()
    config = BrokerConfig(transaction_timeout_ms=6000, transaction_check_interval_ms=30_000)
    async with (
        running_broker(tmp_path, config, clock=SteadyClock(wall)) as given,
        TransactionProducer(given.address, {b"one": COMMIT, b"two": COMMIT}) as producer,
    ):
        check = given.broker.feature(TransactionsFeature).check
        await producer.begin(b"one", wall.now_ms(), **immunity)
        set_back(wall)
        await producer.begin(b"two", wall.now_ms(), **immunity)
        assert check.check_once(given.broker.parts.clock.now_ms() + 1).asked == 0
        async with asyncio.timeout(60):
            while await bodies(given) != [b"one", b"two"]:
                wall.advance(seconds=5)
                await asyncio.sleep(0.15)
        assert wall.monotonic() < 200
