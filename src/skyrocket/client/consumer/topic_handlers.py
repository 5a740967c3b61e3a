"""The handlers of one topic: what is asked of brokers for all of them, and which of them gets a message.

A group has one subscription per topic, so brokers are asked for the union:

    tags="a", tags="b || c"            a || b || c
    tags="a", then one for all         *
    sql="price > 5", tags="gift"       (price > 5) OR (TAGS IN ('gift'))
    sql="price > 5", tags="gift" in one: both must hold, (TAGS IN ('gift')) AND (price > 5)

A message goes to the first handler that takes it, in the order of registration. Two that name the same tag, or the same
condition, are refused, and so is one behind a handler for all: it would never be called. Whether two conditions of SQL
overlap cannot be told; there the first counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from skyrocket.client.consumer.handlers import Handler, Outcome
from skyrocket.client.consumer.subscription import SQL92, SqlFilter, subscription_of
from skyrocket.client.core.errors import ClientError, IllegalSubscription
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.model import property_names
from skyrocket.protocol.bodies.subscription import SubscriptionData

ALL: Final[frozenset[str]] = frozenset()


class NoHandler(ClientError):
    """A message that none of a topic's handlers takes."""

    def __init__(self, message: ReceivedMessage) -> None:
        super().__init__(
            f"no handler takes message {message.message_id} of topic {message.topic} with tags {message.tags!r}: it "
            "was sent for another version of this program, or members of the group subscribe to different things; add "
            "a handler without tags for the rest"
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one handler takes: all of these tags (none: any), and what the condition says."""

    tags: frozenset[str] = ALL
    sql: str | None = None
    text: str = "*"  # as it was written

    @property
    def is_everything(self) -> bool:
        return not self.tags and self.sql is None

    def condition(self) -> str:
        """In SQL."""
        listed = ", ".join("'" + tag.replace("'", "''") + "'" for tag in sorted(self.tags))
        by_tag = f"{property_names.TAGS} IN ({listed})" if self.tags else ""
        if self.sql is None:
            return by_tag
        return f"({by_tag}) AND ({self.sql})" if by_tag else self.sql

    def __str__(self) -> str:
        parts = [f"tags={self.text!r}"] if self.tags or self.sql is None else []
        return ", ".join(parts + ([f"sql={self.sql!r}"] if self.sql is not None else []))


def wanted_of(topic: str, tags: Any, sql: str | None) -> Wanted:
    """From what was given; raises IllegalSubscription."""
    if isinstance(tags, SqlFilter):
        tags, sql = "*", tags.expression
    read = subscription_of(topic, tags, 0)
    if sql is not None:
        subscription_of(topic, SqlFilter(sql), 0)
    return Wanted(frozenset(read.tags), sql, tags)


@dataclass(slots=True)
class _Choice:
    wanted: Wanted
    handler: Handler
    takes: Callable[[ReceivedMessage], bool]


class TopicHandlers:
    """All handlers of a topic, first come first asked."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self._choices: list[_Choice] = []

    @property
    def handlers(self) -> list[Handler]:
        return [choice.handler for choice in self._choices]

    def add(self, wanted: Wanted, handler: Handler) -> None:
        """One more; raises IllegalSubscription where it overlaps with another."""
        for choice in self._choices:
            reason = _overlap(choice.wanted, wanted)
            if reason is not None:
                raise IllegalSubscription(
                    f"topic {self.topic} has handler {choice.handler.name} ({choice.wanted}), so {handler.name} "
                    f"({wanted}) {reason}; each message goes to one handler: give them different tags, another "
                    "consumer group, or unsubscribe the first"
                )
        self._choices.append(_Choice(wanted, handler, _taker(wanted)))

    def subscription(self, topic: str, version: int) -> SubscriptionData:
        """What brokers are asked for; `topic` with its namespace."""
        wishes = [choice.wanted for choice in self._choices]
        if len(wishes) == 1 and (wishes[0].sql is None or not wishes[0].tags):
            only = wishes[0]
            return subscription_of(topic, only.text if only.sql is None else SqlFilter(only.sql), version)
        if any(wish.is_everything for wish in wishes):
            return subscription_of(topic, "*", version)
        if all(wish.sql is None for wish in wishes):
            tags = dict.fromkeys(tag for wish in wishes for tag in sorted(wish.tags))
            return subscription_of(topic, " || ".join(tags), version)
        condition = (
            " OR ".join(f"({wish.condition()})" for wish in wishes) if len(wishes) > 1 else wishes[0].condition()
        )
        return SubscriptionData(topic=topic, expression=condition, expression_type=SQL92, version=version)

    @property
    def caller(self) -> "Handler | TopicHandlers":
        """What is called with messages: a single handler itself, as it was always."""
        return self._choices[0].handler if len(self._choices) == 1 else self

    async def call(self, messages: Sequence[ReceivedMessage]) -> Outcome | None:
        """Each message to its handler, neighbours with the same one together; ends at the first that fails."""
        at = 0
        while at < len(messages):
            handler = self._handler_of(messages[at])
            if handler is None:
                error = NoHandler(messages[at])
                return Outcome(at, error=error, cause=error, status="FAILED", handler="(none)")
            end = at + 1
            while end < len(messages) and self._handler_of(messages[end]) is handler:
                end += 1
            outcome = await handler.call(messages[at:end])
            if outcome is not None:
                if outcome.count is None and end < len(messages):
                    outcome.count = end - at - outcome.first_failed  # those of other handlers were not tried
                outcome.first_failed += at
                return outcome
            at = end
        return None

    def _handler_of(self, message: ReceivedMessage) -> Handler | None:
        for choice in self._choices:
            if choice.takes(message):
                return choice.handler
        return None


def _overlap(first: Wanted, second: Wanted) -> str | None:
    if first.is_everything:
        return "would never be called: register the one for all tags last"
    common = sorted(first.tags & second.tags) if first.tags and second.tags else []
    if first.tags and second.tags and not common:
        return None
    if first.sql is None and second.sql is None and common:
        return f"would never be called for {' || '.join(common)}"
    if first.sql is None and common:
        return f"would never be called for {' || '.join(common)}"
    if first.sql is not None and first.sql == second.sql and (common or first.tags == second.tags):
        return "has the same condition"
    return None


def _taker(wanted: Wanted) -> Callable[[ReceivedMessage], bool]:
    tags = wanted.tags
    if wanted.sql is None:
        return (lambda message: message.tags in tags) if tags else (lambda message: True)
    from skyrocket.filtering.sql92 import SqlError, compile_filter  # only where one of several has a condition

    try:
        matches = compile_filter(wanted.sql).matches
    except SqlError:
        return lambda message: True  # brokers refuse it when the consumer starts, and say where it is wrong
    return lambda message: (not tags or message.tags in tags) and matches(message.properties)
