"""Spans: sums and rates over the last samples, against a plain list of all of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.state.spans import Item, Span
from skyrocket.protocol.bodies.statistics import StatsItem

PERIOD_MS = 10_000
KEPT = 7


class PlainList:
    """RocketMQ's way: every item has every sample, the first of them made up, one period back."""

    def __init__(self) -> None:
        self.samples: list[tuple[int, int, int]] = []

    def take(self, now_ms: int, total: int, times: int) -> None:
        if not self.samples:
            self.samples.append((now_ms - PERIOD_MS, 0, 0))
        self.samples = [*self.samples, (now_ms, total, times)][-KEPT:]

    def summary(self) -> StatsItem:
        if not self.samples:
            return StatsItem()
        (began, sum_before, times_before), (ended, total, times) = self.samples[0], self.samples[-1]
        grown, more = total - sum_before, times - times_before
        return StatsItem(grown, grown * 1000 / (ended - began), grown / more if more else 0.0)


def new_span() -> Span:
    return Span(0, PERIOD_MS, KEPT, 0)


def sample(span: Span, now_ms: int) -> None:
    for _ in span.take(now_ms):
        pass


def count(item: Item, span: Span, value: int, times: int) -> None:
    item.sum += value
    item.times += times
    if not item.waits:
        item.waits = span.bit
        span.changed.append(item)


@given(
    st.integers(0, 12),
    st.lists(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 3)), max_size=3), min_size=1, max_size=30),
)
def test_a_span_says_what_a_list_of_all_samples_would_say(born_after: int, rounds: list[list[tuple[int, int]]]) -> None:
    now = 0
    span = new_span()
    for _ in range(born_after):
        now += PERIOD_MS
        sample(span, now)
    item, model = Item([span]), PlainList()
    for additions in rounds:
        for value, times in additions:
            count(item, span, value, times)
        now += PERIOD_MS
        sample(span, now)
        model.take(now, item.sum, item.times)
        assert item.summary(span) == model.summary()


def test_an_item_that_was_never_sampled_has_brought_nothing() -> None:
    span = new_span()
    assert Item([span]).summary(span) == StatsItem()
    sample(span, PERIOD_MS)
    assert Item([span]).summary(span) == StatsItem()


def test_an_item_keeps_no_more_samples_than_its_span() -> None:
    span = new_span()
    item = Item([span])
    for number in range(1, 1000):
        count(item, span, 1, 1)
        sample(span, number * PERIOD_MS)
    assert len(item.samples[0]) <= KEPT
    assert item.summary(span).sum == KEPT - 1


def test_a_late_sample_makes_the_rate_smaller_not_larger() -> None:
    span = new_span()
    item = Item([span])
    count(item, span, 100, 1)
    sample(span, PERIOD_MS)
    count(item, span, 100, 1)
    sample(span, PERIOD_MS * 3)
    assert item.summary(span).tps == pytest.approx(200 * 1000 / (PERIOD_MS * 3))
    assert span.due_ms == PERIOD_MS * 4


def test_many_items_are_sampled_in_steps() -> None:
    span = new_span()
    items = [Item([span]) for _ in range(2500)]
    for item in items:
        count(item, span, 1, 1)
    assert len(list(span.take(PERIOD_MS))) == 3
    assert all(item.summary(span).sum == 1 and not item.waits for item in items)
