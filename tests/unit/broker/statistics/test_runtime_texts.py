"""Rates, totals of days, and the texts of the runtime table."""

import time

import pytest

from skyrocket.broker.statistics.runtime_info import distribution_text, duration_text, percentile_ms, size_text
from skyrocket.broker.statistics.sampling import DayTotals, Rates, Traffic
from skyrocket.store.statistics import LatencyHistogram
from skyrocket.testing.clock import FakeClock


def test_a_rate_is_told_for_ten_seconds_a_minute_and_ten_minutes() -> None:
    clock, count = FakeClock(), 0
    rates = Rates(clock, lambda: Traffic(count, 0, 0, 0))
    assert rates.per_second(lambda traffic: traffic.put) == (0.0, 0.0, 0.0)
    rates.sample()
    for second in range(700):
        clock.advance(seconds=1)
        count += 10 if second >= 690 else 1
        rates.sample()
    ten_seconds, minute, ten_minutes = rates.per_second(lambda traffic: traffic.put)
    assert ten_seconds == pytest.approx(10.0)
    assert minute == pytest.approx((10 * 10 + 50) / 60)
    assert ten_minutes == pytest.approx((10 * 10 + 590) / 600)


def test_a_young_broker_tells_the_rate_of_its_life() -> None:
    clock, count = FakeClock(), 0
    rates = Rates(clock, lambda: Traffic(0, 0, 0, count))
    rates.sample()
    clock.advance(seconds=4)
    count = 8
    rates.sample()
    assert rates.per_second(lambda traffic: traffic.transferred) == (2.0, 2.0, 2.0)


def test_the_totals_of_mornings_move_on_at_midnight() -> None:
    noon = int(time.mktime((2026, 3, 10, 12, 0, 0, 0, 0, -1)) * 1000)
    clock = FakeClock(noon)
    days = DayTotals(clock)
    days.look(lambda: 5)
    assert (days.yesterday_morning, days.this_morning) == (0, 0)
    clock.advance(hours=12, seconds=1)
    days.look(lambda: 40)
    days.look(lambda: 50)
    assert (days.yesterday_morning, days.this_morning) == (0, 40)
    clock.advance(hours=24)
    days.look(lambda: 90)
    assert (days.yesterday_morning, days.this_morning) == (40, 90)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (672, "672 B"), (1024, "1.0 KiB"), (1536, "1.5 KiB"), (252 << 30, "252.0 GiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes_are_written_as_rocketmq_writes_them(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_runtime_is_days_hours_minutes_and_seconds() -> None:
    assert duration_text(557_999) == "[ 0 days, 0 hours, 9 minutes, 17 seconds ]"
    assert duration_text(((2 * 24 + 3) * 3600 + 4 * 60 + 5) * 1000) == "[ 2 days, 3 hours, 4 minutes, 5 seconds ]"


def test_latencies_are_told_by_class_and_percentile() -> None:
    latency = LatencyHistogram()
    assert percentile_ms(latency, 0.99) == 0.0
    latency.add(0.2, 985)
    latency.add(7.0, 10)
    latency.add(1500.0, 5)
    text = distribution_text(latency)
    assert text.startswith("[<=0ms]:985 [0~10ms]:10 [10~50ms]:0 ")
    assert text.endswith("[1~2s]:5 [2~3s]:0 [3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:0 ")
    assert percentile_ms(latency, 0.98) == 0.0
    assert percentile_ms(latency, 0.99) == 10.0
    assert percentile_ms(latency, 0.999) == 1500.0
