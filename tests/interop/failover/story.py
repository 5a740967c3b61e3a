"""Fail-overs one after the other, under load."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.interop.failover.loads import Load
from tests.interop.failover.sets import SECONDS, FailoverSet
from tests.waiting import wait_until

_logger = logging.getLogger(__name__)

_BETWEEN: Final = 10  # messages that each load has acknowledged between two events


def fail_over(replicas: FailoverSet, loads: Sequence[Load], times: int) -> None:
    """Kill the master so often; each time another takes messages before the killed one comes back."""
    for number in range(times):
        _await_more(loads)
        victim = replicas.kill_master()
        _await_more(loads)
        victim.start()
        info = replicas.await_whole()
        way = f"{type(victim).__name__} to {type(replicas.at(info.master_address)).__name__}"
        acknowledged = sum(load.count() for load in loads)
        _logger.info("fail-over %d, %s: epoch %s, %d acknowledged", number + 1, way, info.master_epoch, acknowledged)
    _await_more(loads)
    for load in loads:
        load.end()


def _await_more(loads: Sequence[Load]) -> None:
    for load in loads:
        wanted = load.count() + _BETWEEN
        wait_until(partial(_has, load, wanted), f"messages of {load.topic} are acknowledged", seconds=SECONDS)


def _has(load: Load, wanted: int) -> bool:
    return load.count() >= wanted
