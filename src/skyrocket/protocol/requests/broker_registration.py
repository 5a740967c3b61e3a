"""Brokers make themselves known to a name server."""

from skyrocket.protocol.bodies.route import BrokerMemberGroup
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.bodies.topics import DATA_VERSION
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer, request, wire


@answer
class RegisterBrokerAnswer(Header):
    """For a slave whose master is known."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


@request(RequestCode.REGISTER_BROKER, answer=RegisterBrokerAnswer, answer_body=KvTable)
class RegisterBroker(Request[RegisterBrokerAnswer]):
    """A broker and all its topics; the body is a `bodies.registration`, compressed or not."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None  # RocketMQ: absent means a broker older than 5.0
    compressed: bool = False
    body_crc32: Int = wire("bodyCrc32", default=0)
    zone_name: str | None = wire("__ZONE_NAME", default=None)


@request(RequestCode.UNREGISTER_BROKER)
class UnregisterBroker(Request[Header]):
    """A broker goes."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@answer
class QueryDataVersionAnswer(Header):
    """Whether the name server has another version of the topics."""

    changed: bool


@request(RequestCode.QUERY_DATA_VERSION, answer=QueryDataVersionAnswer, body=DATA_VERSION, answer_body=DATA_VERSION)
class QueryDataVersion(Request[QueryDataVersionAnswer]):
    """Must I register again?"""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@request(RequestCode.BROKER_HEARTBEAT)
class BrokerHeartbeat(Request[Header]):
    """A broker is alive."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_millis: Long | None = wire("heartbeatTimeoutMills", default=None)
    election_priority: Int | None = None


@request(RequestCode.GET_BROKER_MEMBER_GROUP, answer_body=BrokerMemberGroup)
class GetBrokerMemberGroup(Request[Header]):
    """Who has my broker name?"""

    cluster_name: str
    broker_name: str


@request(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE)
class NotifyMinBrokerIdChange(Request[Header]):
    """Name server → brokers: another member has the smallest id now."""

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
