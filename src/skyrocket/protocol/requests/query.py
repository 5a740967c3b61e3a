"""Looking for messages, and for who consumes them."""

from skyrocket.protocol.bodies.groups import GroupList
from skyrocket.protocol.bodies.offsets import CorrectionOffsets
from skyrocket.protocol.bodies.statistics import ConsumeTimeSpans
from skyrocket.protocol.bodies.subscription import GroupSubscription
from skyrocket.protocol.bodies.tables import QueueEntries
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, answer, request, wire


@answer
class QueryMessageAnswer(Header):
    """How far the index has come."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


@request(RequestCode.QUERY_MESSAGE, answer=QueryMessageAnswer)
class QueryMessage(Request[QueryMessageAnswer]):
    """Messages with a key; `index_type` is K (key), U (unique key) or T (tag)."""

    unique_key_query: bool | None = wire("_UNIQUE_KEY_QUERY", default=None)
    topic: str
    key: str | None = None
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    index_type: str | None = None
    last_key: str | None = None


@request(RequestCode.VIEW_MESSAGE_BY_ID)
class ViewMessageById(Request[Header]):
    """The message at a physical offset."""

    offset: Long
    topic: str | None = None


@request(RequestCode.QUERY_CONSUME_QUEUE, answer_body=QueueEntries)
class QueryConsumeQueue(Request[Header]):
    """Entries of a consume queue."""

    topic: str
    queue_id: Int
    index: Long
    count: Int
    consumer_group: str | None = None


@request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, answer_body=GroupList)
class QueryTopicConsumeByWho(Request[Header]):
    """The groups that consume a topic."""

    topic: str


@request(RequestCode.QUERY_TOPICS_BY_CONSUMER, answer_body=TopicList)
class QueryTopicsByConsumer(Request[Header]):
    """The topics that a group consumes."""

    group: str


@request(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, answer_body=GroupSubscription)
class QuerySubscriptionByConsumer(Request[Header]):
    """What a group wants of a topic."""

    group: str
    topic: str | None = None


@request(RequestCode.QUERY_CONSUME_TIME_SPAN, answer_body=ConsumeTimeSpans)
class QueryConsumeTimeSpan(Request[Header]):
    """How old the messages are that a group consumes."""

    topic: str
    group: str


@request(RequestCode.QUERY_CORRECTION_OFFSET, answer_body=CorrectionOffsets)
class QueryCorrectionOffset(Request[Header]):
    """Offsets of other groups, to compare with."""

    topic: str
    compare_group: str
    filter_groups: str | None = None
