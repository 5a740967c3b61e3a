"""What happens to a message of a special kind before it is put.

    TRAN_MSG=true            a half message: waits in RMQ_SYS_TRANS_HALF_TOPIC until its transaction has ended
    DELAY > 0                waits in SCHEDULE_TOPIC_XXXX, queue = level - 1; REAL_TOPIC and REAL_QID say for what
    TIMER_DELAY_SEC …        waits in rmq_sys_wheel_timer for a time of its own (`broker.timer.rules`)

The order is RocketMQ's: a level counts more than a timer, and one that was consumed before is not a half message again.
Plain messages never come here: `is_special` tells them apart by a look at the bytes.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, Protocol

from skyrocket.errors import ConfigError
from skyrocket.format import sys_flag as flags
from skyrocket.format.properties import find_property, with_property, without_property
from skyrocket.format.property_bytes import (
    DELAY_LEVEL,
    INNER_BASE,
    INNER_NUM,
    KEYS,
    PRIORITY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TIMER_OUT_MS,
    TIMER_REQUESTS,
    TRANSACTION_PREPARED,
    UNIQUE_KEY,
)
from skyrocket.model.delay_level import parse_delay_levels
from skyrocket.model.message_type import MessageType, mismatch, type_of
from skyrocket.model.topic import DLQ_PREFIX, HALF_TOPIC, RETRY_PREFIX, SCHEDULE_TOPIC, TIMER_TOPIC, is_system_topic
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.errors import MessageIllegal, SystemFailure
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import PutStatus

_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,10}")
_INT_MAX: Final = 2**31 - 1


def is_special(properties: bytes) -> bool:
    """Whether the rules must be asked; seldom true for a message that is plain after all."""
    return b"DELAY\x01" in properties or b"TIMER_DEL" in properties or b"TRAN_MSG\x01" in properties


def check_own_properties(properties: bytes, sys_flag: int = 0) -> None:
    """Raises MessageIllegal for what the broker alone writes into a batch that it keeps whole.

    RocketMQ: 13 for INNER_NUM where no batch is; with INNER_BASE a producer can make a queue unreadable.
    """
    if sys_flag & flags.INNER_BATCH:
        raise MessageIllegal("the flag of an inner batch (0x80) is the broker's own: send a batch instead")
    if properties.find(b"INNER_") < 0:
        return
    for name in (INNER_NUM, INNER_BASE):
        if find_property(properties, name) is not None:
            raise MessageIllegal(f"the property {name.decode()} is the broker's own: send the message without it")


def delay_level(properties: bytes) -> int:
    """The level that a message asks for, 0 without one; raises SystemFailure for a value that is not a number."""
    text = find_property(properties, DELAY_LEVEL)
    if text is None:
        return 0
    if _NUMBER.fullmatch(text) is None or not -_INT_MAX - 1 <= (level := int(text)) <= _INT_MAX:
        # RocketMQ: an exception of its parser, with the same code.
        shown = text.decode("utf-8", "replace")
        raise SystemFailure(f"the property DELAY is {shown!r}, but a delay level is a whole number such as 3")
    return level


def queue_by_priority(properties: bytes, queue_id: int, write_queues: int) -> tuple[int, bytes]:
    """The queue of a single message, and its properties: a priority chooses the queue, but not of special kinds."""
    text = find_property(properties, PRIORITY) or b""
    if _NUMBER.fullmatch(text) is None or not 0 <= (priority := int(text)) <= _INT_MAX:
        return queue_id, properties  # RocketMQ: anything else is stored and ignored
    if message_type(properties) is not MessageType.PRIORITY:
        return queue_id, without_property(properties, PRIORITY)
    return min(priority, max(write_queues - 1, 0)), properties


def message_type(properties: bytes) -> MessageType:
    """What kind of message has these properties."""
    return type_of(lambda name: (find_property(properties, name.encode()) or b"").decode("utf-8", "replace"))


def _is_half(properties: bytes) -> bool:
    return (find_property(properties, TRANSACTION_PREPARED) or b"").lower() == b"true"


def check_key(topic: TopicConfig, properties: bytes) -> None:
    """Raises MessageIllegal for a message without key in a topic that keeps the last message of each key."""
    if is_compacted(topic) and not (find_property(properties, KEYS) or b"").strip():
        raise MessageIllegal("Required message key is missing")


def is_compacted(topic: TopicConfig) -> bool:
    """Whether the topic keeps the last message of each key."""
    return topic.cleanup_policy == "COMPACTION"


def delays_of_levels(setting: str) -> tuple[int, ...]:
    """Milliseconds of level 1, 2, … as `messageDelayLevel` has them; raises ConfigError."""
    try:
        delays_ms = parse_delay_levels(setting)
    except ValueError as error:
        raise ConfigError(f"messageDelayLevel: {error}") from error
    if not delays_ms:
        raise ConfigError(
            "messageDelayLevel is empty: give at least one duration, for example 1s 5s 10s, or leave the setting out"
        )
    return delays_ms


def with_replaced(properties: bytes, name: bytes, value: bytes) -> bytes:
    """The properties with this value and no other of that name."""
    if name in properties:
        properties = without_property(properties, name)
    return with_property(properties, name, value)


@lru_cache(maxsize=4096)
def real_properties(topic: str, queue_id: int) -> bytes:
    """The properties that say where a message belongs that waits elsewhere."""
    return b"REAL_TOPIC\x01%b\x02REAL_QID\x01%d\x02" % (topic.encode(), queue_id)


class TimerKeeper(Protocol):
    """Who keeps messages that ask for a time of their own."""

    def park(self, message: PutMessage) -> None:
        """Let a message wait if it asks for it; raises the refusals of timers."""

    def step_for(self, asked: bytes, text: bytes) -> int | None:
        """The step that a timer's property means; None when its time has passed. Raises as `park` does."""

    @property
    def is_on(self) -> bool:
        """Whether messages can wait at all (`timerWheelEnable`)."""

    @property
    def is_behind(self) -> bool:
        """Whether what is due may not have been delivered yet."""


