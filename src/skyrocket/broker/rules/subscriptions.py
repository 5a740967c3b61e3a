"""What a subscription wants: tags are compared by their code at the queue's entry, properties at the record."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from skyrocket.filtering.sql92 import SqlError, compile_filter
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import RETRY_TOPIC
from skyrocket.format.record import record_properties
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.subscription import ALL_TAGS, SubscriptionData
from skyrocket.protocol.errors import FilterDataNotExist, SubscriptionParseFailed, SystemFailure

SQL92: Final = "SQL92"
_TAG_KINDS: Final = (None, "", "TAG")

PropertyTest = Callable[[bytes], bool]  # of the encoded properties


class MessageFilter(NamedTuple):
    """Which messages; None: no condition of that kind."""

    tags_codes: Collection[int] | None = None
    properties: PropertyTest | None = None

    def record(self, record: memoryview) -> bool:
        """The condition on properties, of a whole record."""
        return self.properties is None or self.properties(record_properties(record))


EVERYTHING: Final = MessageFilter()


class Subscriptions:
    """Reads subscriptions; `by_property` is RocketMQ's `enablePropertyFilter`, `of_retries` `filterSupportRetry`."""

    def __init__(self, *, by_property: bool = False, of_retries: bool = False) -> None:
        self.by_property = by_property
        self._of_retries = of_retries

    def of_request(self, topic: str, expression: str | None, kind: str | None) -> SubscriptionData:
        """What a pull itself says it wants; raises SubscriptionParseFailed."""
        if kind not in _TAG_KINDS:
            self.check_kind(kind)
            return SubscriptionData(topic, expression or "", kind)
        if not expression or expression == ALL_TAGS:
            return SubscriptionData(topic)
        tags = tuple(dict.fromkeys(tag for part in expression.split("||") if (tag := part.strip())))
        if not tags:
            raise SubscriptionParseFailed("parse the consumer's subscription failed")
        return SubscriptionData(topic, expression, tags=tags, tag_codes=tuple(map(java_hash, tags)))

    def filter_of(self, subscription: SubscriptionData, *, lenient: bool = False) -> MessageFilter:
        """The conditions of a subscription.

        The client compares the texts of tags, the broker must not. Raises FilterDataNotExist for an expression that
        cannot be read; a `lenient` one wants everything then, as RocketMQ does when the pull itself brought it.
        """
        if subscription.expression_type not in _TAG_KINDS:
            self.check_kind(subscription.expression_type)
            try:
                return MessageFilter(properties=property_test(subscription.expression))
            except SqlError:
                if lenient:
                    return EVERYTHING
                raise FilterDataNotExist(
                    "The broker's consumer filter data is not exist!Your expression may be wrong!"
                ) from None
        if subscription.is_class_filter or subscription.expression in ("", ALL_TAGS):
            return EVERYTHING
        return MessageFilter(frozenset(subscription.tag_codes))

    def of_retries(self, wanted: MessageFilter, topic: str, by_topic: Mapping[str, SubscriptionData]) -> MessageFilter:
        """With `filterSupportRetry` a retry topic that is filtered by properties takes the filters of its messages' own
        topics: those that the group subscribes to. RocketMQ: a retry topic subscribed by tags passes everything, and
        so do messages of a topic without such a filter.
        """
        if not self._of_retries or wanted.properties is None or not topic.startswith(RETRY_PREFIX):
            return wanted

        def test(properties: bytes) -> bool:
            origin = (find_property(properties, RETRY_TOPIC) or b"").decode("utf-8", "replace")
            subscription = by_topic.get(origin)
            if subscription is None or subscription.expression_type in _TAG_KINDS:
                return True
            try:
                return property_test(subscription.expression)(properties)
            except SqlError:
                return True

        return MessageFilter(properties=test)

    def check(self, subscription: SubscriptionData) -> None:
        """CHECK_CLIENT_CONFIG; raises SystemFailure, or SubscriptionParseFailed with what is wrong."""
        if subscription.expression_type in _TAG_KINDS:
            return
        self.check_kind(subscription.expression_type)
        try:
            compile_filter(subscription.expression)
        except SqlError as error:
            raise SubscriptionParseFailed(f"Invalid MessageSelector. {error}") from None

    def check_kind(self, kind: str | None) -> None:
        """Raises SystemFailure for a kind of expression that is not served."""
        if not self.by_property:
            raise SystemFailure(f"The broker does not support consumer to filter message by {kind}")


def property_test(expression: str) -> PropertyTest:
    """An SQL92 expression as a test of encoded properties; raises SqlError."""
    matches = compile_filter(expression).matches_with

    def test(properties: bytes) -> bool:
        def lookup(name: str) -> str | None:
            value = find_property(properties, name.encode())
            return None if value is None else value.decode("utf-8", "replace")

        return matches(lookup)

    return test
