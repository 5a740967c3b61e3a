"""What a group wants of a topic: tags, or an SQL-92 condition on properties."""

from dataclasses import dataclass
from typing import TypeAlias

from skyrocket.client.core.errors import IllegalSubscription
from skyrocket.format.java_hash import java_hash
from skyrocket.protocol.bodies.subscription import ALL_TAGS, SubscriptionData

TAG = "TAG"
SQL92 = "SQL92"


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """A condition on message properties, `price > 10 AND region = 'eu'`; brokers need enablePropertyFilter=true."""

    expression: str


Filter: TypeAlias = str | SqlFilter


def subscription_of(topic: str, wanted: Filter, version: int) -> SubscriptionData:
    """As brokers are told; `wanted` is `*`, `TagA || TagB` or an SqlFilter. Raises IllegalSubscription."""
    if isinstance(wanted, SqlFilter):
        if not wanted.expression.strip():
            raise IllegalSubscription(f"the SQL filter for topic {topic} is blank: give a condition, or '*' for all")
        return SubscriptionData(topic=topic, expression=wanted.expression, expression_type=SQL92, version=version)
    if not isinstance(wanted, str):
        raise IllegalSubscription(f"the filter for topic {topic} is {wanted!r}: give tags as text, or an SqlFilter")
    tags = tuple(dict.fromkeys(tag.strip() for tag in wanted.split("||") if tag.strip()))
    if wanted.strip() in ("", ALL_TAGS):
        return SubscriptionData(topic=topic, version=version)
    if not tags:
        raise IllegalSubscription(f"the filter {wanted!r} for topic {topic} names no tag: write 'TagA || TagB' or '*'")
    return SubscriptionData(
        topic=topic,
        expression=wanted,
        tags=tags,
        tag_codes=tuple(dict.fromkeys(map(java_hash, tags))),
        version=version,
    )


def differences(mine: SubscriptionData, theirs: SubscriptionData | None) -> str | None:
    """How the group's subscription, as a broker has it, contradicts ours; None when they agree."""
    if theirs is None:
        return f"others of the group do not subscribe to {mine.topic}"
    same_kind = (mine.expression_type or TAG) == (theirs.expression_type or TAG)
    same_wish = set(mine.tags) == set(theirs.tags) if mine.tags or theirs.tags else mine.expression == theirs.expression
    if same_kind and same_wish:
        return None
    return (
        f"topic {mine.topic}: here {mine.expression!r} ({mine.expression_type}), "
        f"another member has {theirs.expression!r} ({theirs.expression_type})"
    )
