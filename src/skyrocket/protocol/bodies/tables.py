"""Plain tables: text by text, and the entries of a consume queue."""

from collections.abc import Mapping
from dataclasses import field

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.subscription import SUBSCRIPTION_DATA, SubscriptionData


@body
class KvTable(BodyBase):
    """Runtime info of a broker, a namespace of a name server."""

    table: Mapping[str, str] = field(default_factory=dict)


KV_TABLE = JsonBody(bean(KvTable, Field("table", "table", map_of(TEXT_KEY, TEXT))))


@body
class QueueEntryInfo(BodyBase):
    """One entry; `matches` is whether the filter of the group lets it pass."""

    physical_offset: int = 0
    record_size: int = 0
    tags_code: int = 0
    matches: bool = False
    extension: str | None = None
    bit_map: str | None = None
    message: str | None = None


@body
class QueueEntries(BodyBase):
    """QUERY_CONSUME_QUEUE."""

    min_index: int = 0
    max_index: int = 0
    entries: tuple[QueueEntryInfo, ...] | None = None
    subscription: SubscriptionData | None = None
    filter_data: str | None = None


QUEUE_ENTRIES = JsonBody(
    bean(
        QueueEntries,
        Field("filterData", "filter_data", TEXT),
        Field("maxQueueIndex", "max_index", INTEGER),
        Field("minQueueIndex", "min_index", INTEGER),
        Field(
            "queueData",
            "entries",
            tuple_of(
                bean(
                    QueueEntryInfo,
                    Field("bitMap", "bit_map", TEXT),
                    Field("eval", "matches", FLAG),
                    Field("extendDataJson", "extension", TEXT),
                    Field("msg", "message", TEXT),
                    Field("physicOffset", "physical_offset", INTEGER),
                    Field("physicSize", "record_size", INTEGER),
                    Field("tagsCode", "tags_code", INTEGER),
                )
            ),
        ),
        Field("subscriptionData", "subscription", SUBSCRIPTION_DATA),
    )
)