class HalfKeeper(Protocol):
    """Who keeps half messages."""

    def accept(self, topic: str) -> None:
        """A half for this topic is about to be put; raises NoPermission."""


class CopyKeeper(Protocol):
    """Who copies the log to slaves and knows which of them have what."""

    def is_short(self) -> bool:
        """Whether so few brokers are in sync that no message that waits for them may be taken."""

    def held_by(self, end_offset: int) -> int:
        """How many brokers are known to have the log before an offset, this one among them."""

    def wait(self, end_offset: int, settled: Callable[[PutStatus], None]) -> None:
        """Call back, at once or later, when enough brokers have the log before an offset, or that took too long."""


class PutRules:
    """Applied to messages of clients and to those that consumers send back, never to what is delivered.

    What waits for a time of its own, or for the end of its transaction, is kept by features, which say so here; and
    so does the one that copies the log, where senders wait for copies.
    """

    def __init__(self, delays_ms: Sequence[int]) -> None:
        self.delays_ms = tuple(delays_ms)  # of the delay levels
        self.checks_types = False  # RocketMQ: only its gRPC proxy does
        self.timers: TimerKeeper = _NoTimers()
        self.halves: HalfKeeper = _UncountedHalves()
        self.copies: CopyKeeper | None = None  # None: nobody waits for slaves

    def minds_type(self, topic: TopicConfig) -> bool:
        """Whether the topic takes only messages of its type."""
        return (
            self.checks_types
            and topic.message_type != MessageType.MIXED.value
            and not topic.name.startswith((RETRY_PREFIX, DLQ_PREFIX))
            and not is_system_topic(topic.name)
        )

    def check_types(self, topic: TopicConfig, of_messages: Iterable[bytes]) -> None:
        """Raises MessageIllegal for properties of a message that the topic does not take."""
        if not self.minds_type(topic):
            return
        for properties in of_messages:
            why = mismatch(topic.message_type, message_type(properties))
            if why is not None:
                raise MessageIllegal(f"{why}; send it to another topic, or change message.type of topic {topic.name}")

    def apply(self, message: PutMessage) -> None:
        """Let a message take its way; raises the refusals of its kind."""
        properties = message.properties
        level = delay_level(properties)
        is_retry = message.reconsume_times > 0 and level > 0
        if _is_half(properties) and not is_retry:
            self.halves.accept(message.topic)
            _become_half(message)
        else:
            self.postpone(message)

    def postpone(self, message: PutMessage) -> None:
        """Let a message wait for its time if it asks for one; also one whose transaction is committed."""
        properties = message.properties
        if flags.transaction_type(message.sys_flag) not in (flags.TRANSACTION_NONE, flags.TRANSACTION_COMMIT):
            return
        level = delay_level(properties)
        if level > 0:
            self._delay(message, level)
        elif b"TIMER_DEL" in properties:
            self.timers.park(message)

    def refuses_in_batch(self, properties: bytes) -> bool:
        """Whether the properties of a whole batch ask for what only single messages can have."""
        return b"DELAY\x01" in properties and delay_level(properties) > 0

    def _delay(self, message: PutMessage, level: int) -> None:
        properties = message.properties
        if b"TIMER_DEL" in properties:
            for name in TIMER_REQUESTS:
                properties = without_property(properties, name)
        if level > len(self.delays_ms):
            level = len(self.delays_ms)
            properties = with_replaced(properties, DELAY_LEVEL, b"%d" % level)
        properties = with_replaced(properties, REAL_TOPIC, message.topic.encode())
        message.properties = with_replaced(properties, REAL_QUEUE_ID, b"%d" % message.queue_id)
        message.topic = SCHEDULE_TOPIC
        message.queue_id = level - 1


def _become_half(message: PutMessage) -> None:
    properties = message.properties
    unique_key = find_property(properties, UNIQUE_KEY)
    if unique_key is not None:
        properties = with_replaced(properties, b"__transactionId__", unique_key)
    properties = with_replaced(properties, REAL_TOPIC, message.topic.encode())
    message.properties = with_replaced(properties, REAL_QUEUE_ID, b"%d" % message.queue_id)
    # RocketMQ: cleared, or the record would get neither a queue offset nor an entry.
    message.sys_flag &= ~flags.TRANSACTION_MASK
    message.topic = HALF_TOPIC
    message.queue_id = 0


class _NoTimers:
    """Of a broker without a timer."""

    is_on = False
    is_behind = False

    def park(self, message: PutMessage) -> None:
        if message.topic == TIMER_TOPIC or find_property(message.properties, TIMER_OUT_MS) is not None:
            return
        for name in TIMER_REQUESTS:
            text = find_property(message.properties, name)
            if text is not None:
                self.step_for(name, text)

    def step_for(self, asked: bytes, text: bytes) -> int | None:
        raise SystemFailure("accurate timer message is not enabled, timerWheelEnable is false")


class _UncountedHalves:
    def accept(self, topic: str) -> None: ...
