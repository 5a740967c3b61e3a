"""What a controller and the brokers of its replica sets tell each other."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Final

from skyrocket.fastjson.bean import INTEGER_KEY, TEXT, KeyKind, map_of, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.route import BrokerMembers

BROKER_NAMES: Final = JsonBody(tuple_of(TEXT))  # of GET_SYNC_STATE_DATA

END_OF_LAST_EPOCH: Final = (1 << 63) - 1


@body
class SyncStateSet(BodyBase):
    """The ids of the replicas that have all that is confirmed; `epoch` counts how often the set was changed."""

    broker_ids: Annotated[tuple[int, ...], "syncStateSet"] = ()
    epoch: Annotated[int, "syncStateSetEpoch"] = 0


# RocketMQ: its controller writes these ids without quotes, and then its own mqadmin cannot read the answer.
_QUOTED_IDS: Final = map_of(KeyKind(INTEGER_KEY.read, str), TEXT)


@body
class ElectedMembers(BrokerMembers):
    """The replicas of a set by their ids."""

    addresses: Annotated[Mapping[int, str], "brokerAddrs", _QUOTED_IDS] = field(default_factory=dict)


@body
class ElectedMaster(BodyBase):
    """The answer to ELECT_MASTER: the set after the election, and who is to be told; no members where none is."""

    members: Annotated[ElectedMembers | None, "brokerMemberGroup"] = None
    sync_state_set: tuple[int, ...] = ()


@body
class ReplicaIdentity(BodyBase):
    """One replica of a set."""

    broker_name: str = ""
    broker_id: int = 0
    broker_address: str | None = None
    alive: bool | None = None


@body
class ReplicasInfo(BodyBase):
    """One replica set: who is master, who has all that is confirmed, and who has not."""

    master_broker_id: int | None = None
    master_address: str | None = None
    master_epoch: int | None = None
    sync_state_set_epoch: int | None = None
    in_sync_replicas: tuple[ReplicaIdentity, ...] = ()
    not_in_sync_replicas: tuple[ReplicaIdentity, ...] = ()


@body
class BrokerReplicasInfo(BodyBase):
    """The answer to GET_SYNC_STATE_DATA; broker names that are not known are left out."""

    replicas: Annotated[Mapping[str, ReplicasInfo], "replicasInfoTable"] = field(default_factory=dict)


@body
class EpochEntry(BodyBase):
    """From which physical offset on a master of this epoch wrote the log; the last epoch has no end yet."""

    epoch: int = 0
    start_offset: int = 0
    end_offset: int = END_OF_LAST_EPOCH


@body
class EpochCache(BodyBase):
    """The answer to GET_BROKER_EPOCH_CACHE."""

    cluster_name: str | None = None
    broker_name: str | None = None
    broker_id: int = 0
    epochs: Annotated[tuple[EpochEntry, ...], "epochList"] = ()
    max_offset: int = 0
