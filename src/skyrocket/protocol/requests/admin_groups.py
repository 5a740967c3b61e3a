"""Administration of consumer groups, and who is connected."""

from skyrocket.protocol.bodies.connections import CONSUMER_CONNECTIONS, PRODUCER_CONNECTIONS, PRODUCER_TABLE
from skyrocket.protocol.bodies.groups import GROUP_CONFIG_LIST, GROUP_FORBIDDEN, GROUP_TABLE, SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.statistics import BROKER_CONSUME_STATS, CONSUME_STATS
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Request, answer, request


@request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SUBSCRIPTION_GROUP, optional_body=True)
class UpdateAndCreateSubscriptionGroup(Request[Header]):
    """A group to create or change."""


@request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, body=GROUP_CONFIG_LIST)
class UpdateAndCreateSubscriptionGroupList(Request[Header]):
    """Many groups at once."""


@answer
class GetAllSubscriptionGroupAnswer(Header):
    """How many there are in all; absent from old servers, which give everything at once."""

    total_group_num: Int | None = None


@request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, answer=GetAllSubscriptionGroupAnswer, answer_body=GROUP_TABLE)
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


@request(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, answer_body=GROUP_FORBIDDEN)
class UpdateAndGetGroupForbidden(Request[Header]):
    """May a group read a topic? Change it, if `readable` is given."""

    group: str
    topic: str
    readable: bool | None = None


@request(RequestCode.GET_CONSUME_STATS, answer_body=CONSUME_STATS)
class GetConsumeStats(Request[Header]):
    """How far a group lags behind."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


@request(RequestCode.GET_BROKER_CONSUME_STATS, answer_body=BROKER_CONSUME_STATS)
class GetBrokerConsumeStats(Request[Header]):
    """How far all groups lag behind."""

    is_order: bool = False


@request(RequestCode.GET_CONSUMER_CONNECTION_LIST, answer_body=CONSUMER_CONNECTIONS)
class GetConsumerConnectionList(Request[Header]):
    """Members of a consumer group."""

    consumer_group: str


@request(RequestCode.GET_PRODUCER_CONNECTION_LIST, answer_body=PRODUCER_CONNECTIONS)
class GetProducerConnectionList(Request[Header]):
    """Members of a producer group."""

    producer_group: str


@request(RequestCode.GET_ALL_PRODUCER_INFO, answer_body=PRODUCER_TABLE, empty_header=True)
class GetAllProducerInfo(Request[Header]):
    """All producers."""
