"""Pulls that wait: who is woken, by what, and when."""

from typing import Any, cast

import pytest

from skyrocket.broker.pull.long_polling import CHECK_SECONDS, HeldPull, LongPolling
from skyrocket.broker.rules.subscriptions import MessageFilter
from skyrocket.format.java_hash import java_hash
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.answers import LaterAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.store.record_tuples import DispatchItem
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.state.files import FakeChannel

QUEUE = ("Orders", 0)


class Queue:
    """What a listener sees of a queue."""

    topic, queue_id = QUEUE


def record(queue_offset: int, properties: bytes = b"") -> DispatchItem:
    return cast(DispatchItem, (cast(Any, Queue), 0, 100, 0, queue_offset, properties, 0))


class Room:
    """Waiting pulls whose resumption is written down."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.queue_end = 0
        self.woken: list[HeldPull] = []
        self.polling = LongPolling(self.clock, lambda *_: self.queue_end)
        self.polling.resume = self.woken.append
        self.polling.check()  # the next thorough look is 5 s away

    def hold(self, offset: int = 0, tags: tuple[str, ...] | None = None, seconds: float = 100.0) -> HeldPull:
        codes = None if tags is None else {java_hash(tag) for tag in tags}
        later = LaterAnswer(RemotingCommand(11))
        peer = cast(Peer, FakeChannel())
        pull = HeldPull(later, peer, QUEUE, offset, MessageFilter(codes), self.clock.monotonic() + seconds)
        self.polling.hold(pull)
        return pull


def test_a_record_of_the_queue_wakes_those_that_wait_for_it() -> None:
    room = Room()
    first, later = room.hold(offset=3), room.hold(offset=4)
    room.polling.arrived([record(2)])
    assert room.woken == []
    room.polling.arrived([record(3)])
    assert room.woken == [first]
    room.polling.arrived([record(4), record(5)])
    assert room.woken == [first, later]
    assert room.polling.held_count == 0


def test_a_tag_that_is_not_wanted_wakes_nobody() -> None:
    room = Room()
    red = room.hold(tags=("red",))
    room.polling.arrived([record(0), record(1, b"TAGS\x01blue\x02")])
    assert room.woken == []
    room.polling.arrived([record(2, b"TAGS\x01red\x02"), record(3, b"TAGS\x01blue\x02")])
    assert room.woken == [red]


def test_the_end_of_its_time_wakes_a_pull() -> None:
    room = Room()
    short = room.hold(seconds=1.0)
    room.hold(seconds=3.0)
    room.clock.advance(seconds=0.9)
    room.polling.check()
    assert room.woken == []
    room.clock.advance(seconds=0.2)
    room.polling.check()
    assert room.woken == [short]


def test_every_five_seconds_the_length_of_the_queue_counts_and_tags_do_not() -> None:
    room = Room()
    red = room.hold(tags=("red",))
    room.queue_end = 1
    room.clock.advance(seconds=CHECK_SECONDS - 0.1)
    room.polling.check()
    assert room.woken == []
    room.clock.advance(seconds=0.2)
    room.polling.check()
    assert room.woken == [red]


def test_a_pull_whose_connection_is_gone_is_forgotten() -> None:
    room = Room()
    room.hold().later.abandon()
    room.polling.arrived([record(0)])
    assert room.woken == []
    assert room.polling.held_count == 0


def test_a_filter_that_fails_takes_nobody_else_out_of_the_room() -> None:
    room = Room()
    others = room.hold(), room.hold()
    failing = room.hold()

    def fails(_: bytes) -> bool:
        raise ValueError("a filter that cannot be asked")

    failing.wanted = MessageFilter(properties=fails)
    with pytest.raises(ValueError, match="cannot be asked"):
        room.polling.arrived([record(0)])
    assert room.polling.held_count == 3
    room.queue_end = 1
    room.clock.advance(seconds=CHECK_SECONDS)
    room.polling.check()
    assert room.woken == [*others, failing]
