"""Locks of queues, for consumption in order."""

from skyrocket.protocol.bodies.locks import LOCKED_QUEUES, QUEUE_LOCKS
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Request, request


@request(RequestCode.LOCK_BATCH_MQ, body=QUEUE_LOCKS, answer_body=LOCKED_QUEUES, empty_header=True)
class LockBatchMq(Request[Header]):
    """Queues that only this client may consume for a while."""


@request(RequestCode.UNLOCK_BATCH_MQ, body=QUEUE_LOCKS, empty_header=True)
class UnlockBatchMq(Request[Header]):
    """Give queues back."""
