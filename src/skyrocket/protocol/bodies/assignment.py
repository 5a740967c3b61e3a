"""Who consumes which queue and how, when the broker decides."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import MessageModel, PullOrPop, Queue


@body
class AssignmentQuery(BodyBase):
    """QUERY_ASSIGNMENT."""

    topic: str | None = None
    group: Annotated[str | None, "consumerGroup"] = None
    client_id: str | None = None
    strategy: Annotated[str | None, "strategyName"] = None
    message_model: MessageModel = None


@body
class QueueAssignment(BodyBase):
    """One queue, to be pulled or popped; queue id -1 is any queue of the broker."""

    queue: Annotated[Queue, "messageQueue"] = MessageQueue("", "", 0)
    mode: PullOrPop = "PULL"
    attachments: Mapping[str, str] | None = None


@body
class Assignment(BodyBase):
    """None: nothing valid, keep what you have; empty: nothing is yours."""

    queues: Annotated[tuple[QueueAssignment, ...] | None, "messageQueueAssignments"] = None


@body
class RequestMode(BodyBase):
    """SET_MESSAGE_REQUEST_MODE: how a group consumes a topic."""

    topic: str | None = None
    group: Annotated[str | None, "consumerGroup"] = None
    mode: PullOrPop = "PULL"
    pop_share_queues: Annotated[int, "popShareQueueNum"] = 0


@body
class RequestModeTable(BodyBase):
    """GET_ALL_MESSAGE_REQUEST_MODE: topic → group → mode."""

    modes: Annotated[Mapping[str, Mapping[str, RequestMode]], "messageRequestModeMap"] = field(default_factory=dict)
