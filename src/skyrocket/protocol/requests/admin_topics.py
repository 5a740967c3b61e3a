"""Administration of topics on a broker."""

from skyrocket.model.topic_config import MULTI_TAG, SINGLE_TAG
from skyrocket.protocol.bodies.statistics import TopicStats
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TopicConfigList, TopicList, TopicTable
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.header import Header, Int, Request, answer, request, wire


@request(RequestCode.UPDATE_AND_CREATE_TOPIC)
class UpdateAndCreateTopic(Request[Header]):
    """A topic to create or change; attributes are changes: `+key=value,-key`."""

    topic: str
    default_topic: str
    read_queue_nums: Int
    write_queue_nums: Int
    perm: Int
    topic_filter_type: str
    order: bool = False
    topic_sys_flag: Int | None = None
    attributes: str | None = None
    force: bool | None = None

    def check_fields(self) -> None:
        if self.topic_filter_type not in (SINGLE_TAG, MULTI_TAG):
            raise SystemFailure(
                "org.apache.rocketmq.remoting.exception.RemotingCommandException: "
                f"topicFilterType = [{self.topic_filter_type}] value invalid"
            )


@request(RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC)
class UpdateAndCreateStaticTopic(UpdateAndCreateTopic):
    """A topic whose queues are mapped to brokers; the body is the mapping."""


@request(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, body=TopicConfigList, empty_header=True)
class UpdateAndCreateTopicList(Request[Header]):
    """Many topics at once."""


@request(RequestCode.DELETE_TOPIC_IN_BROKER)
class DeleteTopicInBroker(Request[Header]):
    """Remove a topic with its queues; a blank name is the handler's to refuse (code 29)."""

    topic: str | None = None


@request(RequestCode.GET_TOPIC_CONFIG, answer_body=TOPIC_CONFIG)
class GetTopicConfig(Request[Header]):
    """One topic."""

    topic: str
    logical: bool | None = wire("lo", default=None)


@answer
class GetAllTopicConfigAnswer(Header):
    """How many there are in all; absent from old servers, which give everything at once."""

    total_topic_num: Int | None = None


@request(RequestCode.GET_ALL_TOPIC_CONFIG, answer=GetAllTopicConfigAnswer, answer_body=TopicTable)
class GetAllTopicConfig(Request[GetAllTopicConfigAnswer]):
    """All topics, in pages if the caller says so; `data_version` is JSON text or empty."""

    topic_seq: Int | None = None
    max_topic_num: Int | None = None
    data_version: str | None = None


@request(RequestCode.GET_TOPIC_STATS_INFO, answer_body=TopicStats)
class GetTopicStatsInfo(Request[Header]):
    """First and last offset of every queue."""

    topic: str


@request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, answer_body=TopicList)
class GetSystemTopicListFromBroker(Request[Header]):
    """The topics that belong to the system."""


@request(RequestCode.CLEAN_UNUSED_TOPIC)
class CleanUnusedTopic(Request[Header]):
    """Remove queues of topics that are not there any more."""
