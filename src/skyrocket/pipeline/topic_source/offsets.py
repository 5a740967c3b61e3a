"""Offsets of a stream as Spark keeps them: {"topic": {"broker": {"queue": next offset}}}.

Spark compares offsets as JSON text, so keys are sorted and numbers are plain: the same offsets in another order would
count as new data. Queue numbers begin at 0 on every broker, so the broker's name is part of a queue's identity.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from skyrocket.errors import DataError
from skyrocket.model.message_queue import MessageQueue

Offsets: TypeAlias = dict[MessageQueue, int]
Nested: TypeAlias = dict[str, dict[str, dict[str, int]]]


class Bounds(NamedTuple):
    """What a queue holds: offsets from `low` on, before `high`."""

    low: int
    high: int


class BadOffsets(DataError):
    """A text that is not offsets."""


def nested(offsets: Mapping[MessageQueue, int]) -> Nested:
    """Offsets as Spark keeps them: topic ▸ broker ▸ queue."""
    found: Nested = {}
    for queue in sorted(offsets, key=lambda queue: (queue.topic, queue.broker_name, str(queue.queue_id))):
        of_broker = found.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})
        of_broker[str(queue.queue_id)] = int(offsets[queue])
    return found


def flat(value: Any) -> Offsets:
    """From Spark, or from a user; raises BadOffsets."""
    return dict(_leaves(value, "offsets"))


def as_text(offsets: Mapping[MessageQueue, int]) -> str:
    """Offsets as one line of JSON."""
    return json.dumps(nested(offsets), separators=(",", ":"))


def assigned_queues(value: Any) -> tuple[MessageQueue, ...]:
    """The queues of {"topic": {"broker": [0, 1]}}; raises BadOffsets."""
    found = []
    for topic, brokers in _items(value, "assign"):
        for broker_name, numbers in _items(brokers, topic):
            if not isinstance(numbers, list) or not all(_is_number(number, least=0) for number in numbers):
                raise BadOffsets(
                    f'{topic}/{broker_name} must be a list of queue numbers such as [0, 1], not "{numbers}"'
                )
            found += [MessageQueue(topic, broker_name, number) for number in numbers]
    return tuple(sorted(set(found)))


def _leaves(value: Any, what: str) -> list[tuple[MessageQueue, int]]:
    found = []
    for topic, brokers in _items(value, what):
        for broker_name, queues in _items(brokers, topic):
            for queue_id, number in _items(queues, f"{topic}/{broker_name}"):
                if not queue_id.isdecimal():
                    raise BadOffsets(f'{topic}/{broker_name} has the queue "{queue_id}": queues are numbers')
                if not _is_number(number, least=-2):
                    raise BadOffsets(f'{topic}/{broker_name}/{queue_id} is "{number}", which is not an offset')
                found.append((MessageQueue(topic, broker_name, int(queue_id)), int(number)))
    return found


def _items(value: Any, what: str) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise BadOffsets(f'{what} must be of the form {{"topic": {{"broker": …}}}}, not {json.dumps(value)}')
    return list(value.items())


def _is_number(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
