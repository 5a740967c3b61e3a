"""HDFS: the sink's records, where a stream began, Spark's own checkpoint and lake."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from skyrocket.client import Message, blocking
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline import file_systems
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_sink import stored_ids
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords
from skyrocket.pipeline.topic_source.initial_offsets import remembered
from skyrocket.pipeline.topic_source.offsets import Offsets
from skyrocket.testing import LocalCluster
from tests.pipeline.hdfs_cluster import hdfs_package, running_hdfs
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
    """Run three times: it begins at the end of the topic, then reads what came since, and then nothing again."""
    for topic in ("Orders", "Copies"):
        rocketmq.create_topic(topic, queues=2)
    file = tmp_path / "copy.yml"
    file.write_text(
        f"name: copy\nsource: {{subscribe: Orders}}\ncheckpoint: {hdfs}/checkpoints/copy\n"
        f"sinks:\n  - {{format: parquet, path: '{hdfs}/lake/orders'}}\n  - {{topic: Copies}}\n"
    )
    _send(rocketmq, "before the first start")
    _run(file, rocketmq)
    _send(rocketmq, *(f"order {number}" for number in range(20)))
    _run(file, rocketmq)
    _run(file, rocketmq)
    expected = Counter(f"order {number}" for number in range(20))
    files, path = file_systems.file_system(f"{hdfs}/lake/orders")
    lake = pq.read_table(path, filesystem=files, columns=["body"])
    assert Counter(body.decode() for body in lake["body"].to_pylist()) == expected
    assert bodies(rocketmq, "Copies") == expected


def _send(mq: LocalCluster, *texts: str) -> None:
    with blocking.Producer("shop", mq.client_settings.name_servers) as producer:
        for text in texts:
            producer.send(Message("Orders", text.encode()))


def _run(file: Path, mq: LocalCluster) -> None:
    """A program of its own: Spark's workers find hdfs-native by its PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "skyrocket", "pipeline", "run", str(file), "--once"]
    command += ["-n", str(mq.client_settings.name_servers)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
