"""Members of a consumer group: who else is there, locks of queues for consumption in order, does my filter work.

Apart from `clients`, which every producer loads.
"""

from skyrocket.protocol.bodies.connections import ConsumerConnections, ConsumerList
from skyrocket.protocol.bodies.locks import LockedQueues, QueueLocks
from skyrocket.protocol.bodies.subscription import ClientConfigCheck
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import EmptyAnswer, Header, Request, request


@request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, answer=EmptyAnswer, answer_body=ConsumerList)
class GetConsumerListByGroup(Request[EmptyAnswer]):
    """Who shares the queues with me?"""

    consumer_group: str


@request(RequestCode.GET_CONSUMER_CONNECTION_LIST, answer_body=ConsumerConnections)
class GetConsumerConnectionList(Request[Header]):
    """Members of a consumer group, and what they subscribe to."""

    consumer_group: str
    with_times: bool | None = None  # ours: also since when each is there; Apache's brokers pass it over


@request(RequestCode.CHECK_CLIENT_CONFIG, body=ClientConfigCheck, optional_body=True)
class CheckClientConfig(Request[Header]):
    """Does the broker understand my filter?"""


@request(RequestCode.LOCK_BATCH_MQ, body=QueueLocks, answer_body=LockedQueues, empty_header=True)
class LockBatchMq(Request[Header]):
    """Queues that only this client may consume for a while."""


@request(RequestCode.UNLOCK_BATCH_MQ, body=QueueLocks, empty_header=True)
class UnlockBatchMq(Request[Header]):
    """Give queues back."""
