"""Statistics items: what is counted under which name and key, and when samples are taken."""

from typing import cast

import pytest

from skyrocket.broker.state.counters import Counters
from skyrocket.protocol.bodies.statistics import StatsItem
from skyrocket.protocol.errors import SystemFailure
from skyrocket.store.entry_files import EntryFiles
from skyrocket.store.record_tuples import DispatchItem
from skyrocket.store.topic_queue import TopicQueue
from skyrocket.testing.clock import FakeClock


class Given:
    """Counters of one cluster, and queues to store into."""

    def __init__(self, *, by_queue: bool = True, most_items: int = 1000) -> None:
        self.clock = FakeClock()
        self.counters = Counters(
            self.clock,
            "East",
            lambda topic: topic.startswith("rmq_sys_"),
            by_queue=by_queue,
            most_items=most_items,
        )
        self.queues: dict[tuple[str, int], TopicQueue] = {}

    def store(self, topic: str, queue_id: int, *sizes: int) -> None:
        key = (topic, queue_id)
        if key not in self.queues:
            self.queues[key] = TopicQueue(topic, queue_id, cast(EntryFiles, None))  # counting reads no files
        records: list[DispatchItem] = [(self.queues[key], 0, size, 0, 0, b"", 0) for size in sizes]
        self.counters.stored(records)

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(seconds=1)
            self.sample()

    def sample(self) -> None:
        for _ in self.counters.sample():
            pass

    def minute(self, name: str, key: str) -> StatsItem:
        return self.counters.view(name, key).minute


def test_stored_records_are_counted_by_topic_queue_and_broker() -> None:
    given = Given()
    given.store("Orders", 0, 100, 300)
    given.store("Orders", 3, 200)
    given.store("rmq_sys_timer", 0, 50)
    given.pass_time(10)
    assert given.minute("TOPIC_PUT_NUMS", "Orders") == StatsItem(3, 0.3, 1.0)
    assert given.minute("TOPIC_PUT_SIZE", "Orders") == StatsItem(600, 60.0, 200.0)
    assert given.minute("QUEUE_PUT_NUMS", "Orders@0").sum == 2
    assert given.minute("QUEUE_PUT_SIZE", "Orders@3").sum == 200
    assert given.minute("BROKER_PUT_NUMS", "East").sum == 4
    assert given.minute("BROKER_PUT_NUMS_WITHOUT_SYSTEM_TOPIC", "East").sum == 3
    assert given.counters.total("BROKER_PUT_NUMS") == 4
    assert given.counters.stored_bytes == 650


def test_pulled_messages_are_counted_by_group_queue_and_broker() -> None:
    given = Given()
    for _ in range(4):
        given.counters.pulled("Shop", "Orders", 2, 8, 800, 1.5)
    given.counters.pulled("Shop", "Orders", 0, 2, 150, 0.5)
    given.pass_time(10)
    assert given.minute("GROUP_GET_NUMS", "Orders@Shop") == StatsItem(34, 3.4, 34 / 5)
    assert given.minute("GROUP_GET_SIZE", "Orders@Shop").sum == 3350
    assert given.minute("QUEUE_GET_NUMS", "Orders@2@Shop") == StatsItem(32, 3.2, 8.0)
    assert given.minute("QUEUE_GET_SIZE", "Orders@0@Shop").sum == 150
    assert given.minute("BROKER_GET_NUMS", "East").sum == 34
    assert given.counters.slowest_pull_ms == 1.5
    assert given.minute("GROUP_GET_LATENCY", "2@Orders@Shop") == StatsItem(6, 0.6, 1.5)


def test_a_minute_an_hour_and_a_day_have_samples_of_their_own() -> None:
    given = Given()
    given.store("Orders", 0, *[10] * 60)
    given.pass_time(10)
    data = given.counters.view("TOPIC_PUT_NUMS", "Orders")
    assert (data.minute.sum, data.hour.sum, data.day.sum) == (60, 0, 0)
    assert data.minute.tps == pytest.approx(6.0)
    given.pass_time(590)
    data = given.counters.view("TOPIC_PUT_NUMS", "Orders")
    assert (data.minute.sum, data.hour.sum, data.day.sum) == (0, 60, 0)
    assert data.hour.tps == pytest.approx(0.1)
    given.pass_time(3000)
    data = given.counters.view("TOPIC_PUT_NUMS", "Orders")
    assert (data.minute.sum, data.hour.sum, data.day.sum) == (0, 60, 60)
    assert data.day.tps == pytest.approx(60 / 3600)


