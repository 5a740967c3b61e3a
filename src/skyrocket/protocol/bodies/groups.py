"""Consumer groups of a broker as tables, lists and single ones."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from skyrocket.fastjson.bean import SINCE_5, bean
from skyrocket.model.data_version import DataVersion
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body

SUBSCRIPTION_GROUP = JsonBody(bean(SubscriptionGroup))


@body
class GroupTable(BodyBase):
    """Groups by name; `forbidden` is group → topic → bitmap of operations, and never left out."""

    data_version: DataVersion = field(default_factory=DataVersion)
    groups: Annotated[Mapping[str, SubscriptionGroup], "subscriptionGroupTable"] = field(default_factory=dict)
    forbidden: Annotated[Mapping[str, Mapping[str, int]], "forbiddenTable", SINCE_5] = field(default_factory=dict)


@body
class GroupConfigList(BodyBase):
    """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST."""

    groups: Annotated[tuple[SubscriptionGroup, ...], "groupConfigList"] = ()


@body
class GroupList(BodyBase):
    """QUERY_TOPIC_CONSUME_BY_WHO: names of groups."""

    groups: Annotated[tuple[str, ...], "groupList"] = ()


@body
class GroupForbidden(BodyBase):
    """UPDATE_AND_GET_GROUP_FORBIDDEN: may the group read the topic?"""

    group: str = ""
    topic: str = ""
    readable: bool | None = None
