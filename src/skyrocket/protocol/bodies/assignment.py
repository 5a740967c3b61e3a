"""Who consumes which queue and how, when the broker decides."""

from collections.abc import Mapping
from dataclasses import field

from skyrocket.fastjson.bean import INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, tuple_of
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import MESSAGE_MODEL, MESSAGE_QUEUE, REQUEST_MODE


@body
class AssignmentQuery(BodyBase):
    """QUERY_ASSIGNMENT."""

    topic: str | None = None
    group: str | None = None
    client_id: str | None = None
    strategy: str | None = None
    message_model: str | None = None


ASSIGNMENT_QUERY = JsonBody(
    bean(
        AssignmentQuery,
        Field("clientId", "client_id", TEXT),
        Field("consumerGroup", "group", TEXT),
        Field("messageModel", "message_model", MESSAGE_MODEL),
        Field("strategyName", "strategy", TEXT),
        Field("topic", "topic", TEXT),
    )
)


@body
class QueueAssignment(BodyBase):
    """One queue, to be pulled or popped; queue id -1 is any queue of the broker."""

    queue: MessageQueue = MessageQueue("", "", 0)
    mode: str | None = "PULL"
    attachments: Mapping[str, str] | None = None


@body
class Assignment(BodyBase):
    """None: nothing valid, keep what you have; empty: nothing is yours."""

    queues: tuple[QueueAssignment, ...] | None = None


ASSIGNMENT = JsonBody(
    bean(
        Assignment,
        Field(
            "messageQueueAssignments",
            "queues",
            tuple_of(
                bean(
                    QueueAssignment,
                    Field("attachments", "attachments", map_of(TEXT_KEY, TEXT)),
                    Field("messageQueue", "queue", MESSAGE_QUEUE),
                    Field("mode", "mode", REQUEST_MODE),
                )
            ),
        ),
    )
)


@body
class RequestMode(BodyBase):
    """SET_MESSAGE_REQUEST_MODE: how a group consumes a topic."""

    topic: str | None = None
    group: str | None = None
    mode: str | None = "PULL"
    pop_share_queues: int = 0


_REQUEST_MODE = bean(
    RequestMode,
    Field("consumerGroup", "group", TEXT),
    Field("mode", "mode", REQUEST_MODE),
    Field("popShareQueueNum", "pop_share_queues", INTEGER),
    Field("topic", "topic", TEXT),
)
REQUEST_MODE_BODY = JsonBody(_REQUEST_MODE)


@body
class RequestModeTable(BodyBase):
    """GET_ALL_MESSAGE_REQUEST_MODE: topic → group → mode."""

    modes: Mapping[str, Mapping[str, RequestMode]] = field(default_factory=dict)


REQUEST_MODE_TABLE = JsonBody(
    bean(
        RequestModeTable,
        Field("messageRequestModeMap", "modes", map_of(TEXT_KEY, map_of(TEXT_KEY, _REQUEST_MODE))),
    )
)
