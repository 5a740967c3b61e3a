"""When messages leave: the portions of a replay, and the sink that holds rows back until their time."""

from collections.abc import Iterator

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.jobs.replay import Sending
from skyrocket.pipeline.topic_sink.input_columns import InputColumns
from skyrocket.pipeline.topic_sink.pacing import Pace, paced
from skyrocket.testing import FakeClock

QUEUES = [MessageQueue("Orders", "a", queue_id) for queue_id in range(4)]
rates = st.floats(0.5, 5000)
lengths = st.lists(st.integers(0, 300), min_size=1, max_size=len(QUEUES))


def sent(sending: Sending, left: list[int], works_s: Iterator[float]) -> list[tuple[float, int]]:
    """When how many messages were sent, if sending each portion takes so long."""
    clock = FakeClock()
    found = []
    for portions in sending.rounds(dict(zip(QUEUES, left, strict=False)), {}):
        pace = Pace(clock, lambda seconds: clock.advance(seconds=seconds))
        for place, portion in enumerate(portions):
            pace.reach(sending.time_ms(place) / 1000)
            found.append((clock.monotonic(), sum(end - begin for begin, end in portion.values())))
            clock.advance(seconds=next(works_s, 0.0))
        clock.advance(seconds=sending.every_s)  # as before the next round
    return found


@given(rates, lengths, st.lists(st.sampled_from([0.0, 0.001, 0.07, 0.5, 3.0, 3600.0]), max_size=60))
def test_no_second_has_more_than_the_rate_and_a_portion_whatever_was_slow(
    rate: float, left: list[int], works_s: list[float]
) -> None:
    sending = Sending({}, rate)
    found = sent(sending, left, iter(works_s))
    assert sum(count for _, count in found) == sum(left)
    for begin, _ in found:
        inside = sum(count for at, count in found if begin <= at < begin + 1)
        assert inside <= rate * 1.001 + sending.per_portion, "times are whole milliseconds"


@given(rates, lengths)
def test_without_delays_the_rate_is_used(rate: float, left: list[int]) -> None:
    sending = Sending({}, rate)
    found = sent(sending, left, iter(()))
    if found:
        took_s = found[-1][0] + sending.every_s - found[0][0]
        rounds = len(list(sending.rounds(dict(zip(QUEUES, left, strict=False)), {})))
        # The last portion may be a small one; between rounds there is a pause of one portion.
        assert sum(left) / rate - 0.002 * rounds <= took_s <= sum(left) / rate + (rounds + 1) * sending.every_s


def test_after_a_long_pause_portions_are_as_far_apart_as_before() -> None:
    clock = FakeClock()
    pace = Pace(clock, lambda seconds: clock.advance(seconds=seconds))
    times = []
    for place in range(6):
        if place == 3:
            clock.advance(hours=1)
        pace.reach(place * 0.25)
        times.append(clock.monotonic())
    assert times == [0, 0.25, 0.5, 3600.5, 3600.75, 3601.0]


@given(st.lists(st.lists(st.integers(-3, 3) | st.none(), max_size=12), max_size=4))
def test_rows_keep_their_order_and_each_portion_waits_for_the_one_before(given_ms: list[list[int | None]]) -> None:
    batches = [pa.record_batch({"sendAfter": pa.array(times, pa.int32())}) for times in given_ms]
    columns = InputColumns({"sendAfter": "sendAfter"})
    clock = FakeClock()
    seen: list[list[int | None] | str] = []
    for portion in paced(
        iter(batches), columns, Pace(clock, lambda s: clock.advance(seconds=s)), lambda: seen.append("confirmed")
    ):
        times = portion.column(0).to_pylist()
        assert len({time or 0 for time in times}) == 1
        assert clock.monotonic() >= (times[0] or 0) / 1000
        seen.append(times)
    assert seen[::2] == ["confirmed"] * (len(seen) // 2)
    assert [time for times in seen[1::2] for time in times] == [time for times in given_ms for time in times]


def test_batches_without_times_pass_as_they_are() -> None:
    batches = [pa.record_batch({"body": ["a", "b"]}), pa.record_batch({"body": ["c"]})]
    pace = Pace(FakeClock(), lambda _: None)
    found = list(paced(iter(batches), InputColumns({"body": "body"}), pace, lambda: None))
    assert all(one is other for one, other in zip(found, batches, strict=True))
