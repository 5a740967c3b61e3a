"""Messages that are parked together: what is read from all records at once is what each of them says."""

import random
from itertools import accumulate
from pathlib import Path

import pytest

from skyrocket.broker.timer.parked_message import timer_request_of, usual_requests
from skyrocket.broker.timer.parking import PARK_GROUP
from skyrocket.format.queue_entry import ENTRY
from skyrocket.format.timer_wheel import WHEEL_SLOTS
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import QUEUE, TOPIC, Timed

USUAL_END = b"TIMER_OUT_MS\x0112000\x02REAL_TOPIC\x01Orders\x02REAL_QID\x011\x02"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def test_two_timers_of_one_group_whose_slots_have_the_same_place_are_both_delivered(
    timed: Timed, clock: FakeClock
) -> None:
    """The wheel has turned once while the first was not parked: the other one waits for its place."""
    turn_ms = WHEEL_SLOTS * 1000
    due_ms = clock.now_ms() + 5000
    timed.put_at(b"before the pause", due_ms)
    clock.advance(hours=13 * 24)
    timed.put_at(b"after it", due_ms + turn_ms)
    timed.fire()
    assert timed.bodies() == [b"before the pause"]
    clock.advance(hours=24)
    timed.fire()
    assert timed.bodies() == [b"before the pause"]
    clock.advance(seconds=10)
    timed.fire()
    assert timed.bodies() == [b"before the pause", b"after it"]
    assert timed.counts.counts() == {TOPIC: 0}


def test_a_group_among_other_messages_is_parked_as_each_of_them_asks(tmp_path: Path, clock: FakeClock) -> None:
    """Plain messages in between, topics and delays of all kinds, cancels, many for one slot, more than one group."""
    given = Timed(tmp_path, clock, timer_log_file_size=1 << 20)
    chance = random.Random(7)
    expected: dict[int, list[bytes]] = {}
    for number in range(PARK_GROUP + 100):
        body = b"%d" % number
        if chance.random() < 0.3:
            given.put(b"plain", topic="Others")
            continue
        delay = chance.choice((2, 3, 3, 60, 86_400, 2 * 86_400 + 5))
        given.put_at(body, clock.now_ms() + delay * 1000)
        if chance.random() < 0.05:
            given.recall(body.decode(), clock.now_ms() + delay * 1000)
        else:
            expected.setdefault(delay, []).append(body)
    given.fire()
    assert given.service.unparked == 0
    for _ in range(10):
        clock.advance(hours=12)
        given.fire()
    assert given.bodies() == [body for _, bodies in sorted(expected.items()) for body in bodies]
    assert given.counts.counts() == {TOPIC: 0}
    given.stop()


def test_what_cannot_be_read_is_counted_once_though_the_group_is_cut(timed: Timed, clock: FakeClock) -> None:
    due_ms = clock.now_ms() + 5000
    timed.put_at(b"first", due_ms)
    timed.store.put(PutMessage(TIMER_TOPIC, 0, b"says no time", b"KEYS\x01a\x02"))
    clock.advance(hours=13 * 24)
    timed.put_at(b"waits for the place of the first", due_ms + WHEEL_SLOTS * 1000)
    timed.store.put(PutMessage(TIMER_TOPIC, 0, b"says no time either", b"KEYS\x01b\x02"))
    timed.dispatch()
    timed.fire()
    assert timed.service.totals.dropped == 2
    assert timed.service.unparked == 0


@pytest.mark.parametrize(
    ("body", "properties", "is_usual"),
    [
        (b"x", b"KEYS\x01k\x02" + USUAL_END, True),
        (b"x" * 3000, b"UNIQ_KEY\x01u\x02TIMER_DELAY_SEC\x015\x02" + USUAL_END, True),
        (b"x", b"KEYS\x01k\x02" + USUAL_END.replace(b"Orders", b"%RETRY%G\xc3\xa4"), True),
        (b"x", b"KEYS\x01k\x02" + USUAL_END + USUAL_END.replace(b"12000", b"14000"), True),
        (b"x", USUAL_END, False),
        (b"\x02" + USUAL_END, b"KEYS\x01k\x02", False),
        (b"\x02TIMER_OUT_MS\x015000\x02REAL_TOPIC\x01other", b"\x02REAL_QID\x011\x02", False),
        (b"x", b"KEYS\x01k\x02" + USUAL_END + b"TIMER_OUT_MS\x0113000\x02", False),
        (b"x", b"KEYS\x01k\x02" + USUAL_END[:-1], False),
        (b"x", b"TIMER_DEL_UNIQKEY\x01k\x02" + USUAL_END, False),
        (b"TIMER_DEL_UNIQKEY", b"KEYS\x01k\x02" + USUAL_END, False),
        (b"x", b"KEYS\x01k\x02" + USUAL_END.replace(b"12000", b"-2"), False),
        (b"", b"", False),
    ],
)
def test_a_record_that_is_read_from_its_end_says_the_same_as_the_whole(
    timed: Timed, body: bytes, properties: bytes, is_usual: bool
) -> None:
    ordinary = PutMessage(TIMER_TOPIC, 0, b"ordinary", b"KEYS\x01k\x02" + USUAL_END)
    for message in (ordinary, PutMessage(TIMER_TOPIC, QUEUE - 1, body, properties), ordinary):
        assert timed.store.put(message).ok
    timed.dispatch()
    queue = timed.store.queues.get(TIMER_TOPIC, 0)
    assert isinstance(queue, ConsumeQueue)
    entries = list(ENTRY.iter_unpack(queue.read(0, 3)))
    records = [timed.store.commit_log.slice(offset, size) for offset, size, _ in entries]
    joined = b"".join(record for record in records if record is not None)
    ends = list(accumulate(size for _, size, _ in entries))
    assert len(joined) == ends[-1]
    usual = usual_requests(joined, ends)
    assert (usual is not None) == is_usual
    if usual is not None:
        wishes = [timer_request_of(record) for record in records if record is not None]
        assert usual == ([wish.due_ms for wish in wishes], [wish.real_topic for wish in wishes])
        assert {wish.cancels for wish in wishes} == {None}
