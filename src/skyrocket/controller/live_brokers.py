"""Who lives: the brokers whose heartbeats came in time, with what they last said of their logs. In memory alone.

Brokers send heartbeats to every controller, so that one that becomes leader knows already who lives.

A controller that stood still (a paused process, a machine that swaps) has heard nobody, and that says nothing about
brokers: silence is counted in the time alone in which we listened. What it finds when it goes on, connections that
brokers closed because it did not answer, is no death either: those brokers have some heartbeats' time to come back.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from skyrocket.controller.replica_set import ReplicaSet
from skyrocket.protocol.errors import SystemBusy
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat

DEFAULT_TIMEOUT_SECONDS: Final = 10.0
LAST_PRIORITY: Final = (1 << 31) - 1
_UNKNOWN: Final = -1
_ABSENCE_SECONDS: Final = 1.0  # who has not attended for longer has stood still
_WAKING_SECONDS: Final = 1.0  # connections that ended meanwhile are noticed in this time
_RETURN_SECONDS, _RETURN_SHARE = 3.0, 0.3  # of a broker's own time-out: heartbeats come ten times as often


class BrokerKey(NamedTuple):
    """One broker of all clusters."""

    cluster_name: str
    broker_name: str
    broker_id: int


class Report(NamedTuple):
    """How far a broker's log has come; a smaller priority is preferred among equals."""

    epoch: int = _UNKNOWN
    max_offset: int = _UNKNOWN
    election_priority: int = LAST_PRIORITY


@dataclass(slots=True)
class LiveBroker:
    """One broker, when it was last heard of, and over which connection."""

    heard: float  # monotonic seconds
    timeout_seconds: float
    connection: object  # None when it ended while we stood still
    report: Report

    def lives_at(self, now: float) -> bool:
        """Whether its last heartbeat is young enough."""
        return now - self.heard <= self.timeout_seconds


class LiveBrokers:
    """The table. Whoever asks says what time it is."""

    def __init__(self, started: float, limit: int) -> None:
        """`limit`: brokers at most, because anybody can claim to be one."""
        self._started = started
        self._attended = started
        self._woke: float | None = None
        self._limit = limit
        self._live: dict[BrokerKey, LiveBroker] = {}

    def __len__(self) -> int:
        return len(self._live)

    def attend(self, now: float) -> None:
        """We listen; must be called several times a second, and before anything is concluded."""
        away, self._attended = now - self._attended, now
        if away > _ABSENCE_SECONDS:
            self._woke = now
            self._started += away
            for each in self._live.values():
                each.heard += away

    def is_waking(self, now: float) -> bool:
        """Whether we have just gone on after we stood still."""
        return self._woke is not None and now - self._woke <= _WAKING_SECONDS

    def heard(self, broker_id: int, header: BrokerHeartbeat, connection: object, now: float) -> None:
        """A heartbeat came; raises SystemBusy when there is no place for one broker more."""
        key = BrokerKey(header.cluster_name, header.broker_name, broker_id)
        if key not in self._live and len(self._live) >= self._limit:
            raise SystemBusy(f"{self._limit} brokers send heartbeats already: raise controllerMaxBrokers")
        millis = header.heartbeat_timeout_millis
        self._live[key] = LiveBroker(
            now,
            DEFAULT_TIMEOUT_SECONDS if millis is None else millis / 1000,
            connection,
            Report(
                _UNKNOWN if header.epoch is None else header.epoch,
                _UNKNOWN if header.max_offset is None else header.max_offset,
                LAST_PRIORITY if header.election_priority is None else header.election_priority,
            ),
        )

    def connected_by(self, connection: object) -> list[BrokerKey]:
        """Whose heartbeats come over this connection."""
        return [key for key, each in self._live.items() if each.connection is connection]

    def lose_connection(self, connection: object, now: float) -> None:
        """Those who used it must be heard again soon: one that was killed in the same moment would live for long."""
        for key in self.connected_by(connection):
            each = self._live[key]
            each.connection, each.heard = None, now
            each.timeout_seconds = min(each.timeout_seconds, max(_RETURN_SECONDS, _RETURN_SHARE * each.timeout_seconds))

    def silent(self, now: float) -> list[BrokerKey]:
        """Whose last heartbeat is too old."""
        return [key for key, each in self._live.items() if not each.lives_at(now)]

    def forget(self, key: BrokerKey) -> LiveBroker:
        """It is gone."""
        return self._live.pop(key)

    def counts(self, now: float) -> Mapping[tuple[str, str], int]:
        """How many brokers of each cluster and name live."""
        counts: dict[tuple[str, str], int] = {}
        for key, each in self._live.items():
            if each.lives_at(now):
                name = (key.cluster_name, key.broker_name)
                counts[name] = counts.get(name, 0) + 1
        return counts

    def of(self, replica_set: ReplicaSet, now: float) -> Mapping[int, Report]:
        """The replicas of a set that live, with what they say."""
        return {broker_id: each.report for broker_id, each in self._replicas_of(replica_set) if each.lives_at(now)}

    def may_be_late(self, broker_id: int, replica_set: ReplicaSet, now: float) -> bool:
        """Whether a broker that was never heard of may only not have found us yet, because we have just started."""
        key = BrokerKey(replica_set.cluster_name, replica_set.broker_name, broker_id)
        return key not in self._live and now - self._started <= self._patience(replica_set)

    def _patience(self, replica_set: ReplicaSet) -> float:
        """As long as heartbeats of that set may take."""
        timeouts = [each.timeout_seconds for _, each in self._replicas_of(replica_set)]
        return max(timeouts, default=DEFAULT_TIMEOUT_SECONDS)

    def _replicas_of(self, replica_set: ReplicaSet) -> Iterator[tuple[int, LiveBroker]]:
        for broker_id in replica_set.replicas:
            each = self._live.get(BrokerKey(replica_set.cluster_name, replica_set.broker_name, broker_id))
            if each is not None:
                yield broker_id, each
