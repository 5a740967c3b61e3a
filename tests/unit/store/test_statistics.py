"""Counters and the latency histogram."""

import pytest

from skyrocket.format.batch import BatchElement
from skyrocket.store.statistics import LATENCY_BOUNDS_MS, LatencyHistogram
from tests.unit.store.stores import TOPIC, Stores, message, put


def test_puts_gets_and_refusals_are_counted(stores: Stores) -> None:
    store = stores.open(max_message_size=100)
    put(store)
    store.intake.put_group([message(b"x"), message(b"y")])
    store.intake.put_batch(message(), [BatchElement(0, b"a", b""), BatchElement(0, b"b", b"")])
    store.put(message(b"x" * 101))
    store.dispatch()
    store.get(TOPIC, 0, 0)
    store.get(TOPIC, 0, 99)

    counted = store.statistics
    assert (counted.put_messages, counted.put_refused) == (5, 1)
    assert (counted.get_found, counted.get_missed) == (1, 1)
    assert counted.get_messages == 5


@pytest.mark.parametrize(
    ("milliseconds", "place"), [(0.0, 0), (0.99, 0), (1, 1), (9.9, 1), (10, 2), (9999, 11), (10_000, 12), (99_999, 12)]
)
def test_a_latency_falls_into_its_class(milliseconds: float, place: int) -> None:
    histogram = LatencyHistogram()
    histogram.add(milliseconds, 3)
    assert histogram.counts[place] == histogram.total == 3
    assert len(histogram.counts) == len(LATENCY_BOUNDS_MS) + 1


def test_the_longest_latency_is_kept() -> None:
    histogram = LatencyHistogram()
    for milliseconds in (3, 700, 20):
        histogram.add(milliseconds)
    assert histogram.max_ms == 700
