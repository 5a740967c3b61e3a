"""Declared pipelines at work: from topics through SQL into topics and files; failures, restarts, a clean end."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skyrocket import Message
from skyrocket.pipeline.declared import PipelineFileError, Restart, load
from skyrocket.pipeline.declared.runner import BatchDone, batch_done
from skyrocket.testing import LocalCluster
from tests.pipeline.conftest import FAST, JVM_FLAGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE_SECONDS = 400
ENVIRONMENT = os.environ | {"SPARK_SUBMIT_OPTS": JVM_FLAGS}
pytestmark = pytest.mark.timeout(600)
ORDERS = """\
name: paid
sources:
  orders:
    subscribe: orders
    startingOffsets: earliest
    decode: {schema: "id string, amount double, ts timestamp"}
steps:
  - name: paid
    sql: SELECT id, amount, ts, date_format(ts, 'yyyy-MM-dd') AS dt FROM orders WHERE amount > 0
  - name: unique
    dedupe: {keys: [id], watermark: {column: ts, delay: 1 hour}}
sinks:
  - {topic: orders_paid, keys: id, tags: "'paid'"}
  - {format: parquet, path: lake, from: paid, partitionBy: dt}
onError: {malformed: dlq, topic: orders_malformed}
createTopics: true
limits: {maxOffsetsPerTrigger: 1000}
"""


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        yield cluster


def order(number: int, amount: float) -> bytes:
    return json.dumps({"id": f"o{number}", "amount": amount, "ts": f"2026-01-01T00:00:{number % 60:02}Z"}).encode()


def run_once(spark: "SparkSession", file: Path, mq: LocalCluster) -> list[BatchDone]:
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import Runner
    from skyrocket.pipeline.declared.topics_check import check_topics

    located, done = load(file), list[BatchDone]()
    with mq.admin() as admin:
        check_topics(located.pipeline, located.locations, admin)
    with prepared(located, mq.name_server_address, "local[2]", {}) as outputs:
        Runner(located.pipeline, outputs, mq.name_server_address, once=True, on_batch=done.append).run()
    return done


def test_orders_go_from_a_topic_through_sql_to_a_topic_a_lake_and_a_place_for_bad_ones(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path
) -> None:
    mq.create_topic("orders")
    with mq.producer() as producer:
        for body in (order(1, 5), order(2, -1), order(1, 5), b"no json", order(3, 2)):
            producer.send(Message("orders", body, keys="k"))
    file = tmp_path / "paid.yml"
    file.write_text(ORDERS)
    done = run_once(spark, file, mq)
    assert {batch.sink for batch in done} == {"orders_paid", "lake", "malformed-orders"}
    assert sum(batch.malformed for batch in done if batch.sink == "lake") == 1
    paid = mq.messages("orders_paid")
    assert sorted(json.loads(message.body)["id"] for message in paid) == ["o1", "o3"]
    assert {(message.tags, *message.keys) for message in paid} == {("paid", "o1"), ("paid", "o3")}
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert sorted((row.id, str(row.dt)) for row in lake.collect()) == [
        ("o1", "2026-01-01"),
        ("o1", "2026-01-01"),
        ("o3", "2026-01-01"),
    ]
    assert [message.body for message in mq.messages("orders_malformed")] == [b"no json"]
    with mq.admin() as admin:
        for group in ("paid-orders_paid", "paid-lake", "paid-malformed-orders"):
            assert sum(max(lag.consumer_offset, 0) for lag in admin.consumer_lag(group, "orders")) == 5

    with mq.producer() as producer:
        producer.send(Message("orders", order(4, 9)))
    run_once(spark, file, mq)  # goes on where it ended
    assert sorted(json.loads(message.body)["id"] for message in mq.messages("orders_paid")) == ["o1", "o3", "o4"]
    assert spark.read.parquet(str(tmp_path / "lake")).count() == 4
    assert len(mq.messages("orders_malformed")) == 1


def test_a_store_directory_is_read_without_a_broker(spark: "SparkSession", mq: LocalCluster, tmp_path: Path) -> None:
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import Runner

    mq.create_topic("stored")
    with mq.producer() as producer:
        for number in range(5):
            producer.send(Message("stored", b"x%d" % number, tags="even" if number % 2 == 0 else "odd"))
    store = next(mq.directory.rglob("commitlog")).parent
    file = tmp_path / "p.yml"
    file.write_text(
        f"name: log\nsource: {{format: rocketmq-commitlog, path: {store}, topics: stored, decode: {{format: text}}}}\n"
        "steps: [{sql: SELECT text FROM input WHERE message.tags = 'even'}]\nsink: {format: json, path: out}\n"
    )
    with prepared(load(file), "", "local[2]", {}) as outputs:
        Runner(load(file).pipeline, outputs, "").run()
    assert sorted(row.text for row in spark.read.json(str(tmp_path / "out")).collect()) == ["x0", "x2", "x4"]


def test_topics_that_do_not_exist_are_told_before_anything_starts(mq: LocalCluster, tmp_path: Path) -> None:
    from skyrocket.pipeline.declared.topics_check import check_topics

    mq.create_topic("payments")
    file = tmp_path / "p.yml"
    file.write_text("name: x\nsource: {subscribe: 'payments,payment'}\nsink: {topic: nowhere}\n")
    located = load(file)
    with mq.admin() as admin, pytest.raises(PipelineFileError) as caught:
        check_topics(located.pipeline, located.locations, admin)
    assert [str(problem).removeprefix(f"{file}:") for problem in caught.value.problems] == [
        "2:22: topic payment does not exist; did you mean payments? Else create it",
        "3:15: topic nowhere does not exist; create it, or write `createTopics: true`",
    ]


def test_topics_are_asked_for_with_the_account_of_the_pipeline(tmp_path: Path) -> None:
    from skyrocket.pipeline.declared.topics_check import cluster_settings

    file = tmp_path / "p.yml"
    file.write_text("name: x\nsource: {subscribe: a, accessKey: k, secretKey: s}\nsink: {format: console}\n")
    settings = cluster_settings(load(file).pipeline, "10.0.0.1:9876")
    assert settings.credentials is not None
    assert (settings.credentials.access_key, settings.addresses()) == ("k", ("10.0.0.1:9876",))


def test_the_wait_before_a_restart_doubles_and_has_an_end() -> None:
    from skyrocket.pipeline.declared.runner import wait_seconds

    restart = Restart(attempts=5, first_seconds=1, longest_seconds=6)
    assert [wait_seconds(restart, failures) for failures in range(1, 7)] == [1, 2, 4, 6, 6, None]
    assert wait_seconds(Restart(attempts=0), 1) is None


def test_a_sink_that_fails_is_started_again_and_loses_nothing(
    spark: "SparkSession", tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The lake's place is taken by a file until the second attempt."""
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import Runner

    spark.range(10).selectExpr("id").write.parquet(str(tmp_path / "in"))
    file = tmp_path / "p.yml"
    file.write_text(
        "name: x\nsource: {format: parquet, path: in}\n"
        "sinks:\n  - {format: parquet, path: out}\n"
        f"  - {{format: jdbc, url: 'jdbc:derby:{tmp_path / 'derby'};create=true', table: numbers}}\n"
        "restart: {attempts: 50, wait: 100 ms, longestWait: 1 second}\n"
    )
    (tmp_path / "out").write_text("in the way")
    with prepared(load(file), "", "local[2]", {}) as outputs:
        runner = Runner(load(file).pipeline, outputs, "", once=True)
        caplog.handler.addFilter(_Removing(tmp_path / "out"))
        runner.run()
    assert any("sink out failed, starts again in" in record.getMessage() for record in caplog.records)
    assert spark.read.parquet(str(tmp_path / "out")).count() == 10
    assert spark.read.jdbc(f"jdbc:derby:{tmp_path / 'derby'}", "numbers").count() == 10


