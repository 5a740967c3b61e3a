"""Jobs and pipeline files with a namespace: what they read and send is that of the namespace."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.cli.pipeline.options import JobClusterOptions
from skyrocket.client import DeadLetter, Message, ReceivedMessage, blocking
from skyrocket.client.core.names import wrap
from skyrocket.pipeline.declared import load
from skyrocket.pipeline.declared.problems import PipelineFileError
from skyrocket.pipeline.declared.topics_check import check_topics, cluster_settings
from skyrocket.pipeline.jobs.lag.samples import watch
from skyrocket.pipeline.schema import spark_schema
from skyrocket.pipeline.topic_sink.settings import sink_settings
from skyrocket.pipeline.topic_source.batch import TopicReader
from skyrocket.testing import LocalCluster
from tests.pipeline.topics import filled, numbers, rows_of, stream_reader
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module")
def mq() -> Iterator[LocalCluster]:
    with LocalCluster() as cluster:
        for name in ("Orders", "A%Orders"):
            cluster.create_topic(name, queues=1)
        yield cluster


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["pipeline", *map(str, arguments)], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dlq", "--store", "s"], "--store has full names: leave it out and write A%orders"),
        (["trace", "--archive", "a"], "--archive has full names"),
        (["lag", "Billing", "--store", "s"], "--store has full names"),
        (["replay", "Orders", "--to", "Again", "--store", "s"], "also for --to"),
    ],
)
def test_what_a_namespace_cannot_mean_is_told(arguments: list[str], said: str) -> None:
    code, text = run(*arguments, "--namespace", "A")
    assert code == 1
    assert said in text


def test_the_options_of_a_command_mean_the_namespace_for_reading_and_for_sending(mq: LocalCluster) -> None:
    options = JobClusterOptions(mq.name_server_address, namespace="A").spark_options()
    mq.create_topic("A%Few", queues=1)
    filled(mq, "A%Few", 3)
    reader = TopicReader({**options, "subscribe": "Few"}, spark_schema(None))
    assert numbers(rows_of(reader, reader.partitions())) == [0, 1, 2]
    assert sink_settings({**options, "topic": "Few"}, is_stream=False).topic == "A%Few"


@pytest.mark.slow
def test_dead_letters_of_a_namespace_are_sent_again_into_it(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path
) -> None:
    bury(mq, "", b"of nobody")
    bury(mq, "A", b"of A")
    common = ["replay", "--dlq", "Burying", "-n", mq.name_server_address]
    code, text = run(*common, "--namespace", "A", "--progress", tmp_path / "a.json")
    assert code == 0, text
    buried = len(mq.dead_letters("A%Burying"))  # one; on a busy machine a repetition may have come as well
    assert f"{buried} messages sent" in text
    assert [message.body for message in mq.messages("A%Orders")] == [b"of A"] * (1 + buried)
    assert [message.body for message in mq.messages("Orders")] == [b"of nobody"]
    code, text = run(*common, "--progress", tmp_path / "a.json", "--dry-run")
    assert code == 1
    assert "belongs to another replay, which differs in namespace" in text


def bury(mq: LocalCluster, namespace: str, body: bytes) -> None:
    """Make it a dead letter of the group Burying."""
    client = replace(mq.client_settings, namespace=namespace)
    group = wrap(namespace, "Burying")
    mq.create_group(group)

    def give_up(_: ReceivedMessage) -> None:
        raise DeadLetter("no use")

    consumer = blocking.PushConsumer("Burying", client=client)
    consumer.subscribe("Orders", give_up)
    with consumer, blocking.Producer("Sending", client=client) as producer:
        producer.send(Message("Orders", body))
        wait_until(lambda: mq.dead_letters(group), "the message is buried", seconds=PATIENCE_SECONDS)


def test_without_names_the_groups_of_the_namespace_are_sampled_and_no_others(mq: LocalCluster) -> None:
    for namespace in ("A", "B"):
        mq.create_topic(f"{namespace}%Sampled", queues=1)
        filled(mq, f"{namespace}%Sampled", 3)
        reader = stream_reader(mq, subscribe="Sampled", namespace=namespace, consumerGroup=f"Group{namespace}")
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        reader.latestOffset(end, reader.getDefaultReadLimit())  # tells the progress of the batch that has ended
    settings = JobClusterOptions(mq.name_server_address, namespace="B").settings()
    found = watch(settings, (), ("Sampled",))
    assert [(sample.group, sample.topic) for sample in found] == [("GroupB", "Sampled")]


@pytest.mark.slow
def test_the_backlog_of_a_group_is_that_of_the_namespace(
    spark: "SparkSession", mq: LocalCluster, tmp_path: Path
) -> None:
    mq.create_topic("A%Slow", queues=1)
    filled(mq, "A%Slow", 3)
    reader = stream_reader(mq, subscribe="Slow", namespace="A", consumerGroup="Billing")
    end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert len(rows_of(reader, reader.partitions(reader.initialOffset(), end))) == 3
    filled(mq, "A%Slow", 2, first=3)
    reader.latestOffset(end, reader.getDefaultReadLimit())  # tells the progress of the batch that has ended
    code, text = run("lag", "Billing", "-n", mq.name_server_address, "--namespace", "A", "--out", tmp_path)
    assert code == 0, text
    (row,) = pq.read_table(tmp_path / "groups.parquet").to_pylist()
    assert (row["group"], row["topic"], row["messages"]) == ("Billing", "Slow", 2)
    assert row["seconds"] is not None, "the message at which the group stands was read"


def test_parts_of_a_pipeline_file_have_namespaces_of_their_own(mq: LocalCluster, tmp_path: Path) -> None:
    file = tmp_path / "p.yml"
    text = """name: x
source: {subscribe: 'Orders,Order', namespace: A, decode: {format: json, schema: id string}}
sinks: [{topic: Orders, accessKey: k, secretKey: s}, {name: other, topic: Paid, namespace: B}]
onError: {malformed: dlq, topic: Bad}
"""
    file.write_text(text)
    located = load(file)
    settings = cluster_settings(located.pipeline, mq.name_server_address)
    assert settings.credentials is not None, "a namespace alone is no account"
    with mq.admin() as admin, pytest.raises(PipelineFileError) as caught:
        check_topics(located.pipeline, located.locations, admin)
    causes = [str(problem) for problem in caught.value.problems]
    missing = [cause.partition(": ")[2].partition(" does not exist")[0] for cause in causes]
    assert missing == ["topic A%Order", "topic B%Paid", "topic A%Bad"]
    file.write_text(text.replace(",Order'", "'") + "createTopics: true\n")
    located = load(file)
    with mq.admin() as admin:
        check_topics(located.pipeline, located.locations, admin)
        assert {"B%Paid", "A%Bad"} <= set(admin.topics())
    file.write_text(text.replace("namespace: A", "namespce: A"))
    with pytest.raises(PipelineFileError, match="namespace"):
        load(file)
