"""Fail-overs one after the other, under load: masters are killed while Java's producer and ours send.

At the end nothing acknowledged is missing, each queue is in order, and all logs are the same byte by byte. How often:
FAILOVERS, 50 unless it says otherwise; with `-o log_cli=true -o log_cli_level=INFO` it tells what happens.
"""

import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from tests.interop.apache import Apache
from tests.interop.failover.loads import JavaLoad, Load, OurLoad
from tests.interop.failover.sets import SECONDS, FailoverSet, Makers, failover_set
from tests.waiting import wait_until

_logger = logging.getLogger(__name__)

TIMES: Final = int(os.environ.get("FAILOVERS") or 50)
# Both makers look for what changed more often than every five seconds, or fifty fail-overs were mostly waits.
_BROKERS: Final = {"syncBrokerMetadataPeriod": 500, "checkSyncStateSetPeriod": 500}
_CONTROLLER: Final = {"scanNotActiveBrokerInterval": 500, "scanInactiveMasterInterval": 500}
_BETWEEN: Final = 10  # messages that each load has acknowledged between two events


def kill_masters_of_a_set(makers: Makers, folder: Path, apache: Apache, times: int = TIMES) -> None:
    """The whole story with both loads; raises what is lost, out of order or different."""
    with failover_set(makers, folder, apache, broker_settings=_BROKERS, controller_settings=_CONTROLLER) as replicas:
        replicas.create_topics(OurLoad.topic, JavaLoad.topic)
        with OurLoad(replicas.names) as ours, JavaLoad(apache, folder, replicas.names) as javas:
            fail_over(replicas, [ours, javas], times)
            replicas.check([ours, javas])


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
