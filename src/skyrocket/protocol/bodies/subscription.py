"""SubscriptionData: which messages of a topic a group wants."""

from typing import Annotated

from skyrocket.protocol.bodies.json_body import BodyBase, body

ALL_TAGS = "*"


@body
class SubscriptionData(BodyBase):
    """`tags` and `tag_codes` (their Java hashes) are empty when all tags are wanted; `version` is the client's ms."""

    topic: str = ""
    expression: Annotated[str, "subString"] = ALL_TAGS
    expression_type: str | None = "TAG"
    tags: Annotated[tuple[str, ...], "tagsSet"] = ()
    tag_codes: Annotated[tuple[int, ...], "codeSet"] = ()
    version: Annotated[int, "subVersion"] = 0
    is_class_filter: Annotated[bool, "classFilterMode"] = False


@body
class ClientConfigCheck(BodyBase):
    """CHECK_CLIENT_CONFIG: does the broker understand this subscription?"""

    client_id: str = ""
    group: str = ""
    subscription: Annotated[SubscriptionData | None, "subscriptionData"] = None
    namespace: str | None = None


@body
class GroupSubscription(BodyBase):
    """QUERY_SUBSCRIPTION_BY_CONSUMER: what a group has subscribed to."""

    group: str = ""
    topic: str = ""
    subscription: Annotated[SubscriptionData | None, "subscriptionData"] = None
