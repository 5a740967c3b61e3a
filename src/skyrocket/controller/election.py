"""Who becomes master: RocketMQ's rules over a set and those of its replicas that live."""

from collections.abc import Iterable, Mapping

from skyrocket.controller.live_brokers import Report
from skyrocket.controller.replica_set import ReplicaSet


def elect(
    replica_set: ReplicaSet, living: Mapping[int, Report], *, preferred: int | None = None, unclean: bool = False
) -> int | None:
    """The id of the master to be; None when nobody may.

    Only who is in sync may, unless `unclean`: then, when nobody in sync lives, anybody who does, and messages that were
    confirmed can be lost. The old master stays when it may; a `preferred` broker is taken or nobody is.
    """
    chosen = _among(replica_set.in_sync, replica_set, living, preferred)
    if chosen is None and unclean:
        chosen = _among(replica_set.replicas, replica_set, living, preferred)
    return chosen


def _among(
    broker_ids: Iterable[int], replica_set: ReplicaSet, living: Mapping[int, Report], preferred: int | None
) -> int | None:
    able = {broker_id: living[broker_id] for broker_id in broker_ids if broker_id in living}
    wanted = replica_set.master_id if preferred is None else preferred
    if wanted in able:
        return wanted
    if preferred is not None or not able:
        return None
    return min(able, key=lambda broker_id: _rank(broker_id, able[broker_id]))


def _rank(broker_id: int, report: Report) -> tuple[int, int, int, int]:
    """The newest epoch, then the longest log, then the smallest priority; at last the smallest id."""
    return -report.epoch, -report.max_offset, report.election_priority, broker_id
