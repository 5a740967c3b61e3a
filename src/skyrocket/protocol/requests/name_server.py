"""Name server: what operators and brokers ask of it beside routes."""

from skyrocket.protocol.bodies.route import ClusterInfo, TopicRoute
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Request, answer, request


@request(RequestCode.GET_BROKER_CLUSTER_INFO, answer_body=ClusterInfo)
class GetBrokerClusterInfo(Request[Header]):
    """All brokers."""


@request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, answer_body=TopicList)
class GetAllTopicList(Request[Header]):
    """All topics."""


@request(RequestCode.GET_TOPICS_BY_CLUSTER, answer_body=TopicList)
class GetTopicsByCluster(Request[Header]):
    """The topics of one cluster."""

    cluster: str


@request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, answer_body=TopicList)
class GetSystemTopicList(Request[Header]):
    """Names of clusters and brokers, and a broker that knows the rest."""


@request(RequestCode.GET_UNIT_TOPIC_LIST, answer_body=TopicList)
class GetUnitTopicList(Request[Header]):
    """Topics of units."""


@request(RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, answer_body=TopicList)
class GetHasUnitSubTopicList(Request[Header]):
    """Topics with subscriptions of units."""


@request(RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, answer_body=TopicList)
class GetHasUnitSubUnunitTopicList(Request[Header]):
    """Topics with subscriptions of units that are of no unit themselves."""


@request(RequestCode.DELETE_TOPIC_IN_NAMESRV)
class DeleteTopicInNamesrv(Request[Header]):
    """Forget a topic, in one cluster or everywhere."""

    topic: str
    cluster_name: str | None = None


@request(RequestCode.REGISTER_TOPIC_IN_NAMESRV, body=TopicRoute)
class RegisterTopicInNamesrv(Request[Header]):
    """A new topic of a broker, ahead of its registration."""

    topic: str


@answer
class WipeWritePermAnswer(Header):
    """How many topics were touched."""

    wipe_topic_count: Int


@request(RequestCode.WIPE_WRITE_PERM_OF_BROKER, answer=WipeWritePermAnswer)
class WipeWritePerm(Request[WipeWritePermAnswer]):
    """Send nothing more to a broker."""

    broker_name: str


@answer
class AddWritePermAnswer(Header):
    """How many topics were touched."""

    add_topic_count: Int


@request(RequestCode.ADD_WRITE_PERM_OF_BROKER, answer=AddWritePermAnswer)
class AddWritePerm(Request[AddWritePermAnswer]):
    """Send to a broker again."""

    broker_name: str
