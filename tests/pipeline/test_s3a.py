"""Spark's own S3A: a stream whose checkpoint and files lie on a server of S3 goes on where it was, however it ended."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from bench.peers.maven import classpath
from bench.peers.other_system import Missing
from pyarrow import fs

from skyrocket.pipeline.file_systems import file_system
from skyrocket.testing import LocalCluster
from tests.pipeline.driver import Driver
from tests.pipeline.remote_pipeline import copy_orders
from tests.pipeline.s3_server import running_s3
from tests.pipeline.sink_tasks import bodies
from tests.pipeline.topics import filled

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
_HADOOP = "3.5.0"  # as Spark's own
_PLACE = "s3a://lake"


@pytest.fixture(scope="module")
def conf() -> dict[str, str]:
    """What a driver is told; the address and the account are in the environment, for Spark and for us."""
    try:
        jars = classpath(f"hadoop-aws-{_HADOOP}", f"org.apache.hadoop:hadoop-aws:{_HADOOP}")
    except Missing as reason:
        pytest.skip(f"no S3A: {reason}")
    # Not spark.jars, as on a cluster: half a gigabyte would be copied at every start.
    return {"spark.driver.extraClassPath": jars, "spark.hadoop.fs.s3a.path.style.access": "true"}


@pytest.fixture
def s3a(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of one's own."""
    with running_s3() as address:
        account = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1"}
        for name, value in {**account, "AWS_ENDPOINT_URL": address}.items():
            monkeypatch.setenv(name, value)
        files, bucket = fs.FileSystem.from_uri("s3://lake?allow_bucket_creation=true")
        files.create_dir(bucket)
        yield _PLACE


def test_a_pipeline_has_its_lake_and_its_checkpoint_on_s3(
    rocketmq: LocalCluster, s3a: str, conf: dict[str, str], tmp_path: Path
) -> None:
    expected = Counter(f"order {number}" for number in range(20))
    copy_orders(rocketmq, s3a, tmp_path, sorted(expected), conf)
    assert Counter(listed_bodies(f"{s3a}/lake/orders")) == expected
    assert bodies(rocketmq, "Copies") == expected


def test_a_killed_driver_goes_on_from_its_checkpoint_on_s3(
    rocketmq: LocalCluster, s3a: str, conf: dict[str, str], tmp_path: Path
) -> None:
    """Killed twice in the middle of batches of 100: nothing is lost, and nothing is there twice."""
    rocketmq.create_topic("Killed", queues=3)
    filled(rocketmq, "Killed", 3000)
    for _ in range(2):
        with Driver(rocketmq, "Killed", tmp_path, place=s3a, conf=conf) as driver:
            goal = len(commits(s3a)) + 2
            driver.wait_for(lambda goal=goal: len(commits(s3a)) >= goal)  # type: ignore[misc]
    assert 4 <= len(commits(s3a)) < 30, "it was to be killed on its way"
    filled(rocketmq, "Killed", 100, first=3000)
    with Driver(rocketmq, "Killed", tmp_path, "now", place=s3a, conf=conf) as driver:
        driver.wait()
    assert Counter(map(int, listed_bodies(f"{s3a}/lake"))) == Counter(range(3100))


def commits(place: str) -> list[str]:
    """The batches that the checkpoint has as done."""
    return [name for name in names(f"{place}/checkpoint/commits") if name.isdecimal()]


def names(location: str) -> list[str]:
    files, path = file_system(location)
    return [each.base_name for each in files.get_file_info(fs.FileSelector(path, allow_not_found=True))]


def listed_bodies(lake: str) -> list[str]:
    """Of the files that Spark lists: a batch that was killed leaves others behind, which no reader of Spark's sees."""
    files, path = file_system(lake)
    listed: set[str] = set()
    for name in names(f"{lake}/_spark_metadata"):
        with files.open_input_stream(f"{path}/_spark_metadata/{name}") as stream:
            _version, *entries = stream.read().decode().splitlines()
        listed |= {json.loads(entry)["path"] for entry in entries}
    found: list[str] = []
    for location in sorted(listed):
        found += (
            body.decode() for body in pq.read_table(file_system(location)[1], filesystem=files)["body"].to_pylist()
        )
    return found
