"""`skyrocket pipeline`: help, errors, exit codes; then every job from end to end over a shop that was really run."""

import importlib.util
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.cli.pipeline import JOBS
from skyrocket.client import DeadLetter, Message, PushConsumerSettings, ReceivedMessage, blocking
from skyrocket.format.trace import CallEnded, Sent, TraceEvent, decode_trace
from skyrocket.pipeline.jobs import launch
from skyrocket.pipeline.jobs.launch import cause_of
from skyrocket.pipeline.jobs.replay import Sending
from skyrocket.pipeline.jobs.replay.progress import ReplayProgress
from skyrocket.testing import LocalCluster
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

ENGINES = pytest.mark.parametrize("engine", ["spark", "local"])
SLOTS = ["--index-slots", 1000]  # as `LocalCluster` has them
KEYS = [f"late-{n}" for n in range(5)] + [f"o-{n}" for n in range(8)]
_PATIENCE_SECONDS = 120.0


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    text: str  # of both streams


def _run(*arguments: object) -> Ended:
    result = CliRunner().invoke(app, ["pipeline", *map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(result.exit_code, result.output)


# ── without Spark ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_help_lists_every_job_with_a_line() -> None:
    text = _run("--help").text
    for job in JOBS:
        assert f"│ {job.__name__.replace('_', '-')} " in text
        assert (job.__doc__ or "").strip()


def test_a_missing_extra_is_told_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else found(name))
    assert _run("dlq") == (1, "skyrocket pipeline dlq: pyspark is not installed; run: pip install 'skyrocket[spark]'\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lag", "--nope"], "No such option"),
        (["lag", "--every", "soon"], "not a length of time"),
        (["lag", "--store", "/nowhere", "--for", "1m"], "--for is for a cluster"),
        (["lag", "--io-ms", "3"], "sizing needs --cpu-ms"),
        (["lag", "--cpu-ms", "0"], "--cpu-ms"),
        (["trace", "--since", "yesterday"], "is no"),
        (["trace", "--since", "2026-01-02", "--until", "2026-01-01"], "--since is not before --until"),
        (["dlq", "--store", "a", "--archive", "b"], "exclude each other"),
        (["dlq", "--spark-conf", "memory=4g"], "spark.driver.memory=4g"),
        (["replay", "Orders"], "--to TOPIC"),
        (["replay", "--to", "Again"], "say what to send again"),
        (["replay", "Orders", "--to", "%DLQ%Billing"], "topic of the system"),
        (["replay", "Orders", "--to", "Again", "--rate", "0"], "--rate"),
        (["replay", "Orders", "--to", "Again", "--group", "g", "--since", "1h"], "--group begins where"),
        (["dedupe"], "Missing argument"),
        (["dedupe", "Orders", "--stream"], "keeps the first"),
    ],
)
def test_wrong_usage_is_a_line_and_not_the_exit_code_of_findings(arguments: list[str], said: str) -> None:
    ended = _run(*arguments)
    assert ended.code == 1
    assert said in ended.text
    assert "Traceback" not in ended.text


def test_the_error_of_a_worker_is_told_without_the_traceback_around_it() -> None:
    text = """[PYTHON_DATA_SOURCE_ERROR] Failed to plan: Traceback (most recent call last):
      File "worker.py", line 1, in main
    skyrocket.client.core.errors.NoRoute: topic Nope has no route at 127.0.0.1:9876: create it
    """
    assert cause_of(Exception(text)) == "topic Nope has no route at 127.0.0.1:9876: create it"
    assert cause_of(Exception("[TABLE_OR_VIEW_NOT_FOUND] x\n at y")) == "Spark says: [TABLE_OR_VIEW_NOT_FOUND] x"


def _no_spark(*_: object) -> None:
    pytest.fail("Spark is started before the mistake is told")


def test_what_is_not_there_is_told_before_spark_starts(
    rocketmq: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "job_session", _no_spark)
    rocketmq.create_topic("Orders")
    cluster = ["-n", rocketmq.name_server_address]
    nowhere, plain = tmp_path / "nowhere", tmp_path / "plain"
    plain.write_text("no directory")
    store = tmp_path / "store"
    (store / "commitlog").mkdir(parents=True)
    (store / "commitlog" / ("0" * 20)).write_bytes(bytes(4096))
    to_lake = ["--broker-name", "broker-a", "--lake"]
    mistakes: list[tuple[list[object], str]] = [
        (["replay", "Nope", "--to", "Orders", *cluster], "no route for topic Nope"),
        (["replay", "Orders", "--to", "Nope", *cluster], "skyrocket topic create Nope"),
        (["replay", "--dlq", "Nobody", *cluster], "group Nobody has no dead letters here"),
        (["trace", *cluster], "no client has left traces here"),
        (["trace", "--engine", "spark", *cluster], "trace=True"),
        (["dlq", "Nobody", *cluster], "retries of group Nobody: check its name"),
        (["dlq", "Nobody", "--engine", "spark", *cluster], "retries of group Nobody: check its name"),
        (["dedupe", "Orders", "--by", "kezs", *cluster], "did you mean keys?"),
        (["rebuild", nowhere], "does not exist"),
        (["archive", nowhere, *to_lake, tmp_path / "lake"], "does not exist"),
        (["archive", store, *to_lake, plain / "lake"], "plain/lake cannot be written: "),
        (["compact", "--lake", nowhere], "is not a lake"),
    ]
    for arguments, said in mistakes:
        ended = _run(*arguments)
        assert ended.code == 1, ended.text
        assert said in ended.text
        assert ended.text.count("\n") == 1, "a line"


