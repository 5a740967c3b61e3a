"""Plain tables: text by text, and the entries of a consume queue."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from skyrocket.protocol.bodies.json_body import BodyBase, body
from skyrocket.protocol.bodies.subscription import SubscriptionData


@body
class KvTable(BodyBase):
    """Runtime info of a broker, a namespace of a name server."""

    table: Mapping[str, str] = field(default_factory=dict)


@body
class QueueEntryInfo(BodyBase):
    """One entry; `matches` is whether the group's filter lets it pass, for entries with an extended part alone."""

    physical_offset: Annotated[int, "physicOffset"] = 0
    record_size: Annotated[int, "physicSize"] = 0
    tags_code: int = 0
    matches: Annotated[bool, "eval"] = False
    extension: Annotated[str | None, "extendDataJson"] = None
    bit_map: str | None = None
    message: Annotated[str | None, "msg"] = None


@body
class QueueEntries(BodyBase):
    """QUERY_CONSUME_QUEUE."""

    min_index: Annotated[int, "minQueueIndex"] = 0
    max_index: Annotated[int, "maxQueueIndex"] = 0
    entries: Annotated[tuple[QueueEntryInfo, ...] | None, "queueData"] = None
    subscription: Annotated[SubscriptionData | None, "subscriptionData"] = None
    filter_data: str | None = None


@body
class QueueCheck(BodyBase):
    """CHECK_ROCKSDB_CQ_WRITE_PROGRESS; 0: files and KV store are equal, 1: they differ, 2: it runs, 3: failed."""

    check_result: str | None = None
    check_status: int = 0


QUEUE_CHECK_RUNS = 2
