"""A replica set as controllers remember it: brokers of one name, of which one is master; and its document.

`in_sync` is RocketMQ's sync-state set: the brokers that have every message that was confirmed. Only they may become
master without a loss. `master_epoch` counts masters and `sync_epoch` counts changes of the set; neither ever goes back.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from skyrocket.errors import DataError

FIRST_BROKER_ID: Final = 1  # RocketMQ: controllers count from 1; 0 is what a master shows to clients
_FORMAT: Final = 1


class UnreadableDocument(DataError):
    """What an engine holds for a replica set is not a document of ours."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One broker; by its check code it is known again when it asks for its id twice."""

    address: str
    check_code: str


@dataclass(frozen=True, slots=True)
class ReplicaSet:
    """Everything that is decided about one broker name. It is never changed, only replaced."""

    cluster_name: str
    broker_name: str
    replicas: Mapping[int, Replica] = field(default_factory=dict)
    next_broker_id: int = FIRST_BROKER_ID
    master_id: int | None = None
    master_epoch: int = 0
    in_sync: frozenset[int] = frozenset()
    sync_epoch: int = 0

    def address_of(self, broker_id: int | None) -> str | None:
        """Where a replica is; None for nobody."""
        replica = None if broker_id is None else self.replicas.get(broker_id)
        return None if replica is None else replica.address

    def addresses(self) -> dict[int, str]:
        """All replicas by their ids, in their order."""
        return {broker_id: self.replicas[broker_id].address for broker_id in sorted(self.replicas)}

    # ── what can happen to it ────────────────────────────────────────────────────────────────────────────────────────

    def with_replica(self, broker_id: int, replica: Replica) -> "ReplicaSet":
        """A broker more. Ids are never given twice, whichever a broker asked for."""
        return replace(
            self,
            replicas={**self.replicas, broker_id: replica},
            next_broker_id=max(self.next_broker_id, broker_id + 1),
        )

    def with_address(self, broker_id: int, address: str) -> "ReplicaSet":
        """A broker has moved."""
        moved = replace(self.replicas[broker_id], address=address)
        return replace(self, replicas={**self.replicas, broker_id: moved})

    def with_in_sync(self, broker_ids: Collection[int]) -> "ReplicaSet":
        """The master says who has all that is confirmed."""
        return replace(self, in_sync=frozenset(broker_ids), sync_epoch=self.sync_epoch + 1)

    def with_master(self, broker_id: int) -> "ReplicaSet":
        """A new master is alone in sync until it has seen the others follow."""
        elected = replace(self, master_id=broker_id, master_epoch=self.master_epoch + 1)
        return elected.with_in_sync({broker_id})

    def without_master(self) -> "ReplicaSet":
        """The master is gone and nobody may follow it: who was in sync is remembered, one of them must come back."""
        return replace(self, master_id=None, master_epoch=self.master_epoch + 1)

    def without(self, broker_ids: Collection[int]) -> "ReplicaSet":
        """Some brokers less; when the master is among them, the set has none. Epochs go on."""
        left = replace(
            self,
            replicas={broker_id: each for broker_id, each in self.replicas.items() if broker_id not in broker_ids},
            in_sync=self.in_sync.difference(broker_ids),
        )
        if left.in_sync != self.in_sync:
            left = replace(left, sync_epoch=self.sync_epoch + 1)
        return left.without_master() if self.master_id in broker_ids else left


# ── the document ─────────────────────────────────────────────────────────────────────────────────────────────────────


def encode(replica_set: ReplicaSet) -> bytes:
    """JSON with sorted keys, so that equal sets have equal documents."""
    content = {
        "format": _FORMAT,
        "cluster": replica_set.cluster_name,
        "name": replica_set.broker_name,
        "replicas": {
            str(broker_id): {"address": each.address, "checkCode": each.check_code}
            for broker_id, each in replica_set.replicas.items()
        },
        "nextBrokerId": replica_set.next_broker_id,
        "master": replica_set.master_id,
        "masterEpoch": replica_set.master_epoch,
        "inSync": sorted(replica_set.in_sync),
        "syncEpoch": replica_set.sync_epoch,
    }
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)


def decode(document: bytes) -> ReplicaSet:
    """The opposite; raises UnreadableDocument."""
    try:
        content = orjson.loads(document)
        if content["format"] != _FORMAT:
            raise UnreadableDocument(f"format {content['format']!r} is not {_FORMAT}: a newer Skyrocket wrote it")
        found = ReplicaSet(
            cluster_name=_text(content["cluster"]),
            broker_name=_text(content["name"]),
            replicas={
                int(broker_id): Replica(_text(each["address"]), _text(each["checkCode"]))
                for broker_id, each in content["replicas"].items()
            },
            next_broker_id=_count(content["nextBrokerId"]),
            master_id=None if content["master"] is None else _count(content["master"]),
            master_epoch=_count(content["masterEpoch"]),
            in_sync=frozenset(map(_count, content["inSync"])),
            sync_epoch=_count(content["syncEpoch"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableDocument(f"not the document of a replica set: {error!r}") from error
    if not found.in_sync <= found.replicas.keys() or found.master_id not in {None, *found.replicas}:
        raise UnreadableDocument("it has a master, or a broker in sync, that is none of its replicas")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a number from 0 on")
    return value
