"""Offsets as slaves copy them and tools reset them."""

from collections.abc import Mapping
from dataclasses import field

from skyrocket.fastjson.bean import INTEGER, INTEGER_KEY, TEXT, TEXT_KEY, Field, bean, list_of, map_of, tuple_of
from skyrocket.model.data_version import DataVersion
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.kinds import MESSAGE_QUEUE_KEY
from skyrocket.protocol.bodies.topics import DATA_VERSION_KIND


@body
class ConsumerOffsetTable(BodyBase):
    """`topic@group` → queue id → next offset; a 5.x slave needs the data version."""

    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    data_version: DataVersion | None = None
    topics_of_group: Mapping[str, list[str]] | None = None


CONSUMER_OFFSET_TABLE = JsonBody(
    bean(
        ConsumerOffsetTable,
        Field("dataVersion", "data_version", DATA_VERSION_KIND),
        Field("groupTopicMap", "topics_of_group", map_of(TEXT_KEY, list_of(TEXT))),
        Field("offsetTable", "offsets", map_of(TEXT_KEY, map_of(INTEGER_KEY, INTEGER))),
    )
)


@body
class DelayOffsetTable(BodyBase):
    """Delay level → next offset of its queue."""

    offsets: Mapping[int, int] = field(default_factory=dict)
    data_version: DataVersion | None = None


DELAY_OFFSET_TABLE = JsonBody(
    bean(
        DelayOffsetTable,
        Field("dataVersion", "data_version", DATA_VERSION_KIND),
        Field("offsetTable", "offsets", map_of(INTEGER_KEY, INTEGER)),
    )
)


@body
class ResetOffsets(BodyBase):
    """Queue → offset; the answer to a reset and what is pushed to clients."""

    offsets: Mapping[MessageQueue, int] = field(default_factory=dict)


RESET_OFFSETS = JsonBody(bean(ResetOffsets, Field("offsetTable", "offsets", map_of(MESSAGE_QUEUE_KEY, INTEGER))))


@body
class QueueOffset(BodyBase):
    """One line of the reset that C++ clients understand."""

    broker_name: str = ""
    topic: str = ""
    queue_id: int = 0
    offset: int = 0


@body
class ResetOffsetList(BodyBase):
    """The same reset as a list, for C++ clients."""

    offsets: tuple[QueueOffset, ...] = ()


RESET_OFFSET_LIST = JsonBody(
    bean(
        ResetOffsetList,
        Field(
            "offsetTable",
            "offsets",
            tuple_of(
                bean(
                    QueueOffset,
                    Field("brokerName", "broker_name", TEXT),
                    Field("offset", "offset", INTEGER),
                    Field("queueId", "queue_id", INTEGER),
                    Field("topic", "topic", TEXT),
                )
            ),
        ),
    )
)


@body
class ConsumerStatus(BodyBase):
    """Offsets as clients see them: of one client by queue, or of all by client id and queue."""

    by_queue: Mapping[MessageQueue, int] = field(default_factory=dict)
    by_client: Mapping[str, Mapping[MessageQueue, int]] = field(default_factory=dict)


CONSUMER_STATUS = JsonBody(
    bean(
        ConsumerStatus,
        Field("consumerTable", "by_client", map_of(TEXT_KEY, map_of(MESSAGE_QUEUE_KEY, INTEGER))),
        Field("messageQueueTable", "by_queue", map_of(MESSAGE_QUEUE_KEY, INTEGER)),
    )
)


@body
class CorrectionOffsets(BodyBase):
    """QUERY_CORRECTION_OFFSET: queue id → smallest offset of the other groups."""

    offsets: Mapping[int, int] = field(default_factory=dict)


CORRECTION_OFFSETS = JsonBody(
    bean(CorrectionOffsets, Field("correctionOffsets", "offsets", map_of(INTEGER_KEY, INTEGER)))
)
