"""Where reading begins and ends: as options say it, and as offsets once the queues were asked.

    earliest | latest | group | {"topic": {"broker": {"0": 42, "1": -2, "2": -1}}} | a time, for all queues or for each

In JSON -2 is the first message and -1 the end. A queue that a JSON does not name begins at its first message and ends
at its end: it may be younger than the JSON. Times are times of storing, to the millisecond.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Protocol

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError, Options
from skyrocket.pipeline.topic_source.offsets import BadOffsets, Bounds, Offsets, flat

EARLIEST: Final = -2
LATEST: Final = -1


class Kind(Enum):
    """How a position was named."""

    EARLIEST = "earliest"
    LATEST = "latest"
    GROUP = "group"
    OFFSETS = "offsets"
    TIME = "time"


@dataclass(frozen=True)
class Position:
    """Where reading begins or ends."""

    kind: Kind
    option: str  # which option said so, for errors
    numbers: Mapping[MessageQueue, int] = field(default_factory=dict)  # offsets, or times in ms
    at_ms: int | None = None  # for all queues
    fails_when_nothing_is_that_new: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether it gives the same offsets whenever it is asked, but for what retention deletes."""
        if self.kind is Kind.OFFSETS:
            return LATEST not in self.numbers.values()
        return self.kind is Kind.EARLIEST

    def renamed(self, full: Callable[[str], str]) -> "Position":
        """With the names of topics as brokers know them."""
        numbers = {queue._replace(topic=full(queue.topic)): number for queue, number in self.numbers.items()}
        return replace(self, numbers=numbers)


class Facts(Protocol):
    """Questions that only brokers can answer."""

    async def committed(self, queue: MessageQueue) -> int | None: ...

    async def offset_at(self, queue: MessageQueue, at_ms: int, bounds: Bounds) -> int: ...


def starting(options: Options, *, streaming: bool) -> Position:
    """Where reading begins, as the options say; raises OptionError."""
    by_time = _by_time(
        options, "starting", options.choice("startingOffsetsByTimestampStrategy", ("error", "latest"), "error")
    )
    if by_time is not None:
        return by_time
    name = "startingOffsets"
    text = options.text(name, "latest" if streaming else "earliest")
    if text == "latest" and not streaming:
        raise options.error(
            name, "is latest: a batch that begins at the end has nothing to read; use earliest, a time or offsets"
        )
    if text == "group" and not options.has("consumerGroup"):
        raise options.error(name, 'is group, and "consumerGroup" does not say which')
    return _position(options, name, text, ("earliest", "latest", "group"))


def ending(options: Options) -> Position:
    """Where reading ends, as the options say; raises OptionError."""
    by_time = _by_time(options, "ending", "latest")
    if by_time is not None:
        return by_time
    position = _position(options, "endingOffsets", options.text("endingOffsets", "latest"), ("latest",))
    if EARLIEST in position.numbers.values():
        raise options.error("endingOffsets", "has -2 (the first message) as an end: nothing would be read")
    return position


def _position(options: Options, name: str, text: str, words: tuple[str, ...]) -> Position:
    if text in words:
        return Position(Kind(text), name)
    if not text.startswith("{"):
        raise options.error(
            name, f'is "{text}"; it is {", ".join(words)} or JSON such as {{"topic":{{"broker-a":{{"0":42}}}}}}'
        )
    return Position(Kind.OFFSETS, name, _numbers(options, name))


def _by_time(options: Options, prefix: str, strategy: str) -> Position | None:
    at_ms = options.whole(f"{prefix}Timestamp", None)
    fails = strategy == "error"
    if at_ms is not None:
        return Position(Kind.TIME, f"{prefix}Timestamp", at_ms=at_ms, fails_when_nothing_is_that_new=fails)
    name = f"{prefix}OffsetsByTimestamp"
    if not options.has(name):
        return None
    return Position(Kind.TIME, name, _numbers(options, name), fails_when_nothing_is_that_new=fails)


def _numbers(options: Options, name: str) -> Offsets:
    try:
        return flat(options.json_object(name))
    except BadOffsets as error:
        raise options.error(name, f"is wrong: {error}") from None


async def resolved(position: Position, bounds: Mapping[MessageQueue, Bounds], facts: Facts, *, unnamed: int) -> Offsets:
    """Offsets for all queues; `unnamed` (EARLIEST or LATEST) is for those that a JSON does not name."""
    strangers = sorted(set(position.numbers) - set(bounds))
    if strangers:
        topic, broker_name, queue_id = strangers[0]
        there = ", ".join(f"{queue.topic}/{queue.broker_name}/{queue.queue_id}" for queue in sorted(bounds)[:20])
        raise OptionError(
            f'option "{position.option}" names {topic}/{broker_name}/{queue_id}, which is not among the queues '
            f"that are read: {there or 'none'}"
        )
    queues = sorted(bounds)
    found = await asyncio.gather(*(_offset(position, queue, bounds[queue], facts, unnamed) for queue in queues))
    return dict(zip(queues, found, strict=True))


async def _offset(position: Position, queue: MessageQueue, bounds: Bounds, facts: Facts, unnamed: int) -> int:
    number = {Kind.EARLIEST: EARLIEST, Kind.LATEST: LATEST}.get(position.kind, unnamed)
    if position.kind is Kind.OFFSETS:
        number = position.numbers.get(queue, unnamed)
    if position.kind is Kind.TIME:
        at_ms = position.at_ms if position.at_ms is not None else position.numbers.get(queue)
        if at_ms is not None:
            number = await _offset_at(position, queue, at_ms, bounds, facts)
    if position.kind is Kind.GROUP:
        committed = await facts.committed(queue)
        number = EARLIEST if committed is None else committed  # where nothing was consumed, nothing may be left out
    return bounds.low if number == EARLIEST else bounds.high if number == LATEST else number


async def _offset_at(position: Position, queue: MessageQueue, at_ms: int, bounds: Bounds, facts: Facts) -> int:
    offset = await facts.offset_at(queue, at_ms, bounds)
    if offset >= bounds.high and position.fails_when_nothing_is_that_new:
        raise OptionError(
            f'option "{position.option}" is {at_ms}, and topic {queue.topic}, broker {queue.broker_name}, queue '
            f"{queue.queue_id} has no message that new; to begin such queues at their end: "
            '.option("startingOffsetsByTimestampStrategy", "latest")'
        )
    return offset
