"""For tests: a whole cluster in the process with a clock that can be moved, and stand-ins for clock and disk.

    with LocalCluster() as mq:                       # AsyncLocalCluster in an event loop
        mq.create_topic("Orders")
        …                                            # any RocketMQ client at mq.name_server_address
        mq.advance(hours=2)                          # delayed messages, retries and expiry happen, in order

`pytest` finds the fixtures `rocketmq` and `rocketmq_session` by itself. What is named here is imported when it is used:
a test run that needs no cluster does not load one.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyrocket.testing.async_cluster import AsyncLocalCluster
    from skyrocket.testing.clock import FakeClock
    from skyrocket.testing.faulty_disk import FaultyDisk
    from skyrocket.testing.local_cluster import LocalCluster
    from skyrocket.testing.movable_clock import MovableClock

__all__ = ["AsyncLocalCluster", "FakeClock", "FaultyDisk", "LocalCluster", "MovableClock"]

_HOMES = {
    "AsyncLocalCluster": "async_cluster",
    "FakeClock": "clock",
    "FaultyDisk": "faulty_disk",
    "LocalCluster": "local_cluster",
    "MovableClock": "movable_clock",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
