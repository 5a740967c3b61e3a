"""Administration of consumer groups, and which producers are connected."""

from skyrocket.protocol.bodies.connections import ProducerConnections, ProducerTable
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupConfigList, GroupForbidden, GroupTable
from skyrocket.protocol.bodies.statistics import BrokerConsumeStats, ConsumeStats
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Request, answer, request


@request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SUBSCRIPTION_GROUP, optional_body=True)
class UpdateAndCreateSubscriptionGroup(Request[Header]):
    """A group to create or change."""


@request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=GroupConfigList)
class UpdateAndCreateSubscriptionGroupList(Request[Header]):
    """Many groups at once."""


@answer
class GetAllSubscriptionGroupAnswer(Header):
    """How many there are in all; absent from old servers, which give everything at once."""

    total_group_num: Int | None = None


@request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, answer=GetAllSubscriptionGroupAnswer, answer_body=GroupTable)
class GetAllSubscriptionGroupConfig(Request[GetAllSubscriptionGroupAnswer]):
    """All groups, in pages if the caller says so; `data_version` is JSON text or empty."""

    group_seq: Int | None = None
    max_group_num: Int | None = None
    data_version: str | None = None


@request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, answer_body=SUBSCRIPTION_GROUP)
class GetSubscriptionGroupConfig(Request[Header]):
    """One group."""

    group: str


@request(RequestCode.DELETE_SUBSCRIPTIONGROUP)
class DeleteSubscriptionGroup(Request[Header]):
    """Remove a group."""

    group_name: str
    clean_offset: bool = False
    remove_offset: bool | None = None  # RocketMQ 4.9 calls it so

    @property
    def cleans_offsets(self) -> bool:
        return self.clean_offset or bool(self.remove_offset)


@request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, answer_body=GroupForbidden)
class UpdateAndGetGroupForbidden(Request[Header]):
    """May a group read a topic? Change it, if `readable` is given."""

    group: str
    topic: str
    readable: bool | None = None


@request(RequestCode.GET_CONSUME_STATS, answer_body=ConsumeStats)
class GetConsumeStats(Request[Header]):
    """How far a group lags behind."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@request(RequestCode.GET_BROKER_CONSUME_STATS, answer_body=BrokerConsumeStats)
class GetBrokerConsumeStats(Request[Header]):
    """How far all groups lag behind."""

    is_order: bool = False


@request(RequestCode.GET_PRODUCER_CONNECTION_LIST, answer_body=ProducerConnections)
class GetProducerConnectionList(Request[Header]):
    """Members of a producer group."""

    producer_group: str


@request(RequestCode.GET_ALL_PRODUCER_INFO, answer_body=ProducerTable, empty_header=True)
class GetAllProducerInfo(Request[Header]):
    """All producers."""

    with_times: bool | None = None  # as of GetConsumerConnectionList
