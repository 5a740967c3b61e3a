"""Locks of queues, for consumption in order."""

from typing import Annotated

from skyrocket.fastjson.bean import SINCE_5
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import Queue


@body
class QueueLocks(BodyBase):
    """LOCK_BATCH_MQ and UNLOCK_BATCH_MQ: queues that a client wants, or gives back."""

    group: Annotated[str | None, "consumerGroup"] = None
    client_id: str | None = None
    queues: Annotated[tuple[Queue, ...], "mqSet"] = ()
    only_this_broker: Annotated[bool, SINCE_5] = False


@body
class LockedQueues(BodyBase):
    """The queues that the client now holds."""

    queues: Annotated[tuple[Queue, ...], "lockOKMQSet"] = ()
