"""A message of a set without master on its way to another one: it must look like one that a client sends.

The other broker applies its rules to it. What has waited here must not wait there again, what was committed must not
become half, and a number that its producer gave it was given for another queue.
"""

from dataclasses import replace
from typing import Final

from skyrocket.broker.state.names import is_revive_log
from skyrocket.format import sys_flag as flags
from skyrocket.format.properties import find_property, with_property, without_property
from skyrocket.format.property_bytes import (
    DELAY_LEVEL,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    SEND_PRODUCER_ID,
    SEND_SEQUENCE,
    TIMER_DELIVER_MS,
    TIMER_DEQUEUED_MS,
    TIMER_ENQUEUED_MS,
    TIMER_OUT_MS,
    TIMER_REQUESTS,
    TIMER_ROLLS,
    TRANSACTION_PREPARED,
)
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.commit_log import PutMessage

_OF_WAITING: Final = (
    REAL_TOPIC,
    REAL_QUEUE_ID,
    DELAY_LEVEL,
    *TIMER_REQUESTS,
    TIMER_OUT_MS,
    TIMER_ENQUEUED_MS,
    TIMER_DEQUEUED_MS,
    TIMER_ROLLS,
)


def escaped(message: PutMessage) -> PutMessage:
    """The message as it is sent; a timer that only rolls waits on at the other broker."""
    properties = _without(message.properties, SEND_PRODUCER_ID, SEND_SEQUENCE)
    sys_flag = message.sys_flag
    if flags.transaction_type(sys_flag) != flags.TRANSACTION_PREPARED:
        properties = _without(properties, TRANSACTION_PREPARED)
        sys_flag &= ~flags.TRANSACTION_MASK
    topic = message.topic
    real_topic, out_ms = find_property(properties, REAL_TOPIC), find_property(properties, TIMER_OUT_MS)
    if real_topic is not None:
        deliver_ms = find_property(properties, TIMER_DELIVER_MS)
        properties = _without(properties, *_OF_WAITING)
        if is_revive_log(topic) and deliver_ms is not None:  # it has passed, and says how far a revive log is
            properties = with_property(properties, TIMER_DELIVER_MS, deliver_ms)
    if topic == TIMER_TOPIC and real_topic is not None and out_ms is not None:
        topic = real_topic.decode("utf-8", "replace")
        properties = with_property(properties, TIMER_DELIVER_MS, out_ms)
    return replace(message, topic=topic, properties=properties, sys_flag=sys_flag)


def _without(properties: bytes, *names: bytes) -> bytes:
    for name in names:
        if name in properties:
            properties = without_property(properties, name)
    return properties
