"""The sink's promises with the option `namespace`: the same topic in another namespace is another topic."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.client.exactly_once.read_back import READER_GROUP
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_sink import stored_ids
from skyrocket.pipeline.topic_sink.input_columns import InputError
from skyrocket.pipeline.topic_sink.settings import SinkSettings, sink_settings
from skyrocket.testing import LocalCluster
from tests.pipeline.sink_tasks import Died, Sink, bodies, close_connections

ROWS = [f"row {number}" for number in range(40)]


def told(**options: str) -> SinkSettings:
    return sink_settings({"namesrvAddr": "127.0.0.1:1", "topic": "Orders", **options}, is_stream=False)


def test_options_name_topic_and_group_without_the_namespace() -> None:
    found = told(namespace="A", consumerGroup="g")
    assert (found.topic, found.consumer_group) == ("A%Orders", "A%g")
    assert told(namespace="A").consumer_group == READER_GROUP, "every broker has it, without any namespace"
    assert told(namespace="A", topic="A%Orders").topic == "A%Orders"
    with pytest.raises(OptionError, match='did you mean "namespace"'):
        told(namspace="A")


@pytest.fixture
def orders(rocketmq: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalCluster]:
    # Brokers in this process show a message as soon as they confirm it.
    monkeypatch.setattr(stored_ids, "SETTLE_SECONDS", 0.0)
    for name in ("Orders", "A%Orders", "B%Orders"):
        rocketmq.create_topic(name, queues=4)
    yield rocketmq
    close_connections()


def test_what_was_sent_to_one_namespace_is_not_taken_for_the_others(orders: LocalCluster, tmp_path: Path) -> None:
    place = str(tmp_path)
    of_a, of_b = Sink(orders, place, namespace="A"), Sink(orders, place, namespace="B", consumerGroup="readers")
    with pytest.raises(Died):
        of_a.task(ROWS, dies_after=13)
    assert bodies(orders, "A%Orders") == Counter(ROWS[:13])
    assert [path.name.split(".")[1] for path in tmp_path.rglob("*.fence")] == ["A%Orders"]
    with pytest.raises(Died):
        of_b.task(ROWS, dies_after=7)  # the same batch of the same query, as if the option had been changed
    again = [of_a.task(ROWS, attempt=1), of_b.task(ROWS, attempt=1)]
    assert bodies(orders, "A%Orders") == bodies(orders, "B%Orders") == Counter(ROWS)
    assert [len(topic.claimed) // 12 for report in again for topic in report.topics.values()] == [13, 7]
    of_a.commit(again[0])
    assert bodies(orders) == Counter()


def test_a_column_may_name_a_topic_with_or_without_the_namespace(orders: LocalCluster, tmp_path: Path) -> None:
    sink = Sink(orders, str(tmp_path), topic="", namespace="A")
    rows = [{"body": text, "topic": ("Orders", "A%Orders")[number % 2]} for number, text in enumerate(ROWS)]
    report = sink.task(rows)
    sink.commit(report)
    assert list(report.topics) == ["A%Orders"]
    assert bodies(orders, "A%Orders") == Counter(ROWS)
    with pytest.raises(InputError, match="topic A%Oders does not exist"):
        sink.task([{"body": "x", "topic": "Oders"}], batch=1)
