"""HDFS: the sink's records, where a stream began, Spark's own checkpoint and lake."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline import file_systems
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_sink import stored_ids
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords
from skyrocket.pipeline.topic_source.initial_offsets import remembered
from skyrocket.pipeline.topic_source.offsets import Offsets
from skyrocket.testing import LocalCluster
from tests.pipeline.hdfs_cluster import hdfs_package, running_hdfs
from tests.pipeline.remote_pipeline import copy_orders
from tests.pipeline.sink_tasks import QUERY, Died, Sink, bodies, close_connections

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
QUEUE = MessageQueue("Orders", "a", 0)


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    package = str(hdfs_package())
    sys.path.append(package)
    try:
        with running_hdfs(tmp_path_factory.mktemp("hdfs")) as address:
            yield address
    finally:
        sys.path.remove(package)


@pytest.mark.parametrize("guarantee", ["idempotent", "exactly-once"])
def test_each_row_is_there_once_with_records_on_hdfs(
    rocketmq: LocalCluster, hdfs: str, monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    monkeypatch.setattr(stored_ids, "SETTLE_SECONDS", 0.0)
    rocketmq.create_topic("Orders", queues=4)
    sink = Sink(rocketmq, f"{hdfs}/{guarantee}/checkpoint", deliveryGuarantee=guarantee)
    rows = [f"row {number}" for number in range(40)]
    with pytest.raises(Died):
        sink.task(rows, dies_after=20)
    sink.commit(sink.task(rows, attempt=1))
    sink.start_again()
    assert sink.task(rows).was_committed
    close_connections()
    assert bodies(rocketmq) == Counter(rows)
    assert BatchRecords(sink.location, QUERY)._names() == ["0.committed"]


def test_where_a_stream_began_is_kept_on_hdfs_and_the_first_of_two_wins(hdfs: str) -> None:
    location = f"{hdfs}/beginnings/deep down/start.json"

    def while_another_is_faster() -> Offsets:
        assert remembered(location, lambda: {QUEUE: 1}) == {QUEUE: 1}
        return {QUEUE: 2}

    assert remembered(location, while_another_is_faster) == {QUEUE: 1}
    assert remembered(location, lambda: pytest.fail("asked again")) == {QUEUE: 1}
    files, path = file_systems.file_system(f"{hdfs}/beginnings/deep down")
    found = files.get_file_info(fs.FileSelector(path))
    assert [each.base_name for each in found] == ["start.json"]


def test_a_place_on_hdfs_that_cannot_be_written_is_named_with_the_next_step(hdfs: str) -> None:
    location = f"{hdfs}/plain.json"
    remembered(location, lambda: {QUEUE: 1})
    with pytest.raises(OptionError, match=r"plain.json/below.json cannot be used: .*; give a checkpoint"):
        remembered(f"{location}/below.json", lambda: {QUEUE: 1})


def test_a_pipeline_has_its_lake_and_its_checkpoint_on_hdfs(rocketmq: LocalCluster, hdfs: str, tmp_path: Path) -> None:
    expected = Counter(f"order {number}" for number in range(20))
    copy_orders(rocketmq, hdfs, tmp_path, sorted(expected))
    files, path = file_systems.file_system(f"{hdfs}/lake/orders")
    lake = pq.read_table(path, filesystem=files, columns=["body"])
    assert Counter(body.decode() for body in lake["body"].to_pylist()) == expected
    assert bodies(rocketmq, "Copies") == expected
