"""Consumer groups of a broker as tables, lists and single ones."""

from collections.abc import Mapping
from dataclasses import field

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, TEXT_KEY, Field, bean, map_of, tuple_of
from skyrocket.model import json_tables
from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body
from skyrocket.protocol.bodies.topics import DATA_VERSION_KIND

SUBSCRIPTION_GROUP_KIND = json_tables.SUBSCRIPTION_GROUP
SUBSCRIPTION_GROUP = JsonBody(SUBSCRIPTION_GROUP_KIND)


@body
class GroupTable(BodyBase):
    """Groups by name; `forbidden` is group → topic → bitmap of operations, and never left out."""

    data_version: DataVersion = field(default_factory=DataVersion)
    groups: Mapping[str, SubscriptionGroup] = field(default_factory=dict)
    forbidden: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


GROUP_TABLE = JsonBody(
    bean(
        GroupTable,
        Field("dataVersion", "data_version", DATA_VERSION_KIND),
        Field("forbiddenTable", "forbidden", map_of(TEXT_KEY, map_of(TEXT_KEY, INTEGER)), since_5=True),
        Field("subscriptionGroupTable", "groups", map_of(TEXT_KEY, SUBSCRIPTION_GROUP_KIND)),
    )
)


@body
class GroupConfigList(BodyBase):
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    groups: tuple[SubscriptionGroup, ...] = ()


GROUP_CONFIG_LIST = JsonBody(
    bean(GroupConfigList, Field("groupConfigList", "groups", tuple_of(SUBSCRIPTION_GROUP_KIND)))
)


@body
class GroupList(BodyBase):
    """QUERY_TOPIC_CONSUME_BY_WHO: names of groups."""

    groups: tuple[str, ...] = ()


GROUP_LIST = JsonBody(bean(GroupList, Field("groupList", "groups", tuple_of(TEXT))))


@body
class GroupForbidden(BodyBase):
    """UPDATE_AND_GET_GROUP_FORBIDDEN: may the group read the topic?"""

    group: str = ""
    topic: str = ""
    readable: bool | None = None


GROUP_FORBIDDEN = JsonBody(
    bean(
        GroupForbidden,
        Field("group", "group", TEXT),
        Field("readable", "readable", FLAG),
        Field("topic", "topic", TEXT),
    )
)
