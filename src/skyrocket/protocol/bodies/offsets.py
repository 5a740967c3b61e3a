"""Offsets as slaves copy them and tools reset them."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from skyrocket.model.data_version import DataVersion
from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.kinds import Queue


@body
class ConsumerOffsetTable(BodyBase):
    """`topic@group` → queue id → next offset; a 5.x slave needs the data version."""

    offsets: Annotated[Mapping[str, Mapping[int, int]], "offsetTable"] = field(default_factory=dict)
    data_version: DataVersion | None = None
    topics_of_group: Annotated[Mapping[str, list[str]] | None, "groupTopicMap"] = None


@body
class DelayOffsetTable(BodyBase):
    """Delay level → next offset of its queue."""

    offsets: Annotated[Mapping[int, int], "offsetTable"] = field(default_factory=dict)
    data_version: DataVersion | None = None


@body
class ResetOffsets(BodyBase):
    """Queue → offset; the answer to a reset and what is pushed to clients."""

    offsets: Annotated[Mapping[Queue, int], "offsetTable"] = field(default_factory=dict)


@body
class QueueOffset(BodyBase):
    """One line of the reset that C++ clients understand."""

    broker_name: str = ""
    topic: str = ""
    queue_id: int = 0
    offset: int = 0


@body
class ResetOffsetList(BodyBase):
    """A reset as a list, for C++ clients."""

    offsets: Annotated[tuple[QueueOffset, ...], "offsetTable"] = ()


@body
class ConsumerStatus(BodyBase):
    """Offsets as clients see them: of one client by queue, or of all by client id and queue."""

    by_queue: Annotated[Mapping[Queue, int], "messageQueueTable"] = field(default_factory=dict)
    by_client: Annotated[Mapping[str, Mapping[Queue, int]], "consumerTable"] = field(default_factory=dict)


@body
class CorrectionOffsets(BodyBase):
    """QUERY_CORRECTION_OFFSET: queue id → smallest offset of the other groups."""

    offsets: Annotated[Mapping[int, int], "correctionOffsets"] = field(default_factory=dict)