class _Removing:
    """Takes the obstacle away when the first failure is logged."""

    def __init__(self, obstacle: Path) -> None:
        self._obstacle = obstacle

    def filter(self, record: Any) -> bool:
        if "starts again" in record.getMessage() and self._obstacle.is_file():
            self._obstacle.unlink()
        return True


def test_a_sink_that_always_fails_is_given_up_with_its_cause(spark: "SparkSession", tmp_path: Path) -> None:
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import PipelineFailed, Runner

    spark.range(10).write.parquet(str(tmp_path / "in"))
    file = tmp_path / "p.yml"
    file.write_text(
        "name: x\nsource: {format: parquet, path: in}\nsteps: [{sql: SELECT raise_error('too bad') AS x FROM input}]\n"
        "sink: {format: parquet, path: out}\nrestart: {attempts: 1, wait: 10 ms}\n"
    )
    with prepared(load(file), "", "local[2]", {}) as outputs:
        runner = Runner(load(file).pipeline, outputs, "", once=True)
        with pytest.raises(PipelineFailed, match=r"sink out: given up after 1 restarts without progress.*too bad"):
            runner.run()


def test_a_pipeline_that_goes_on_ends_when_it_is_asked_to(spark: "SparkSession", tmp_path: Path) -> None:
    from skyrocket.pipeline.declared.frames import prepared
    from skyrocket.pipeline.declared.runner import Runner

    file = tmp_path / "p.yml"
    file.write_text(
        "name: ticks\nsource: {format: rate, rowsPerSecond: 100}\nsink: {format: memory, name: ticks}\n"
        "trigger: {processingTime: 100 ms}\n"
    )
    done: list[BatchDone] = []

    def stop_after_two(batch: BatchDone) -> None:
        done.append(batch)
        if len(done) == 2:
            runner.stop()

    with prepared(load(file), "", "local[2]", {}) as outputs:
        runner = Runner(load(file).pipeline, outputs, "", on_batch=stop_after_two)
        runner.run()
        assert outputs[0].rows.sparkSession.streams.active == []
    assert [batch.batch for batch in done[:2]] == [0, 1]


