"""What a controller answers, and what it decides: pure functions of a replica set, a request and who lives.

A refusal is an outcome as well, because RocketMQ's have fields and bodies. Remarks are RocketMQ's, with its spelling.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from skyrocket.controller.election import elect
from skyrocket.controller.live_brokers import Report
from skyrocket.controller.replica_set import FIRST_BROKER_ID, Replica, ReplicaSet
from skyrocket.protocol.bodies.controller import (
    ElectedMaster,
    ElectedMembers,
    ReplicaIdentity,
    ReplicasInfo,
    SyncStateSet,
)
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.controller import (
    NO_BROKER_ID,
    AlterSyncStateSet,
    AlterSyncStateSetAnswer,
    ApplyBrokerId,
    ApplyBrokerIdAnswer,
    CleanBrokerData,
    ElectMaster,
    ElectMasterAnswer,
    GetNextBrokerId,
    GetNextBrokerIdAnswer,
    GetReplicaInfo,
    GetReplicaInfoAnswer,
    RegisterAtController,
    RegisterAtControllerAnswer,
)
from skyrocket.protocol.requests.header import Header, parse_long

# So that a document stays far below the megabyte that engines take.
_MAX_LENGTH: Final = 500
_MAX_REPLICAS: Final = 500


class Change(NamedTuple):
    """A replica set before and after; None where there is none."""

    broker_name: str
    before: ReplicaSet | None
    after: ReplicaSet | None


class RoleChange(NamedTuple):
    """A new master, and the living replicas that are to be told."""

    replica_set: ReplicaSet
    tell: Mapping[int, str]


class Outcome(NamedTuple):
    """An answer, and what must have been written before it may be given."""

    header: Header | None = None
    body: object = None
    code: int = ResponseCode.SUCCESS
    remark: str | None = None
    change: Change | None = None
    role_change: RoleChange | None = None


class Situation(NamedTuple):
    """What a decision is made from."""

    known: ReplicaSet | None
    living: Mapping[int, Report]
    unclean: bool = False


# ── brokers get their ids ────────────────────────────────────────────────────────────────────────────────────────────


def next_broker_id(request: GetNextBrokerId, situation: Situation) -> Outcome:
    """The id that a new broker may apply for."""
    known = situation.known
    free = FIRST_BROKER_ID if known is None else known.next_broker_id
    return Outcome(
        GetNextBrokerIdAnswer(cluster_name=request.cluster_name, broker_name=request.broker_name, next_broker_id=free)
    )


def apply_broker_id(request: ApplyBrokerId, situation: Situation) -> Outcome:
    """Give an id to the broker that asks, unless another has it; asking again does no harm."""
    known, broker_id, name = situation.known, request.applied_broker_id, request.broker_name
    answer = ApplyBrokerIdAnswer(cluster_name=request.cluster_name, broker_name=name)
    if max(len(name), len(request.cluster_name or ""), len(request.register_check_code)) > _MAX_LENGTH:
        remark = f"names and addresses have {_MAX_LENGTH} characters at most"
        return _refused(ResponseCode.CONTROLLER_INVALID_REQUEST, remark, answer)
    replica = Replica(request.register_check_code.split(";")[0], request.register_check_code)
    if known is None:
        if broker_id != FIRST_BROKER_ID:
            return _refused(
                ResponseCode.CONTROLLER_BROKER_ID_INVALID,
                f"Broker-set: {name} hasn't been registered in controller, but broker try to apply brokerId: "
                f"{broker_id}",
                answer,
            )
        known = ReplicaSet(request.cluster_name or "", name)
        return Outcome(answer, change=Change(name, None, known.with_replica(broker_id, replica)))
    held_by = known.replicas.get(broker_id)
    if held_by is not None and held_by.check_code == request.register_check_code:
        return Outcome(answer)
    if len(known.replicas) >= _MAX_REPLICAS:
        remark = f"broker-set: {name} has {_MAX_REPLICAS} replicas already"
        return _refused(ResponseCode.CONTROLLER_INVALID_REQUEST, remark, answer)
    # An id from before 1 is no id, and one that was given and cleaned must not mean two brokers in old epochs.
    if held_by is not None or broker_id < known.next_broker_id:
        remark = f"Fail to apply brokerId: {broker_id} in broker-set: {name}"
        return _refused(ResponseCode.CONTROLLER_BROKER_ID_INVALID, remark, answer)
    return Outcome(answer, change=Change(name, known, known.with_replica(broker_id, replica)))


def register_broker(request: RegisterAtController, situation: Situation) -> Outcome:
    """A broker that has its id says where it is, and hears of the master if that lives."""
    known, name = situation.known, request.broker_name
    answer = RegisterAtControllerAnswer(cluster_name=request.cluster_name, broker_name=name)
    if known is None:
        remark = f"Broker-set: {name} hasn't been registered in controller"
        return _refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark, answer)
    if request.broker_id not in known.replicas:
        remark = f"BrokerId: {request.broker_id} hasn't been registered in broker-set: {name}"
        return _refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark, answer)
    if known.master_id in situation.living:
        answer = RegisterAtControllerAnswer(
            cluster_name=request.cluster_name,
            broker_name=name,
            master_broker_id=known.master_id,
            master_address=known.address_of(known.master_id),
            master_epoch=known.master_epoch,
            sync_state_set_epoch=known.sync_epoch,
        )
    change = None
    if known.address_of(request.broker_id) != request.broker_address:
        change = Change(name, known, known.with_address(request.broker_id, request.broker_address))
    return Outcome(answer, _sync_state_set(known), change=change)


# ── who has all that is confirmed ────────────────────────────────────────────────────────────────────────────────────


def alter_sync_state_set(request: AlterSyncStateSet, proposed: SyncStateSet, situation: Situation) -> Outcome:
    """Take over what a master says of its set: if it is master, in the epochs that it believes in."""
    known = situation.known
    refusal = _why_not(request, proposed, situation)
    if refusal is not None:
        return _refused(*refusal, AlterSyncStateSetAnswer())
    assert known is not None
    after = known.with_in_sync(proposed.broker_ids)
    answer = AlterSyncStateSetAnswer(new_sync_state_set_epoch=after.sync_epoch)
    return Outcome(answer, _sync_state_set(after), change=Change(request.broker_name, known, after))


def _why_not(
    request: AlterSyncStateSet, proposed: SyncStateSet, situation: Situation
) -> tuple[ResponseCode, str] | None:
    known, wanted = situation.known, frozenset(proposed.broker_ids)
    rejecting = "Rejecting alter syncStateSet request because"
    if known is None:
        return ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, "Broker metadata is not existed"
    if wanted == known.in_sync:
        remark = "The newSyncStateSet is equal with oldSyncStateSet, no needed to update syncStateSet"
        return ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, remark
    if known.master_id is None or known.master_id != request.master_broker_id:
        master = "null" if known.master_id is None else known.master_id
        remark = f"{rejecting} the current leader is:{{{master}}}, not {{{request.master_broker_id}}}"
        return ResponseCode.CONTROLLER_INVALID_MASTER, remark
    if known.master_epoch != request.master_epoch:
        remark = f"{rejecting} the current master epoch is:{{{known.master_epoch}}}, not {{{request.master_epoch}}}"
        return ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH, remark
    if known.sync_epoch != proposed.epoch:
        remark = f"{rejecting} the current syncStateSet epoch is:{{{known.sync_epoch}}}, not {{{proposed.epoch}}}"
        return ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH, remark
    for broker_id in proposed.broker_ids:
        if broker_id not in known.replicas:
            return ResponseCode.CONTROLLER_INVALID_REPLICAS, f"{rejecting} the replicas {{{broker_id}}} don't exist"
        if broker_id not in situation.living:
            return ResponseCode.CONTROLLER_BROKER_NOT_ALIVE, f"{rejecting} the replicas {{{broker_id}}} don't alive"
    if known.master_id not in wanted:
        remark = f"{rejecting} the newSyncStateSet don't contains origin leader {{{known.master_id}}}"
        return ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED, remark
    return None


# ── elections ────────────────────────────────────────────────────────────────────────────────────────────────────────


def elect_master(request: ElectMaster, situation: Situation) -> Outcome:
    """Choose a master: for a broker that asks, for an operator who names one, or because the master is lost."""
    known, asking = situation.known, request.broker_id
    if known is None:
        remark = "Broker hasn't been registered"
        return _refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark, ElectMasterAnswer())
    if asking != NO_BROKER_ID and asking not in known.replicas:
        remark = f"BrokerId: {asking} hasn't been registered in broker-set: {known.broker_name}"
        return _refused(ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED, remark, ElectMasterAnswer())
    chosen = _chosen(request, known, situation)
    if chosen is None:
        return _nobody(asking, known)
    if chosen == known.master_id:
        remark = f"The old master {chosen} is still alive, not need to elect new master for broker {known.broker_name}"
        body = ElectedMaster(None, tuple(sorted(known.in_sync)))
        return Outcome(_master_of(known), body, ResponseCode.CONTROLLER_MASTER_STILL_EXIST, remark)
    after = known.with_master(chosen)
    members = ElectedMembers(after.cluster_name, after.broker_name, after.addresses())
    return Outcome(
        _master_of(after),
        ElectedMaster(members, tuple(sorted(after.in_sync))),
        change=Change(known.broker_name, known, after),
        role_change=RoleChange(after, {each: at for each, at in after.addresses().items() if each in situation.living}),
    )


def _chosen(request: ElectMaster, known: ReplicaSet, situation: Situation) -> int | None:
    if not known.in_sync and request.broker_id != NO_BROKER_ID:
        return request.broker_id  # never was a master, so nothing is confirmed that another might have: who asks first
    preferred = request.broker_id if request.designate_elect else None
    return elect(known, situation.living, preferred=preferred, unclean=situation.unclean)


def _nobody(asking: int, known: ReplicaSet) -> Outcome:
    if asking != NO_BROKER_ID:
        remark = "Failed to elect a new master"
        return _refused(ResponseCode.CONTROLLER_ELECT_MASTER_FAILED, remark, ElectMasterAnswer())
    # RocketMQ counts an epoch for each attempt that finds nobody; one for the loss of the master is enough.
    lost = None if known.master_id is None else Change(known.broker_name, known, known.without_master())
    remark = "Old master has down and failed to elect a new broker master"
    return Outcome(ElectMasterAnswer(), code=ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE, remark=remark, change=lost)


def _master_of(replica_set: ReplicaSet) -> ElectMasterAnswer:
    return ElectMasterAnswer(
        master_broker_id=replica_set.master_id,
        master_address=replica_set.address_of(replica_set.master_id),
        master_epoch=replica_set.master_epoch,
        sync_state_set_epoch=replica_set.sync_epoch,
    )


# ── what is known, and forgetting it ─────────────────────────────────────────────────────────────────────────────────


def replica_info(_: GetReplicaInfo, situation: Situation) -> Outcome:
    """Who is master."""
    known = situation.known
    if known is None:
        remark = "Broker metadata is not existed"
        return _refused(ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST, remark, GetReplicaInfoAnswer())
    answer = GetReplicaInfoAnswer(
        master_broker_id=known.master_id,
        master_address=known.address_of(known.master_id),
        master_epoch=known.master_epoch,
    )
    return Outcome(answer, _sync_state_set(known))


def replicas_info(known: ReplicaSet, living: Mapping[int, Report]) -> ReplicasInfo:
    """A set as operators see it."""
    identities = {
        broker_id: ReplicaIdentity(known.broker_name, broker_id, address, broker_id in living)
        for broker_id, address in known.addresses().items()
    }
    return ReplicasInfo(
        known.master_id,
        known.address_of(known.master_id),
        known.master_epoch,
        known.sync_epoch,
        tuple(each for broker_id, each in identities.items() if broker_id in known.in_sync),
        tuple(each for broker_id, each in identities.items() if broker_id not in known.in_sync),
    )


def clean_broker_data(request: CleanBrokerData, situation: Situation) -> Outcome:
    """Forget a set or some of its brokers; what lives only where that is wanted."""
    known, name = situation.known, request.broker_name
    try:
        broker_ids = _ids_in(request.broker_controller_ids_to_clean)
    except ValueError as error:
        return _not_cleaned(
            f"Please set the option <brokerControllerIdsToClean> according to the format, exception: "
            f"java.lang.NumberFormatException: {error}"
        )
    if known is None:
        return _not_cleaned(f"Broker {name} is not existed,clean broker data failure.")
    if not request.is_clean_living_broker:
        if not broker_ids and known.master_id is not None:
            return _not_cleaned(f"Broker {name} is still alive, clean up failure")
        if alive := sorted(broker_ids & situation.living.keys()):
            return _not_cleaned(f"Broker [{name},  {alive[0]}] is still alive, clean up failure")
    left = known.without(broker_ids) if broker_ids else None
    return Outcome(change=Change(name, known, left if left is not None and left.replicas else None))


def _ids_in(text: str | None) -> frozenset[int]:
    return frozenset(parse_long(each) for each in text.split(";")) if text and text.strip() else frozenset()


def _not_cleaned(remark: str) -> Outcome:
    return Outcome(code=ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA, remark=remark)


def _refused(code: ResponseCode, remark: str, header: Header) -> Outcome:
    return Outcome(header, code=code, remark=remark)


def _sync_state_set(replica_set: ReplicaSet) -> SyncStateSet:
    return SyncStateSet(tuple(sorted(replica_set.in_sync)), replica_set.sync_epoch)
