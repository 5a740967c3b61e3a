"""A timer's message in the log: what it waits for, and as what it is put again when it has waited."""

import re
import struct
from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final, NamedTuple, cast

from skyrocket.broker.rules.stored_copy import real_queue, stored_copy
from skyrocket.errors import DataError
from skyrocket.format.properties import MAX_BYTES, find_property, whole_number, with_property, without_property
from skyrocket.format.property_bytes import (
    REAL_TOPIC,
    TIMER_DELETE_UNIQUE_KEY,
    TIMER_DEQUEUED_MS,
    TIMER_ENQUEUED_MS,
    TIMER_OUT_MS,
    TIMER_ROLLS,
    UNIQUE_KEY,
)
from skyrocket.format.record import record_properties
from skyrocket.format.timer_log import TimerUnit
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.commit_log import PutMessage

_MOST_DIGITS: Final = 15
# As the rules write it behind what the sender and the broker have said. Without control characters it cannot reach
# beyond the properties of a record: the length of the topic stands before them, and is one.
_OUT_MARK: Final = b"\x02TIMER_OUT_MS\x01"
_USUAL_END: Final = re.compile(
    _OUT_MARK + rb"([0-9]{1,15})\x02REAL_TOPIC\x01([^\x00-\x1f]+)\x02REAL_QID\x01[0-9]+\x02\Z"
)

Cancelled = tuple[bytes, bytes]  # topic and unique key


class TimerRequest(NamedTuple):
    """What a parked message asks for."""

    due_ms: int  # TIMER_OUT_MS: the step in which it is delivered begins here
    real_topic: bytes  # b"" when it does not say
    cancels: bytes | None  # the key of a message that is not to be delivered


def properties_of(record: memoryview) -> bytes:
    """Raises DataError for bytes that are not a record."""
    try:
        return record_properties(record)
    except struct.error as error:
        raise DataError(f"it is damaged: {error}") from error


def timer_request_of(record: memoryview) -> TimerRequest:
    """Raises DataError for a record that is not a timer's."""
    properties = properties_of(record)
    usual = _USUAL_END.match(properties, properties.rfind(_OUT_MARK))
    if usual is not None and TIMER_DELETE_UNIQUE_KEY not in properties:
        return TimerRequest(int(usual[1]), usual[2], None)
    text = find_property(properties, TIMER_OUT_MS)
    if text is None or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise DataError(f"its property TIMER_OUT_MS is {text!r}")
    return TimerRequest(
        int(text),
        find_property(properties, REAL_TOPIC) or b"",
        find_property(properties, TIMER_DELETE_UNIQUE_KEY) if TIMER_DELETE_UNIQUE_KEY in properties else None,
    )


def usual_requests(records: bytes, ends: Sequence[int]) -> tuple[list[int], list[bytes]] | None:
    """Due times and topics of records that lie back to back and end here; None: each needs a closer look.

    A record that ends as the rules write it is read from its end: its head, body and other properties say no more.
    """
    if TIMER_DELETE_UNIQUE_KEY in records:
        return None
    # Without a loop in Python: every message that is parked comes here. Where there is no mark the search begins at
    # the first record, whose first byte is none either.
    marks = map(records.rfind, repeat(_OUT_MARK), repeat(0), ends)
    found = list(map(_USUAL_END.match, repeat(records), marks, ends))
    if None in found:
        return None
    usual = cast("list[re.Match[bytes]]", found)
    return list(map(int, map(itemgetter(1), usual))), list(map(itemgetter(2), usual))


def cancels_in(record: memoryview) -> Cancelled:
    """What a cancel names: a message of the topic that it was sent to, and of no other; raises DataError.

    RocketMQ believes the key alone, so whoever may send to one topic can cancel the timers of all.
    """
    properties = properties_of(record)
    topic = find_property(properties, REAL_TOPIC) or b""
    named = find_property(properties, TIMER_DELETE_UNIQUE_KEY) or b""
    return topic, named.removeprefix(topic + b"+")  # RocketMQ 5.4: the key alone; 5.3.2 to 5.3.4: with the topic


def is_cancelled(properties: bytes, cancelled: set[Cancelled]) -> bool:
    """Whether a message is meant by one of the cancels of its step."""
    key = find_property(properties, UNIQUE_KEY)
    return key is not None and (find_property(properties, REAL_TOPIC) or b"", key) in cancelled


def delivered(record: memoryview, unit: TimerUnit, now_ms: int) -> PutMessage:
    """The message on its way to its real queue, or into the timer's queue once more; raises DataError."""
    message, store_host = stored_copy(record)
    message.store_host = store_host
    before = message.properties
    properties = _with(before, TIMER_ENQUEUED_MS, b"%d" % unit.write_time_ms)
    properties = _with(properties, TIMER_DEQUEUED_MS, b"%d" % now_ms)
    if unit.rolls:
        rolls = whole_number(find_property(before, TIMER_ROLLS)) or 0
        properties = _with(properties, TIMER_ROLLS, b"%d" % (rolls + 1))
        message.topic, message.queue_id = TIMER_TOPIC, 0
    else:
        message.topic, message.queue_id = real_queue(before)
    # Better without these than not at all: RocketMQ drops a message whose properties grow too long.
    message.properties = properties if len(properties) <= MAX_BYTES else before
    return message


def _with(properties: bytes, name: bytes, value: bytes) -> bytes:
    return with_property(without_property(properties, name) if name in properties else properties, name, value)