def test_what_spark_tells_about_a_batch_becomes_a_line() -> None:
    told = {
        "batchId": 7,
        "numInputRows": 100,
        "durationMs": {"triggerExecution": 250},
        "sink": {"numOutputRows": 98},
        "observedMetrics": {"decode_orders": {"messages": 100, "malformed": 2}},
        "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    }
    done = batch_done("paid", "lake", told)
    assert (
        done.line() == "paid ▸ lake: batch 7, 100 in, 98 out, 250 ms, 2 malformed, watermark 2026-01-01T00:00:00.000Z"
    )
    assert json.loads(done.json())["rows_in"] == 100


def test_the_command_runs_a_pipeline_once_as_a_program(mq: LocalCluster, tmp_path: Path) -> None:
    """On a cluster: test_cluster.py. Without a terminal phases are lines; Spark itself says nothing."""
    file = shouting(mq, tmp_path, "shouted")
    done = subprocess.run(
        run_command(file, mq), env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert sorted(message.body for message in mq.messages("shouted")) == sorted(
        f"WORD-{number}".encode() for number in range(20)
    )
    assert re.sub(r"\d+\.\d s", "1.0 s", done.stderr).splitlines() == [
        "shout: Spark starts on local[1] …",
        "shout: Spark is ready after 1.0 s",
        "shout runs: shouted",
        "shout has stopped",
    ]
    assert all(line.startswith("shout ▸ shouted: batch ") for line in done.stdout.splitlines()), done.stdout


@pytest.mark.slow
def test_on_a_terminal_a_phase_is_shown_while_it_lasts(mq: LocalCluster, tmp_path: Path) -> None:
    file = shouting(mq, tmp_path, "shown")
    main, other = pty.openpty()
    with subprocess.Popen(
        run_command(file, mq), env=ENVIRONMENT | {"TERM": "xterm"}, stdout=subprocess.DEVNULL, stderr=other
    ) as running:
        os.close(other)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other end was closed
            while block := os.read(main, 4096):
                shown += block
        os.close(main)
        assert running.wait(PATIENCE_SECONDS) == 0, shown[-4000:]
    text = shown.decode()
    before, _, after = text.partition("shout runs: shown")
    assert "shout: Spark starts on local[1] …" in before
    assert before.endswith("\x1b[2K"), "the line is cleared when Spark is there"
    assert after.split() == ["shout", "has", "stopped"]
    assert "is ready after" not in text, "that is for those who read lines"


@pytest.mark.slow
def test_a_check_prints_its_result_and_nothing_of_spark(mq: LocalCluster, tmp_path: Path) -> None:
    file = shouting(mq, tmp_path, "checked")
    command = [sys.executable, "-m", "skyrocket", "pipeline", "check", str(file), "-n", mq.name_server_address]
    done = subprocess.run(
        command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{file} can be run: checked\n", "")


def shouting(mq: LocalCluster, folder: Path, to: str) -> Path:
    """A pipeline file over twenty words."""
    mq.create_topic(f"words_{to}")
    with mq.producer() as producer:
        for number in range(20):
            producer.send(Message(f"words_{to}", f"word-{number}".encode()))
    file = folder / "shout.yml"
    file.write_text(
        f"name: shout\nsource: {{subscribe: words_{to}, startingOffsets: earliest, decode: {{format: text}}}}\n"
        f"steps: [{{sql: SELECT upper(text) AS body FROM input}}]\nsink: {{topic: {to}}}\ncreateTopics: true\n"
    )
    return file


def run_command(file: Path, mq: LocalCluster) -> list[str]:
    command = [sys.executable, "-m", "skyrocket", "pipeline", "run", str(file), "--once", "--master", "local[1]"]
    for name, value in FAST.items():
        command += ["--spark-conf", f"{name}={value}"]
    return [*command, "-n", mq.name_server_address]


@pytest.mark.slow
def test_the_command_runs_until_sigterm_and_goes_on_later_without_loss_or_repetition(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path
) -> None:
    mq.create_topic("ticks")
    (tmp_path / "p.yml").write_text(
        "name: ticking\nsource: {subscribe: ticks, startingOffsets: earliest, decode: {format: text}}\n"
        "sink: {format: parquet, path: lake}\ntrigger: {processingTime: 200 ms}\n"
    )
    command = [sys.executable, "-m", "skyrocket", "pipeline", "run", str(tmp_path / "p.yml"), "--json"]
    command += ["-n", mq.name_server_address, "--master", "local[2]"]
    sent = 0
    with mq.producer() as producer:
        for _ in range(2):
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
                try:
                    for _ in range(20):
                        producer.send(Message("ticks", str(sent).encode()))
                        sent += 1
                    assert running.stdout is not None
                    assert json.loads(running.stdout.readline())["rows_in"] > 0
                    running.send_signal(signal.SIGTERM)
                    assert running.wait(PATIENCE_SECONDS) == 0
                finally:
                    running.kill()
    run_once(spark, tmp_path / "p.yml", mq)
    lake = spark.read.parquet(str(tmp_path / "lake"))
    assert sorted(int(row.text) for row in lake.collect()) == list(range(sent))
