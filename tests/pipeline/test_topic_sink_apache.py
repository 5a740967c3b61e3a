"""The sink against Apache RocketMQ 5.4.0 and 4.9.7, with the same promises as against ours but for delayed rows."""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skyrocket.client import ReceivedMessage
from skyrocket.client.sending.queue_selector import index_by_hash
from skyrocket.config.sections import StoreConfig
from tests.client_steps import everything, fresh, made
from tests.integration.client.servers import OURS, SERVER_PARAMETERS, apache_or_skip, registered
from tests.interop.rocketmq_broker import running_broker
from tests.loops import run_bounded
from tests.pipeline.sink_tasks import Died, Sink, close_connections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module", params=[each for each in SERVER_PARAMETERS if each != OURS])
def names(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name server of a running Apache cluster."""
    with contextlib.ExitStack() as stack:
        apache = apache_or_skip(request.param)
        folder: Path = tmp_path_factory.mktemp("store")
        address = stack.enter_context(running_broker(apache, folder, StoreConfig())).name_server
        run_bounded(registered(address))
        yield address
        close_connections()


def stored(names: str, topic: str, total: int) -> list[ReceivedMessage]:
    found: list[ReceivedMessage] = []

    async def main() -> None:
        found.extend(await everything(names, fresh("Reader"), topic, total))

    run_bounded(main())
    return found


def test_tasks_that_die_and_batches_that_come_again_are_stored_once(names: str, tmp_path: Path) -> None:
    topic = fresh("Sink")
    run_bounded(made(names, topic))
    sink = Sink(names, str(tmp_path), topic=topic)
    rows = [f"row {number}" for number in range(300)] + ["same"] * 50
    sink.task(rows[:100], partition=0)
    with pytest.raises(Died):
        sink.task(rows[100:], partition=1, dies_after=120)
    sink.start_again()
    reports = [sink.task(rows[part::3], partition=part) for part in range(3)]
    assert sum(len(report.topics[topic].claimed_ids()) for report in reports) >= 220
    sink.commit(*reports)
    sink.start_again()
    sink.commit(sink.task(rows))
    time.sleep(1)  # what is there too much would be shown by now
    assert Counter(message.body.decode() for message in stored(names, topic, 350)) == Counter(rows)


def test_spark_writes_rows_in_order_of_their_keys(spark: "SparkSession", names: str) -> None:
    topic = fresh("Sink")
    run_bounded(made(names, topic))
    frame = spark.sql(
        """SELECT string(id) AS body, concat('o-', id % 7) AS shardingKey, 'TagA' AS tags, array('k1', 'k2') AS keys,
                  map('a', 'b') AS properties FROM range(0, 700, 1, 1)"""
    )
    options = {"namesrvAddr": names, "topic": topic, "maxBatchBytes": "4k"}
    frame.write.format("rocketmq").options(**options).mode("append").save()
    seen: dict[str, list[int]] = {}
    for message in sorted(stored(names, topic, 700), key=lambda each: (each.queue_id, each.queue_offset)):
        key = message.sharding_key
        assert key is not None
        assert message.queue_id == index_by_hash(key, 4)
        assert (message.tags, message.keys, message.properties["a"]) == ("TagA", ["k1", "k2"], "b")
        seen.setdefault(key, []).append(int(message.body))
    assert seen == {f"o-{key}": list(range(key, 700, 7)) for key in range(7)}
