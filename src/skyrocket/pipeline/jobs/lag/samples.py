"""Snapshots of how far groups are: from the brokers of a cluster, or from the files of a store directory.

A sample is a fact at a moment: end of a queue, and where a group goes on in it. What time the first waiting message has
waited is found afterwards, in the messages themselves (`lag`): a log does not change behind a consumer.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from skyrocket.client import NoRoute, NotFound, QueueLag, blocking
from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import ConfigError, DataError
from skyrocket.format.config_files import CONSUMER_OFFSETS, split_offset_key
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.system_groups import is_system_group

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings

SAMPLES: Final = pa.schema(
    [
        ("sampledMs", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("brokerName", pa.string()),
        ("queueId", pa.int32()),
        ("brokerOffset", pa.int64()),
        ("consumerOffset", pa.int64()),
    ]
)


class Sample(NamedTuple):
    """How far a group was in one queue at one moment."""

    sampled_ms: int
    group: str
    topic: str
    broker_name: str
    queue_id: int
    broker_offset: int
    consumer_offset: int


def samples_table(samples: Iterable[Sample]) -> pa.Table:
    """As the table that the functions of `lag` take."""
    rows = [each._replace(consumer_offset=max(each.consumer_offset, 0)) for each in samples]
    return pa.Table.from_pylist([dict(zip(SAMPLES.names, row, strict=True)) for row in rows], SAMPLES)


# ── from a cluster ───────────────────────────────────────────────────────────────────────────────────────────────────


def watch(
    cluster: "ClientSettings",
    groups: Sequence[str],
    topics: Sequence[str] = (),
    *,
    every_s: float = 10.0,
    for_s: float = 0.0,
    clock: Clock | None = None,
    wait: Callable[[float], None] = time.sleep,
    on_round: Callable[[int], None] = lambda _: None,
) -> list[Sample]:
    """Ask for some time, or once; without groups all that have ever consumed. Raises ConfigError or ClientError."""
    if every_s <= 0 or for_s < 0:
        raise ConfigError("--every must be more than nothing, --for must not be negative")
    clock = clock or SystemClock()
    found: list[Sample] = []
    with blocking.Admin(client=cluster) as admin:
        rounds = 1 + int(for_s / every_s + 1e-9)
        begin = clock.monotonic()
        for number in range(rounds):
            wait(max(0.0, begin + number * every_s - clock.monotonic()))
            of_round = groups or sorted(_groups_of(admin))
            found += _one_round(admin, of_round, topics, clock.now_ms(), are_named=bool(groups))
            on_round(rounds - number - 1)
    return found


def _one_round(
    admin: blocking.Admin, groups: Sequence[str], topics: Sequence[str], now_ms: int, *, are_named: bool
) -> Iterator[Sample]:
    for group in groups:
        for lag in _lags(admin, group, is_named=are_named):
            if not topics or lag.queue.topic in topics:
                yield Sample(now_ms, group, *lag.queue, lag.broker_offset, lag.consumer_offset)


def _groups_of(admin: blocking.Admin) -> dict[str, SubscriptionGroup]:
    """Groups of applications, as users of the namespace call them."""
    return {name: group for name, group in admin.groups().items() if not is_system_group(name)}


def _lags(admin: blocking.Admin, group: str, *, is_named: bool) -> list[QueueLag]:
    try:
        return admin.consumer_lag(group)
    except (NoRoute, NotFound) as error:
        if is_named:
            # Not with the client's own advice: nobody should create a retry topic by hand because of a misspelt group.
            raise ConfigError(
                f"group {group} has not consumed anything here: check its name, the namespace and --namesrv"
            ) from error
        return []  # known, but nobody ever came with it


def ordered_groups(cluster: "ClientSettings") -> set[str]:
    """Groups that are declared to consume in order."""
    with blocking.Admin(client=cluster) as admin:
        return {name for name, group in _groups_of(admin).items() if group.consumes_orderly}


# ── from a store directory ───────────────────────────────────────────────────────────────────────────────────────────


class Committed(NamedTuple):
    """What a broker's file says: where a group goes on in a queue."""

    group: str
    topic: str
    queue_id: int
    offset: int


def committed_in(store: Path, groups: Sequence[str], topics: Sequence[str] = ()) -> list[Committed]:
    """From `config/consumerOffset.json`; raises ConfigError where it cannot be read or does not know a group."""
    path = store / "config" / "consumerOffset.json"
    try:
        table = CONSUMER_OFFSETS.decode(path.read_bytes()).offsets
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist: give the store directory of a broker, with its config") from None
    except (OSError, DataError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; a broker keeps a copy beside it (.bak)") from error
    found = []
    for key, queues in table.items():
        names = split_offset_key(key)
        if names is None or (groups and names[1] not in groups) or (topics and names[0] not in topics):
            continue
        found += [Committed(names[1], names[0], queue_id, offset) for queue_id, offset in queues.items()]
    unknown = set(groups) - {each.group for each in found}
    if unknown:
        raise ConfigError(f"{path} has no offsets of group {', '.join(sorted(unknown))}: check the name and --topic")
    return found
