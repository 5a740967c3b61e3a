"""SubscriptionData: which messages of a topic a group wants."""

from skyrocket.fastjson.bean import FLAG, INTEGER, TEXT, Field, bean, tuple_of
from skyrocket.protocol.bodies.json_body import BodyBase, JsonBody, body

ALL_TAGS = "*"


@body
class SubscriptionData(BodyBase):
    """`tags` and `tag_codes` (their Java hashes) are empty when all tags are wanted; `version` is the client's ms."""

    topic: str = ""
    expression: str = ALL_TAGS
    expression_type: str | None = "TAG"
    tags: tuple[str, ...] = ()
    tag_codes: tuple[int, ...] = ()
    version: int = 0
    is_class_filter: bool = False


SUBSCRIPTION_DATA = bean(
    SubscriptionData,
    Field("classFilterMode", "is_class_filter", FLAG),
    Field("codeSet", "tag_codes", tuple_of(INTEGER)),
    Field("expressionType", "expression_type", TEXT),
    Field("subString", "expression", TEXT),
    Field("subVersion", "version", INTEGER),
    Field("tagsSet", "tags", tuple_of(TEXT)),
    Field("topic", "topic", TEXT),
)


@body
class ClientConfigCheck(BodyBase):
    """CHECK_CLIENT_CONFIG: does the broker understand this subscription?"""

    client_id: str = ""
    group: str = ""
    subscription: SubscriptionData | None = None
    namespace: str | None = None


CLIENT_CONFIG_CHECK = JsonBody(
    bean(
        ClientConfigCheck,
        Field("clientId", "client_id", TEXT),
        Field("group", "group", TEXT),
        Field("namespace", "namespace", TEXT),
        Field("subscriptionData", "subscription", SUBSCRIPTION_DATA),
    )
)


@body
class GroupSubscription(BodyBase):
    """QUERY_SUBSCRIPTION_BY_CONSUMER: what a group has subscribed to."""

    group: str = ""
    topic: str = ""
    subscription: SubscriptionData | None = None


GROUP_SUBSCRIPTION = JsonBody(
    bean(
        GroupSubscription,
        Field("group", "group", TEXT),
        Field("subscriptionData", "subscription", SUBSCRIPTION_DATA),
        Field("topic", "topic", TEXT),
    )
)