def test_what_is_older_than_a_day_is_not_summed_any_more() -> None:
    given = Given()
    given.store("Orders", 0, 10)
    given.clock.advance(hours=1)
    given.sample()
    for _ in range(24):
        given.clock.advance(hours=1)
        given.sample()
    assert given.counters.view("TOPIC_PUT_NUMS", "Orders").day.sum == 0
    assert given.counters.view("BROKER_PUT_NUMS", "East").day.sum == 0
    assert given.counters.total("BROKER_PUT_NUMS") == 1


def test_what_was_never_counted_does_not_exist() -> None:
    given = Given()
    with pytest.raises(SystemFailure, match="The stats <TOPIC_PUT_NUMS> <Orders> not exist"):
        given.counters.view("TOPIC_PUT_NUMS", "Orders")
    given.store("Orders", 0, 1)
    assert given.minute("TOPIC_PUT_NUMS", "Orders") == StatsItem()
    assert given.counters.rate("TOPIC_PUT_NUMS", "Nothing") == 0.0


def test_queues_have_no_items_when_details_are_off() -> None:
    given = Given(by_queue=False)
    given.store("Orders", 0, 1)
    given.counters.pulled("Shop", "Orders", 0, 1, 1, 0.1)
    assert given.minute("TOPIC_PUT_NUMS", "Orders") == StatsItem()
    for name, key in (("QUEUE_PUT_NUMS", "Orders@0"), ("QUEUE_GET_NUMS", "Orders@0@Shop")):
        with pytest.raises(SystemFailure):
            given.counters.view(name, key)


def test_there_is_a_bound_on_the_number_of_items() -> None:
    given = Given(most_items=6)
    for _ in range(50):
        for number in range(100):
            given.store(f"Topic{number}", 0, 1)
        given.pass_time(10)
    assert given.counters.item_count == 6 + 2  # and always those of the whole broker
    assert given.counters.total("BROKER_PUT_NUMS") == 5000
    assert sum(len(span.changed) for span in given.counters._spans) <= 3 * 8


def test_a_view_sees_what_was_counted_while_samples_are_being_taken() -> None:
    given = Given()
    for number in range(2000):
        given.store(f"Topic{number}", 0, 1)
    given.clock.advance(seconds=10)
    steps = given.counters.sample()
    next(steps)
    given.store("Topic0", 0, 1)
    assert given.counters.total("BROKER_PUT_NUMS") == 501  # of the first step, and the new one
    for _ in steps:
        pass
    assert given.counters.total("BROKER_PUT_NUMS") == 2001
    assert given.minute("BROKER_PUT_NUMS", "East").sum == 2001


def test_items_of_deleted_topics_and_groups_are_forgotten() -> None:
    given = Given()
    for topic in ("Orders", "Bills"):
        given.store(topic, 0, 1)
        for group in ("Shop", "Bank"):
            given.counters.pulled(group, topic, 0, 1, 1, 0.1)
            given.counters.sent_back(topic, group)
    given.counters.keep_only(lambda topic: topic == "Orders", lambda group: group == "Shop")
    for name, key in (
        ("TOPIC_PUT_NUMS", "Orders"),
        ("QUEUE_PUT_SIZE", "Orders@0"),
        ("GROUP_GET_NUMS", "Orders@Shop"),
        ("QUEUE_GET_NUMS", "Orders@0@Shop"),
        ("GROUP_GET_LATENCY", "0@Orders@Shop"),
        ("SNDBCK_PUT_NUMS", "Orders@Shop"),
        ("BROKER_PUT_NUMS", "East"),
    ):
        given.counters.view(name, key)
    for name, key in (
        ("TOPIC_PUT_SIZE", "Bills"),
        ("QUEUE_PUT_NUMS", "Bills@0"),
        ("GROUP_GET_SIZE", "Orders@Bank"),
        ("GROUP_GET_NUMS", "Bills@Shop"),
        ("QUEUE_GET_SIZE", "Orders@0@Bank"),
        ("GROUP_GET_LATENCY", "0@Orders@Bank"),
        ("GROUP_GET_LATENCY", "0@Bills@Shop"),
        ("SNDBCK_PUT_NUMS", "Bills@Bank"),
    ):
        with pytest.raises(SystemFailure):
            given.counters.view(name, key)
    assert given.counters.total("BROKER_PUT_NUMS") == 2
