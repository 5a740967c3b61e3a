"""What a subscription wants: tags are compared by their code at the queue's entry, properties at the record."""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from skyrocket.clock import Clock, SystemClock
from skyrocket.filtering.sql92 import MAX_LENGTH, SqlError, SqlTooLarge, compile_filter, is_kept
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import RETRY_TOPIC
from skyrocket.format.record import record_properties
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.protocol.bodies.subscription import ALL_TAGS, SubscriptionData
from skyrocket.protocol.errors import FilterDataNotExist, SubscriptionParseFailed, SystemBusy, SystemFailure
from skyrocket.store.reader import LOOK_AT

SQL92: Final = "SQL92"
_TAG_KINDS: Final = (None, "", "TAG")
_MAX_TAG_SIGNS: Final = 65_536
_MAX_TAGS: Final = 4096
_SHORT: Final = 1000  # signs of an SQL92 expression
_READ_PER_SECOND: Final = 25_000
_READ_AT_ONCE: Final = 5_000
_LOOK_AT_OPERANDS: Final = 20_000  # of an expression, over all records of one read

PropertyTest = Callable[[bytes], bool]  # of the encoded properties


class MessageFilter(NamedTuple):
    """Which messages; None: no condition of that kind."""

    tags_codes: Collection[int] | None = None
    properties: PropertyTest | None = None
    look_at: int = LOOK_AT  # how many records one read may try

    def record(self, record: memoryview) -> bool:
        """The condition on properties, of a whole record."""
        return self.properties is None or self.properties(record_properties(record))


EVERYTHING: Final = MessageFilter()


def _look_at(cost: int) -> int:
    """Fewer with a condition that costs much for each record, so that others do not wait for it."""
    return max(1, min(LOOK_AT, _LOOK_AT_OPERANDS // cost))


class Subscriptions:
    """Reads subscriptions; `by_property` is RocketMQ's `enablePropertyFilter`, `of_retries` `filterSupportRetry`."""

    def __init__(self, *, by_property: bool = False, of_retries: bool = False, clock: Clock | None = None) -> None:
        self.by_property = by_property
        self._of_retries = of_retries
        self._reading = _ReadingBudget(clock or SystemClock())

    def of_request(self, topic: str, expression: str | None, kind: str | None) -> SubscriptionData:
        """What a pull itself says it wants; raises SubscriptionParseFailed."""
        if kind not in _TAG_KINDS:
            self.check_kind(kind)
            return SubscriptionData(topic, expression or "", kind)
        if not expression or expression == ALL_TAGS:
            return SubscriptionData(topic)
        if len(expression) > _MAX_TAG_SIGNS:
            raise SubscriptionParseFailed(
                f"parse the consumer's subscription failed: {len(expression)} signs, {_MAX_TAG_SIGNS} are allowed"
            )
        tags = tuple(dict.fromkeys(tag for part in expression.split("||") if (tag := part.strip())))
        if not tags:
            raise SubscriptionParseFailed("parse the consumer's subscription failed")
        return SubscriptionData(topic, expression, tags=tags, tag_codes=tuple(map(java_hash, tags)))

    def filter_of(self, subscription: SubscriptionData, *, lenient: bool = False) -> MessageFilter:
        """The conditions of a subscription.

        The client compares the texts of tags, the broker must not. Raises FilterDataNotExist for an expression that
        cannot be read; a `lenient` one wants everything then, as RocketMQ does when the pull itself brought it. Raises
        SubscriptionParseFailed for one that costs too much.
        """
        if subscription.expression_type not in _TAG_KINDS:
            self.check_kind(subscription.expression_type)
            try:
                return self.property_filter(subscription.expression)
            except SqlTooLarge as error:
                raise SubscriptionParseFailed(f"parse the consumer's subscription failed: {error}") from None
            except SqlError:
                if lenient:
                    return EVERYTHING
                raise FilterDataNotExist(
                    "The broker's consumer filter data is not exist!Your expression may be wrong!"
                ) from None
        if subscription.is_class_filter or subscription.expression in ("", ALL_TAGS):
            return EVERYTHING
        if len(subscription.tag_codes) > _MAX_TAGS:
            raise SubscriptionParseFailed(
                f"parse the consumer's subscription failed: {len(subscription.tag_codes)} tags, {_MAX_TAGS} are allowed"
            )
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

        return MessageFilter(properties=test, look_at=wanted.look_at)

    def check(self, subscription: SubscriptionData) -> None:
        """CHECK_CLIENT_CONFIG; raises SystemFailure, or SubscriptionParseFailed with what is wrong."""
        if subscription.expression_type in _TAG_KINDS:
            return
        self.check_kind(subscription.expression_type)
        try:
            self.property_filter(subscription.expression)
        except SqlError as error:
            raise SubscriptionParseFailed(f"Invalid MessageSelector. {error}") from None

    def property_filter(self, expression: str) -> MessageFilter:
        """The messages that an SQL92 expression wants; raises SqlError, or SystemBusy when many long ones are new."""
        if not is_kept(expression):
            self._reading.spend(len(expression))
        return MessageFilter(properties=property_test(expression), look_at=_look_at(compile_filter(expression).cost))

    def check_kind(self, kind: str | None) -> None:
        """Raises SystemFailure for a kind of expression that is not served."""
        if not self.by_property:
            raise SystemFailure(f"The broker does not support consumer to filter message by {kind}")


class _ReadingBudget:
    """How much of long expressions may be read: about a tenth of the loop's time; short ones are free."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left = float(_READ_AT_ONCE)
        self._at = clock.monotonic()

    def spend(self, signs: int) -> None:
        """Raises SystemBusy when there is nothing left."""
        if not _SHORT < signs <= MAX_LENGTH:  # what is too long is refused without being read
            return
        now = self._clock.monotonic()
        self._left = min(_READ_AT_ONCE, self._left + (now - self._at) * _READ_PER_SECOND)
        self._at = now
        if self._left <= 0:
            raise SystemBusy("[OVERLOAD]too many new and long SQL92 expressions, try again later")
        self._left -= signs


def property_test(expression: str) -> PropertyTest:
    """An SQL92 expression as a test of encoded properties; raises SqlError."""
    matches = compile_filter(expression).matches_with

    def test(properties: bytes) -> bool:
        def lookup(name: str) -> str | None:
            value = find_property(properties, name.encode())
            return None if value is None else value.decode("utf-8", "replace")

        return matches(lookup)

    return test
