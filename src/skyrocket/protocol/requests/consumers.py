"""Members of a consumer group: who else is there, locks of queues for consumption in order, does my filter work.

Apart from `clients`, which every producer loads.
"""

from skyrocket.protocol.bodies.connections import CONSUMER_LIST
from skyrocket.protocol.bodies.locks import LOCKED_QUEUES, QUEUE_LOCKS
from skyrocket.protocol.bodies.subscription import CLIENT_CONFIG_CHECK
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import EmptyAnswer, Header, Request, request


@request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, answer=EmptyAnswer, answer_body=CONSUMER_LIST)
class GetConsumerListByGroup(Request[EmptyAnswer]):
    """Who shares the queues with me?"""

    consumer_group: str


@request(RequestCode.CHECK_CLIENT_CONFIG, body=CLIENT_CONFIG_CHECK, optional_body=True)
class CheckClientConfig(Request[Header]):
    """Does the broker understand my filter?"""


@request(RequestCode.LOCK_BATCH_MQ, body=QUEUE_LOCKS, answer_body=LOCKED_QUEUES, empty_header=True)
class LockBatchMq(Request[Header]):
    """Queues that only this client may consume for a while."""


@request(RequestCode.UNLOCK_BATCH_MQ, body=QUEUE_LOCKS, empty_header=True)
class UnlockBatchMq(Request[Header]):
    """Give queues back."""
