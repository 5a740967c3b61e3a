"""The same pipelines on a Spark standalone cluster: a master and two workers, each a process of its own."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyrocket
from skyrocket import Message
from skyrocket.testing import LocalCluster
from tests.pipeline.spark_cluster import SparkCluster, spark_cluster

pytestmark = pytest.mark.timeout(600)
PATIENCE_SECONDS = 420
SOURCE = Path(skyrocket.__file__).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    with LocalCluster() as running:
        yield running


def run(command: list[str], **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow  # six JVMs; the same command on one machine is in test_declared_run.py
def test_a_pipeline_runs_on_two_workers_from_topic_to_topic(
    cluster: SparkCluster, mq: LocalCluster, tmp_path: Path
) -> None:
    mq.create_topic("words")
    bodies = [f"word-{number}".encode() for number in range(200)]
    with mq.producer() as producer:
        for body in bodies:
            producer.send(Message("words", body))
    file = tmp_path / "shout.yml"
    file.write_text(
        "name: shout\nsource: {subscribe: words, startingOffsets: earliest, decode: {format: text}}\n"
        "steps: [{sql: SELECT upper(text) AS body FROM input}]\nsink: {topic: shouted}\ncreateTopics: true\n"
    )
    command = ["-m", "skyrocket", "pipeline", "run", str(file), "--once", "--master", cluster.master]
    for name, value in cluster.conf.items():
        command += ["--spark-conf", f"{name}={value}"]
    run([*command, "-n", mq.name_server_address])
    assert sorted(message.body for message in mq.messages("shouted")) == sorted(body.upper() for body in bodies)
    assert min(cluster.executors()) > 0


SHIPPED = """
import sys
from skyrocket.pipeline import session

master, namesrv, shipped, *conf = sys.argv[1:]
spark = session("shipped", master, dict(each.split("=", 1) for each in conf))
spark.sparkContext.addPyFile(shipped)

def where(_):
    import skyrocket
    yield skyrocket.__file__

print(sorted(set(spark.sparkContext.parallelize(range(4), 4).mapPartitions(where).collect())))
options = {"namesrvAddr": namesrv, "subscribe": "shipping"}
rows = spark.read.format("rocketmq").options(**options).load()
print(rows.count())
rows.selectExpr("body").write.format("rocketmq").mode("append").options(namesrvAddr=namesrv, topic="shipped").save()
spark.stop()
"""


@pytest.mark.slow
def test_the_package_can_be_shipped_as_a_zip_for_batch_jobs(
    cluster: SparkCluster, mq: LocalCluster, tmp_path: Path
) -> None:
    shipped = tmp_path / "skyrocket.zip"
    with zipfile.ZipFile(shipped, "w") as archive:
        for file in [*SOURCE.rglob("*.py"), *SOURCE.parent.glob("pyspark_*.py")]:
            archive.write(file, file.relative_to(SOURCE.parent))
    mq.create_topic("shipping")
    mq.create_topic("shipped")
    with mq.producer() as producer:
        for number in range(50):
            producer.send(Message("shipping", str(number).encode()))
    script = tmp_path / "job.py"
    script.write_text(SHIPPED)
    conf = [f"{name}={value}" for name, value in cluster.conf.items()]
    told = run([str(script), cluster.master, mq.name_server_address, str(shipped), *conf])
    first, count = told.splitlines()[-2:]
    assert "skyrocket.zip/skyrocket/__init__.py" in first  # not that of the environment
    assert count == "50"
    assert len(mq.messages("shipped")) == 50


@pytest.mark.slow
def test_a_stream_takes_the_package_from_the_path_that_executors_are_given(
    cluster: SparkCluster, mq: LocalCluster, tmp_path: Path
) -> None:
    """addPyFile does not reach the process that plans a stream; spark.executorEnv.PYTHONPATH does."""
    packed = tmp_path / "packed"
    for file in [*SOURCE.rglob("*.py"), *SOURCE.parent.glob("pyspark_*.py")]:
        copy = packed / file.relative_to(SOURCE.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    mq.create_topic("packed")
    with mq.producer() as producer:
        for number in range(50):
            producer.send(Message("packed", str(number).encode()))
    file = tmp_path / "p.yml"
    file.write_text(
        "name: packed\nsource: {subscribe: packed, startingOffsets: earliest, decode: {format: text}}\n"
        "steps: [{sql: SELECT text AS body FROM input}]\nsink: {topic: unpacked}\ncreateTopics: true\n"
    )
    command = ["-m", "skyrocket", "pipeline", "run", str(file), "--once", "--master", cluster.master]
    for name, value in {**cluster.conf, "spark.executorEnv.PYTHONPATH": str(packed)}.items():
        command += ["--spark-conf", f"{name}={value}"]
    run([*command, "-n", mq.name_server_address])
    assert len(mq.messages("unpacked")) == 50
