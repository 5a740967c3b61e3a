"""Rates of a consumer, by a clock that is moved."""

import pytest

from skyrocket.client.consumer.consume_statistics import SAMPLE_SECONDS, ConsumeStatistics
from skyrocket.protocol.bodies.running_info import ConsumeStatus

TOPIC = "Orders"


class Watch:
    """Monotonic seconds that stand still until they are moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def watch() -> Watch:
    return Watch()


async def pass_time(statistics: ConsumeStatistics, watch: Watch, samples: int) -> None:
    for _ in range(samples):
        watch.now += SAMPLE_SECONDS
        await statistics.sample()


@pytest.mark.requirement("C166")
async def test_rates_and_times_are_those_of_the_last_minute(watch: Watch) -> None:
    statistics = ConsumeStatistics(watch)
    statistics.pulled(TOPIC, 0.004, 32)
    statistics.pulled(TOPIC, 0.008, 8)
    for _ in range(30):
        statistics.consumed(TOPIC, 0.25, 1, 0)
    statistics.consumed(TOPIC, 0.25, 0, 10)
    await pass_time(statistics, watch, 2)
    assert statistics.status(TOPIC) == ConsumeStatus(
        pull_rt=6.0,
        pull_tps=2.0,
        consume_rt=250.0,
        consume_ok_tps=1.5,
        consume_failed_tps=0.5,
        consume_failed_messages=10,
    )
    await pass_time(statistics, watch, 7)  # a minute later all of it is history, but for the hour
    assert statistics.status(TOPIC) == ConsumeStatus(consume_rt=250.0, consume_failed_messages=10)
    await pass_time(statistics, watch, 7 * 60)
    assert statistics.status(TOPIC) == ConsumeStatus()


async def test_topics_are_counted_apart_and_an_unknown_one_has_no_rates(watch: Watch) -> None:
    statistics = ConsumeStatistics(watch)
    statistics.consumed("%RETRY%Billing", 0.001, 0, 1)
    statistics.consumed(TOPIC, 0.001, 5, 0)
    watch.now += 5
    assert statistics.status(TOPIC).consume_ok_tps == 1.0
    assert statistics.status("%RETRY%Billing").consume_failed_tps == 0.2
    assert statistics.status("Unknown") == ConsumeStatus()
