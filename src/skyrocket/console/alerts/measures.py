"""The values that rules look at, by name."""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from skyrocket.client.admin.side_by_side import each
from skyrocket.client.core.errors import BrokerRefused, NoNameServer
from skyrocket.console.alerts.queue_progress import QueueProgress, skew_of
from skyrocket.console.alerts.rules import Kind
from skyrocket.console.cluster.runtime import BrokerState
from skyrocket.console.cluster.view import ClusterView
from skyrocket.console.history.recorder import TOPICS_A_MINUTE
from skyrocket.console.history.series import HOUR_MS, MINUTE_MS, Series
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_SAMPLE_SECONDS: Final = 60.0  # what the recorder has heard within the minute is not asked for again

Measures = Mapping[Kind, Mapping[str, float]]


async def measures(view: ClusterView, series: Series, progress: QueueProgress, now_ms: int) -> Measures:
    """All kinds; a kind has a value for each name that it knows. What nobody tells is left out.

    Without name servers nobody says which groups and topics there are, and brokers are asked where they were.
    """
    found: dict[Kind, Mapping[str, float]] = {
        "name_server_down": {server.address: float(not server.is_up) for server in await view.name_servers.get()}
    }
    try:
        brokers = await view.brokers.get()
        found |= _of_brokers(brokers)
        found |= await _of_groups(view, progress, now_ms)
        found["dead_letters_per_hour"] = await dead_letters(series, await view.topics.get(), now_ms)
        timers = (await view.waiting.get()).timers
    except (NoNameServer, RemotingError, BrokerRefused) as error:
        _logger.info("not all alerts were looked at: %s", error)
        return found
    if timers is not None:
        found["delayed"] = {name: float(count) for name, count in timers.items()}
    return found


def _of_brokers(brokers: Sequence[BrokerState]) -> dict[Kind, Mapping[str, float]]:
    return {
        "disk": {
            f"{state.broker}:{state.broker_id}": state.disk_ratio for state in brokers if state.disk_ratio is not None
        },
        "broker_down": {f"{broker.broker}:{broker.broker_id}": float(not broker.is_up) for broker in brokers},
        "slave_behind_bytes": slaves_behind(brokers),
    }


async def _of_groups(view: ClusterView, progress: QueueProgress, now_ms: int) -> dict[Kind, Mapping[str, float]]:
    figures = await view.group_figures(fresh=True, within=_SAMPLE_SECONDS)
    groups = {name: known for name, known in figures.items() if not is_system_group(name)}
    waiting = [name for name, known in groups.items() if known.lag > 0]
    members = await each(waiting, view.members.get)
    lags = await view.lags.get(within=_SAMPLE_SECONDS)
    queues = {name: lags.get(name, []) for name in groups}
    running = {name for name, connected in members.items() if connected is not None}
    return {
        "lag": {name: float(known.lag) for name, known in groups.items()},
        "late_seconds": {name: (known.late_ms or 0) / 1000 for name, known in groups.items()},
        "no_client": {name: float(name in members and members[name] is None) for name in groups},
        "skew": {name: skew_of(of_group) for name, of_group in queues.items()},
        "stuck_seconds": progress.stuck_seconds(queues, running, now_ms),
    }


async def dead_letters(series: Series, topics: Collection[str], now_ms: int) -> dict[str, float]:
    """By group: how many came within the hour, as samples say; those that begin its topic count as well."""
    recorded = await series.between("dead:cluster", now_ms - HOUR_MS, now_ms)
    began_ms = recorded[0].at_ms if recorded else now_ms
    turn_ms = (len(topics) // TOPICS_A_MINUTE + 2) * MINUTE_MS  # of many topics each has a sample in its turn
    found: dict[str, float] = {}
    for topic in topics:
        if not topic.startswith(DLQ_PREFIX):
            continue
        group = topic.removeprefix(DLQ_PREFIX)
        samples = await series.between(f"dead:group:{group}", now_ms - HOUR_MS, now_ms)
        found[group] = samples[-1].value - samples[0].value if samples else 0.0
        if samples and samples[0].at_ms - began_ms > turn_ms:
            earlier = await series.between(f"dead:group:{group}", 0, samples[0].at_ms - 1)
            found[group] += 0.0 if earlier else samples[0].value
    return found


def slaves_behind(brokers: Sequence[BrokerState]) -> dict[str, float]:
    """Bytes of its master's log that each slave does not have; only where both are up and say where they are.

    They were not asked at the same moment, so a slave that follows may seem to be a little ahead: that is nothing.
    """
    masters = {state.broker: state for state in brokers if state.is_up and state.role == "master"}
    behind: dict[str, float] = {}
    for state in brokers:
        master = masters.get(state.broker)
        if state.role != "slave" or not state.is_up or master is None:
            continue
        if master.log_max_offset is not None and state.log_max_offset is not None:
            behind[f"{state.broker}:{state.broker_id}"] = float(max(master.log_max_offset - state.log_max_offset, 0))
    return behind