@ENGINES
def test_a_group_that_has_no_dead_letters_so_far_is_no_failure(
    rocketmq: LocalCluster, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    with blocking.Admin(client=rocketmq.client_settings) as admin:
        admin.create_group("Billing")
    ended = _run("dlq", "Billing", "--engine", engine, "-n", rocketmq.name_server_address)
    assert ended.code == 0, ended.text
    assert "no findings" in ended.text


# ── a shop ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Shop(NamedTuple):
    """Sixteen orders of eight keys were sent and consumed with traces, two buried; then five came that nobody took."""

    mq: LocalCluster
    store: Path  # a copy, as of that moment
    folder: Path

    @property
    def cluster(self) -> list[str]:
        return ["-n", self.mq.name_server_address]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    with LocalCluster() as mq:
        for topic in ("Orders", "Again", "Wide", "Clean"):
            mq.create_topic(topic, queues=2)
        mq.create_group("Billing")
        traced = replace(mq.client_settings, trace=True)
        _sell_and_bill(mq, traced)
        with mq.producer() as producer:
            for number in range(5):
                producer.send(Message("Orders", b"late", keys=f"late-{number}", tags="late"))
        mq.restart_broker()  # so that offsets are in their file
        shutil.copytree(mq.directory / mq.broker_names[0], folder / "store")
        yield Shop(mq, folder / "store", folder)


def _sell_and_bill(mq: LocalCluster, traced: Any) -> None:
    settings = PushConsumerSettings(persist_interval=0.05)
    consumer = blocking.PushConsumer("Billing", settings=settings, client=traced)
    billed: list[str] = []

    @consumer.on("Orders")
    def bill(message: ReceivedMessage) -> None:
        billed.append(message.message_id)
        if message.keys == ["o-3"]:
            raise DeadLetter("article 17 is gone")

    with consumer, blocking.Producer("Shop", client=traced) as producer:
        for number in range(16):
            body = json.dumps({"order": {"id": number % 8}, "n": number}).encode()
            key = f"o-{number % 8}"
            tags = "paid" if number % 2 else "new"
            producer.send(Message("Orders", body, tags=tags, keys=key, properties={"color": "red"}))
        wait_until(
            lambda: len(billed) >= 16 and len(mq.dead_letters("Billing")) >= 2,
            "all are billed or buried",
            seconds=_PATIENCE_SECONDS,
        )
        wait_until(lambda: sum(_committed(mq).values()) == 16, "the offsets are committed", seconds=_PATIENCE_SECONDS)
        # Now, not by closing: that gives up after five seconds, which a busy machine may need.
        wait_until(
            lambda: _traced(mq, Sent) == _traced(mq, CallEnded) == 16,
            "all traces are stored",
            seconds=_PATIENCE_SECONDS,
        )


def _committed(mq: LocalCluster) -> dict[int, int]:
    return {queue.queue_id: offset for queue, offset in mq.offsets("Billing").items() if queue.topic == "Orders"}


def _traced(mq: LocalCluster, kind: type[TraceEvent]) -> int:
    told = [event for trace in mq.messages("RMQ_SYS_TRACE_TOPIC") for event in decode_trace(trace.body)]
    return len({event.message_id for event in told if isinstance(event, kind)})


def _rows(out: Path, name: str) -> list[dict[str, Any]]:
    table: pa.Table = pq.read_table(out / f"{name}.parquet")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_what_is_not_there_is_told_in_a_line(spark: "SparkSession", shop: Shop, tmp_path: Path) -> None:
    cases: list[tuple[list[object], str]] = [
        (["dlq", "Nobody", *shop.cluster], "retries of group Nobody: check its name"),
        (["dlq", "--store", tmp_path], "no folder `commitlog`"),
        (["dlq", "--archive", tmp_path], "no Parquet files"),
        (["audit", shop.store], "give the broker's maxHashSlotNum as --index-slots"),
        (["lag", "Biling", *shop.cluster], "group Biling has not consumed anything here"),
    ]
    for arguments, said in cases:
        ended = _run(*arguments)
        assert ended.code == 1, ended.text
        assert said in ended.text
        assert "Traceback" not in ended.text
        assert len(ended.text.splitlines()) == 1, ended.text


@ENGINES
def test_trace_tells_how_long_orders_took(spark: "SparkSession", shop: Shop, tmp_path: Path, engine: str) -> None:
    options = ["--topic", "Orders", "--hot-count", 2, "--hot-share", 0.1, "--engine", engine]
    ended = _run("trace", *options, *shop.cluster, "--out", tmp_path)
    assert ended.code == 2, ended.text
    assert "end to end" in ended.text
    (whole,) = [row for row in _rows(tmp_path, "latency_by_group") if row["stage"] == "end to end"]
    assert (whole["group"], whole["topic"], whole["count"]) == ("Billing", "Orders", 14)
    assert 0 <= whole["p50"] <= whole["p99"] <= whole["max"]
    (retries,) = _rows(tmp_path, "retries")
    assert (retries["messages"], retries["neverSucceeded"]) == (16, 2)
    assert retries["failedCalls"] >= 2, "a consumer may be given a message twice"
    assert {row["key"] for row in _rows(tmp_path, "hot_keys") if row["isHot"]} == {f"o-{n}" for n in range(8)}
    assert json.loads((tmp_path / "report.json").read_text())["findings"] == 8
    assert "<svg" in (tmp_path / "report.html").read_text()


@ENGINES
def test_lag_alarms_about_a_backlog_of_the_cluster_and_of_its_store(
    spark: "SparkSession", shop: Shop, tmp_path: Path, engine: str
) -> None:
    limits = ["--topic", "Orders", "--max-messages", 4, "--engine", engine]
    ended = _run("lag", "Billing", *limits, "--cpu-ms", 5, "--io-ms", 45, *shop.cluster, "--out", tmp_path / "live")
    assert ended.code == 2, ended.text
    (live,) = _rows(tmp_path / "live", "groups")
    assert (live["group"], live["topic"], live["messages"], live["queues"]) == ("Billing", "Orders", 5, 2)
    assert live["seconds"] >= 0
    assert [row["threads_per_node"] for row in _rows(tmp_path / "live", "sizing")] == [40]
    ended = _run("lag", "Billing", *limits, "--store", shop.store, "--out", tmp_path / "copy")
    assert ended.code == 2, ended.text
    (copy,) = _rows(tmp_path / "copy", "groups")
    assert (copy["messages"], copy["queues"]) == (5, 2)


@ENGINES
def test_dlq_tells_why_orders_were_buried(spark: "SparkSession", shop: Shop, tmp_path: Path, engine: str) -> None:
    ended = _run("dlq", *shop.cluster, "--out", tmp_path, "--engine", engine)
    assert ended.code == 2, ended.text
    (cause,) = _rows(tmp_path, "causes")
    buried = len(shop.mq.dead_letters("Billing"))
    assert (cause["group"], cause["originTopic"], cause["letters"]) == ("Billing", "Orders", buried)
    assert cause["cause"] == "skyrocket.client.consumer.handlers.DeadLetter: article # is gone"
    assert len(_rows(tmp_path, "letters")) == buried
    assert _run("dlq", *shop.cluster, "--until", "2020-01-01", "--engine", engine).code == 0


def test_little_is_computed_without_spark_and_the_report_says_so(shop: Shop, no_spark: None) -> None:
    """Also from files; `audit` reads nothing else."""
    archived: list[object] = ["--store", shop.store]
    for job in (["dlq", *shop.cluster], ["dlq", *archived], ["lag", *shop.cluster], ["lag", *archived]):
        assert "computed in this process from" in _run(*job).text
    for job in (["trace", "--topic", "Orders", *archived], ["audit", shop.store, *SLOTS]):
        assert "MB of log, without Spark; --engine spark" in _run(*job).text


def test_a_choice_of_spark_is_kept_and_a_path_into_json_needs_it(shop: Shop, no_spark: None) -> None:
    with pytest.raises(SparkWanted):
        _run("dlq", "--engine", "spark", *shop.cluster)
    with pytest.raises(SparkWanted):
        _run("audit", shop.store, *SLOTS, "--business-key", "json:$.order.id")
    ended = _run("audit", shop.store, *SLOTS, "--business-key", "json:$.order.id", "--engine", "local")
    assert (ended.code, "needs Spark" in ended.text) == (1, True)


class SparkWanted(Exception):
    """A session was asked for."""


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def wanted(*_: object) -> None:
        raise SparkWanted

    monkeypatch.setattr(launch, "job_session", wanted)


class Died(Exception):
    """The process ended between a round and its entry in the file."""


def _die(*_: object) -> None:
    raise Died


def test_replay_sends_the_chosen_messages_once_however_often_it_is_run(
    spark: "SparkSession", shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyrocket.pipeline.jobs.replay.Sending", partial(Sending, round_s=0.5))  # of six, and two
    command = ["replay", "Orders", "--tag", "paid", "--to", "Again", "--rate", 12, "--progress", tmp_path / "p.json"]
    assert "8 messages would be sent" in _run(*command, *shop.cluster, "--dry-run").text
    assert shop.mq.messages("Again") == []
    with monkeypatch.context() as crash:
        crash.setattr(ReplayProgress, "advance", _die)
        with pytest.raises(Died):
            _run(*command, *shop.cluster)
    assert len(shop.mq.messages("Again")) == 6
    # All eight would fit into one round now; the sink knows that it has sent the six.
    ended = _run(*command, *shop.cluster, "--rate", 1000)
    assert ended.code == 0, ended.text
    originals = {message.message_id: message for message in shop.mq.messages("Orders") if message.tags == "paid"}
    copies = shop.mq.messages("Again")
    assert sorted(copy.properties["REPLAY_ID"] for copy in copies) == sorted(originals)
    for copy in copies:
        original = originals[copy.properties["REPLAY_ID"]]
        assert (copy.body, copy.keys, copy.tags) == (original.body, original.keys, original.tags)
        assert copy.properties["color"] == "red"
        place = (original.topic, original.broker_name, original.queue_id, original.queue_offset)
        assert copy.properties["REPLAY_FROM"] == "/".join(map(str, place))
    assert "0 messages sent; 8 in all runs" in _run(*command, *shop.cluster).text


@pytest.mark.slow
def test_replay_takes_the_backlog_of_a_group_and_dead_letters(
    spark: "SparkSession", shop: Shop, tmp_path: Path
) -> None:
    backlog = ["replay", "Orders", "--group", "Billing", "--to", "Wide", "--progress", tmp_path / "backlog.json"]
    assert "5 messages would be sent" in _run(*backlog, *shop.cluster, "--dry-run").text
    ended = _run(*backlog, "--store", shop.store, *shop.cluster)
    assert ended.code == 0, ended.text
    assert sorted(copy.keys[0] for copy in shop.mq.messages("Wide")) == [f"late-{n}" for n in range(5)]
    buried = len(shop.mq.dead_letters("Billing"))
    ended = _run("replay", "--dlq", "Billing", "--to", "Wide", "--progress", tmp_path / "dlq.json", *shop.cluster)
    assert ended.code == 0, ended.text
    letters = [copy for copy in shop.mq.messages("Wide") if copy.keys == ["o-3"]]
    assert len(letters) == buried
    assert all("SKY_DLQ_ERROR" not in letter.properties for letter in letters), "it begins a new life"


def test_dedupe_writes_the_latest_order_of_each_key(spark: "SparkSession", shop: Shop, tmp_path: Path) -> None:
    clean = tmp_path / "clean"
    ended = _run(
        *("dedupe", "Orders", "--by", "json:$.order.id", "--keep", "latest", "--store", shop.store),
        *("--to-parquet", clean, "--out", tmp_path / "report"),
    )
    assert ended.code == 2, ended.text
    kept: list[dict[str, Any]] = pq.read_table(clean).to_pylist()
    bodies = [json.loads(row["body"]) for row in kept if row["body"] != b"late"]
    assert sorted(body["n"] for body in bodies) == list(range(8, 16))
    assert len(kept) == 8 + 5, "what has no such key stays"
    assert len(_rows(tmp_path / "report", "duplicates")) == 8
    for _ in range(2):
        to_topic = ["--to-topic", "Clean", "--checkpoint", tmp_path / "ck", *shop.cluster]
        assert _run("dedupe", "Orders", "--store", shop.store, *to_topic).code == 2
    assert sorted(record.keys[0] for record in shop.mq.messages("Clean")) == KEYS


@pytest.mark.slow
def test_dedupe_as_a_stream_keeps_the_first_order_of_each_key(
    spark: "SparkSession", shop: Shop, tmp_path: Path
) -> None:
    command = ["dedupe", "Orders", "--keep", "first", "--stream", "--once", "--checkpoint", tmp_path / "ck"]
    for _ in range(2):
        ended = _run(*command, "--to-parquet", tmp_path / "clean", *shop.cluster)
        assert ended.code == 0, ended.text
    kept: list[dict[str, Any]] = pq.read_table(tmp_path / "clean", columns=["keys", "body"]).to_pylist()
    assert sorted(row["keys"] for row in kept) == KEYS
