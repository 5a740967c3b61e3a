"""Locks of queues, for consumption in order."""

from skyrocket.fastjson.bean import FLAG, TEXT, Field, bean, tuple_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import MESSAGE_QUEUE


@body
class QueueLocks(BodyBase):
    """LOCK_BATCH_MQ and UNLOCK_BATCH_MQ: queues that a client wants, or gives back."""

    group: str | None = None
    client_id: str | None = None
    queues: tuple[MessageQueue, ...] = ()
    only_this_broker: bool = False


QUEUE_LOCKS = JsonBody(
    bean(
        QueueLocks,
        Field("clientId", "client_id", TEXT),
        Field("consumerGroup", "group", TEXT),
        Field("mqSet", "queues", tuple_of(MESSAGE_QUEUE)),
        Field("onlyThisBroker", "only_this_broker", FLAG, since_5=True),
    )
)


@body
class LockedQueues(BodyBase):
    """The queues that the client now holds."""

    queues: tuple[MessageQueue, ...] = ()


LOCKED_QUEUES = JsonBody(bean(LockedQueues, Field("lockOKMQSet", "queues", tuple_of(MESSAGE_QUEUE))))
