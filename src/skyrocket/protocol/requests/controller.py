"""Controllers decide who is master of a replica set. Broker ids here are the controller's, from 1 on, for a master too.

`invoke_time` is when the request was made, in milliseconds; RocketMQ writes it and reads it nowhere but in its log.
"""

from skyrocket.protocol.bodies.controller import BROKER_NAMES, BrokerReplicasInfo, ElectedMaster, SyncStateSet
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer, request

NO_BROKER_ID = -1  # of ELECT_MASTER: no broker asks for itself, and no broker is meant


@answer
class AlterSyncStateSetAnswer(Header):
    """The epoch of the set as it is now."""

    new_sync_state_set_epoch: Int = 0


@request(
    RequestCode.CONTROLLER_ALTER_SYNC_STATE_SET,
    answer=AlterSyncStateSetAnswer,
    body=SyncStateSet,
    answer_body=SyncStateSet,
)
class AlterSyncStateSet(Request[AlterSyncStateSetAnswer]):
    """Master → controller: these replicas are in sync now; the body's epoch is that of the set to be replaced."""

    broker_name: str
    master_broker_id: Long
    master_epoch: Int
    invoke_time: Long | None = None


@answer
class ElectMasterAnswer(Header):
    """The master; also where the old one stays (refusal 2011)."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


@request(RequestCode.CONTROLLER_ELECT_MASTER, answer=ElectMasterAnswer, answer_body=ElectedMaster)
class ElectMaster(Request[ElectMasterAnswer]):
    """Choose a master: a broker asks for its set, or an operator for the broker of this id (`designate_elect`)."""

    cluster_name: str = ""
    broker_name: str = ""
    broker_id: Long = NO_BROKER_ID
    designate_elect: bool = False
    invoke_time: Long | None = None


@answer
class RegisterAtControllerAnswer(Header):
    """The master, if it lives."""

    cluster_name: str | None = None
    broker_name: str | None = None
    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None


@request(RequestCode.CONTROLLER_REGISTER_BROKER, answer=RegisterAtControllerAnswer, answer_body=SyncStateSet)
class RegisterAtController(Request[RegisterAtControllerAnswer]):
    """Broker → controller: I am here, at this address."""

    cluster_name: str | None = None
    broker_name: str
    broker_id: Long
    broker_address: str
    invoke_time: Long | None = None


@answer
class GetReplicaInfoAnswer(Header):
    """The master; no id where there is none."""

    master_broker_id: Long | None = None
    master_address: str | None = None
    master_epoch: Int | None = None


@request(RequestCode.CONTROLLER_GET_REPLICA_INFO, answer=GetReplicaInfoAnswer, answer_body=SyncStateSet)
class GetReplicaInfo(Request[GetReplicaInfoAnswer]):
    """Who is master of this set?"""

    broker_name: str


@answer
class GetControllerMetadataAnswer(Header):
    """Who leads the controllers; `peers` is `id:host:port;` for each of them."""

    group: str | None = None
    controller_leader_id: str | None = None
    controller_leader_address: str | None = None
    is_leader: bool = False
    peers: str | None = None


@request(RequestCode.CONTROLLER_GET_METADATA_INFO, answer=GetControllerMetadataAnswer)
class GetControllerMetadata(Request[GetControllerMetadataAnswer]):
    """Every controller answers, not only the one that leads."""


@request(
    RequestCode.CONTROLLER_GET_SYNC_STATE_DATA, body=BROKER_NAMES, optional_body=True, answer_body=BrokerReplicasInfo
)
class GetSyncStateData(Request[Header]):
    """All about the replica sets of these names."""


@request(RequestCode.LIST_REPLICA_SETS, answer_body=BROKER_NAMES)
class ListReplicaSets(Request[Header]):
    """The names of all replica sets; RocketMQ's controllers tell of a set to those alone who know its name."""


@request(RequestCode.NOTIFY_BROKER_ROLE_CHANGED, body=SyncStateSet)
class NotifyBrokerRoleChanged(Request[Header]):
    """Controller → all living brokers of a set, oneway: there was an election."""

    master_address: str | None = None
    master_epoch: Int | None = None
    sync_state_set_epoch: Int | None = None
    master_broker_id: Long | None = None


@request(RequestCode.UPDATE_CONTROLLER_CONFIG)
class UpdateControllerConfig(Request[Header]):
    """Change settings; the body is Java properties text."""


@request(RequestCode.GET_CONTROLLER_CONFIG)
class GetControllerConfig(Request[Header]):
    """All settings as Java properties text."""


@request(RequestCode.CLEAN_BROKER_DATA)
class CleanBrokerData(Request[Header]):
    """Forget a set, or those of its brokers whose ids stand in `broker_controller_ids_to_clean`, `1;2`."""

    cluster_name: str | None = None
    broker_name: str
    broker_controller_ids_to_clean: str | None = None
    is_clean_living_broker: bool = False
    invoke_time: Long | None = None


@answer
class GetNextBrokerIdAnswer(Header):
    """The id that a new broker of the set may apply for."""

    cluster_name: str | None = None
    broker_name: str | None = None
    next_broker_id: Long | None = None


@request(RequestCode.CONTROLLER_GET_NEXT_BROKER_ID, answer=GetNextBrokerIdAnswer)
class GetNextBrokerId(Request[GetNextBrokerIdAnswer]):
    """Which id is free?"""

    cluster_name: str | None = None
    broker_name: str


@answer
class ApplyBrokerIdAnswer(Header):
    """The id is the broker's."""

    cluster_name: str | None = None
    broker_name: str | None = None


@request(RequestCode.CONTROLLER_APPLY_BROKER_ID, answer=ApplyBrokerIdAnswer)
class ApplyBrokerId(Request[ApplyBrokerIdAnswer]):
    """Give me this id; the check code, `address;time`, tells a broker that asks again from another one."""

    cluster_name: str | None = None
    broker_name: str
    applied_broker_id: Long
    register_check_code: str
