"""The sink's records on an object store: fences, what was put aside, decisions."""

from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from pyarrow import fs

from skyrocket.pipeline.topic_sink import stored_ids
from skyrocket.pipeline.topic_sink.batch_records import BatchRecords
from skyrocket.testing import LocalCluster
from tests.pipeline.s3_server import running_s3
from tests.pipeline.sink_tasks import QUERY, Died, Sink, bodies, close_connections

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with running_s3() as address:
        account = {"access_key": "k", "secret_key": "s", "region": "us-east-1"}
        files = fs.S3FileSystem(**account, endpoint_override=address, allow_bucket_creation=True)
        files.create_dir("lake")
        yield f"k:s@lake/checkpoint?endpoint_override={quote(address, safe='')}&region=us-east-1"


@pytest.mark.parametrize(("guarantee", "scheme"), [("idempotent", "s3"), ("exactly-once", "s3a")])
def test_each_row_is_there_once_with_records_on_s3(
    rocketmq: LocalCluster, s3: str, monkeypatch: pytest.MonkeyPatch, guarantee: str, scheme: str
) -> None:
    monkeypatch.setattr(stored_ids, "SETTLE_SECONDS", 0.0)
    rocketmq.create_topic("Orders", queues=4)
    sink = Sink(rocketmq, f"{scheme}://{s3}", deliveryGuarantee=guarantee)
    batch = 1 if guarantee == "idempotent" else 2
    rows = [f"row {number}" for number in range(40)]
    with pytest.raises(Died):
        sink.task(rows, dies_after=20, batch=batch)
    report = sink.task(rows, attempt=1, batch=batch)
    sink.commit(report, batch=batch)
    sink.start_again()
    assert sink.task(rows, batch=batch).was_committed
    close_connections()
    assert bodies(rocketmq) == Counter(rows)
    left = [name for name in BatchRecords(sink.location, QUERY)._names() if name.startswith(f"{batch}.")]
    assert left == [f"{batch}.committed"]
