"""The task that shares queues."""

import asyncio
from typing import Any, cast

import pytest

from skyrocket.client.consumer import rebalance
from skyrocket.client.consumer.allocation import Averagely
from skyrocket.client.consumer.rebalance import Rebalancer
from skyrocket.client.consumer.start_position import MessageModel


async def test_it_ends_also_when_it_is_woken_and_cancelled_in_one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that leaves makes brokers tell the others, just when these stop too: one of them ran on for ever."""
    monkeypatch.setattr(rebalance, "MIN_INTERVAL", 0.0)
    rebalancer = Rebalancer(cast(Any, None), "Billing", MessageModel.CLUSTERING, Averagely(), list, cast(Any, None))
    task = asyncio.create_task(rebalancer.run())
    for _ in range(10):  # until it waits
        await asyncio.sleep(0)
    rebalancer.soon()
    await asyncio.sleep(0)  # what waited for the event is done now, and its own task has not run yet
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=10)
    task.cancel()
    assert done, "the cancellation was lost"
