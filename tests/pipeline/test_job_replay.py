"""The job `replay`: what is chosen, what it becomes, in which rounds it is sent, and what is remembered."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import ConfigError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.jobs import replay
from skyrocket.pipeline.jobs.replay.progress import default_path, open_progress
from skyrocket.pipeline.jobs.replay.rounds import Portion, portions
from skyrocket.pipeline.jobs.replay.sending import of_round
from skyrocket.pipeline.jobs.replay.steps import outgoing, unconsumed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.timeout(300)  # the first test of a process starts Spark, perhaps on a busy machine

NOW = 1_800_000_000_000
SCHEMA = (
    "topic string, brokerName string, queueId int, queueOffset long, msgId string, uniqKey string, keys string, "
    "tags string, ms long, body binary, properties map<string,string>"
)
IDENTITY = {"from": "the cluster of x:1", "topics": "Orders", "to": "Again"}
queues = st.builds(MessageQueue, st.sampled_from(["t", "u"]), st.sampled_from(["a", "b"]), st.integers(0, 4))


def _rows(spark: "SparkSession") -> "DataFrame":
    def row(topic: str, queue: int, offset: int, tags: str | None, body: bytes = b"x", **properties: str) -> Any:
        ids = (f"id-{queue}-{offset}", f"U-{queue}-{offset}", f"o-{offset} all")
        return (topic, "a", queue, offset, *ids, tags, NOW + offset, body, properties)

    system: Any = {"UNIQ_KEY": "U-0-0", "KEYS": "o-0 all", "WAIT": "true", "DELAY": "3", "SKY_DLQ_ERROR": "KeyError"}
    rows = [
        row("Orders", 0, 0, "paid", **system, __SHARDINGKEY="c-7", color="red"),
        row("Orders", 0, 1, "new"),
        row("Orders", 0, 2, "paid", b""),
        row("Orders", 1, 5, "paid", REPLAY_FROM="Orders/a/0/0", REPLAY_ID="U"),
        row("%DLQ%Billing", 0, 0, "paid", RETRY_TOPIC="Orders"),
        row("%DLQ%Billing", 0, 1, "paid"),
    ]
    return spark.createDataFrame(rows, SCHEMA).selectExpr("* except (ms)", "timestamp_millis(ms) AS storeTimestamp")


def test_messages_are_chosen_and_become_what_the_sink_takes(spark: "SparkSession") -> None:
    messages = _rows(spark).cache()
    listed = spark.createDataFrame(
        [("Orders", "a", 0, 1)], "topic string, brokerName string, queueId int, queueOffset long"
    )
    orders = messages.where("topic = 'Orders'")
    chosen = replay.chosen(orders, replay.Choice(keys=["o-1", "o-5"]))
    assert sorted(row.queueOffset for row in chosen.collect()) == [1, 5]
    assert replay.chosen(orders, replay.Choice(tags=["paid"]), listed).count() == 0
    assert replay.chosen(orders, replay.Choice(tags=["new"]), listed).count() == 1
    assert unconsumed(spark, orders, {("Orders", 0): 1}).count() == 2

    sent = {row.messageId: row for row in outgoing(messages, "Orders").collect()}
    first = sent["Orders/a/0/0"]
    assert (first.keys, first.tags, first.shardingKey, first.refused) == ("o-0 all", "paid", "c-7", None)
    assert first.properties == {"color": "red", "REPLAY_FROM": "Orders/a/0/0", "REPLAY_ID": "U-0-0"}
    assert "no body" in sent["Orders/a/0/2"].refused
    assert "copy of a replay" in sent["Orders/a/1/5"].refused
    back = {row.messageId: row for row in outgoing(messages.where("topic LIKE '%DLQ%'"), None).collect()}
    assert back["%DLQ%Billing/a/0/0"].topic == "Orders", "a letter goes where it came from"
    assert "give --to" in back["%DLQ%Billing/a/0/1"].refused


def test_a_dry_run_counts_and_a_later_run_takes_the_rest(spark: "SparkSession", tmp_path: Path) -> None:
    progress = open_progress(tmp_path / "p.json", IDENTITY)
    messages = _rows(spark).where("topic = 'Orders'")
    report = replay.run(spark, messages, "Again", progress, None)
    counts = {(row["to"], row["queueId"]): row["messages"] for row in report.tables["messages"].to_pylist()}
    assert counts == {("Again", 0): 2, ("Again", 1): 1}
    assert [row["queueOffset"] for row in report.tables["refused"].to_pylist()] == [2]
    assert (report.findings, report.facts["planned"]) == (1, 3)
    assert not progress.path.exists(), "a dry run remembers nothing"
    progress.advance({MessageQueue("Orders", "a", 0): 1}, 1)
    report = replay.run(spark, messages, "Again", open_progress(progress.path, IDENTITY), None)
    assert (report.facts["planned"], report.facts["sentInAllRuns"]) == (2, 1)


def test_the_rows_of_a_round_have_the_time_of_their_portion(spark: "SparkSession") -> None:
    first, second = MessageQueue("Orders", "a", 0), MessageQueue("Orders", "a", 1)
    rows = [(*queue, number, f"{queue.queue_id}-{number}") for queue in (first, second) for number in range(7)]
    names = "from_topic string, from_brokerName string, from_queueId int, _number int, name string"
    portions: list[Portion] = [{first: (1, 3), second: (0, 1)}, {second: (1, 4)}, {first: (3, 5)}]
    found = of_round(spark.createDataFrame(rows, names), spark, portions, replay.Sending({}, rate=40)).collect()
    assert sorted((row.sendAfter, row.name) for row in found) == [
        *((0, "0-1"), (0, "0-2"), (0, "1-0")),
        *((50, "1-1"), (50, "1-2"), (50, "1-3")),
        *((100, "0-3"), (100, "0-4")),
    ]


@given(st.dictionaries(queues, st.integers(0, 40), max_size=6), st.integers(1, 17))
def test_portions_take_every_message_once_in_order_and_use_the_rate(left: dict[MessageQueue, int], most: int) -> None:
    taken = dict.fromkeys(left, 0)
    remaining = sum(left.values())
    for cut in portions(left, most):
        count = 0
        for queue, (begin, end) in cut.items():
            assert begin == taken[queue] < end
            taken[queue] = end
            count += end - begin
        assert count == min(most, remaining)
        remaining -= count
    assert taken == left


@given(st.dictionaries(queues, st.tuples(st.integers(0, 9), st.integers(0, 30))), st.floats(1, 200))
def test_after_a_crash_the_first_round_is_the_one_that_was_begun(
    numbers: dict[MessageQueue, tuple[int, int]], rate: float
) -> None:
    begun = {queue: first for queue, (first, _) in numbers.items() if first}
    left = {queue: first + rest for queue, (first, rest) in numbers.items()}
    taken = dict.fromkeys(left, 0)
    for place, together in enumerate(replay.Sending({}, rate).rounds(left, begun)):
        for portion in together:
            for queue, (begin, end) in portion.items():
                assert begin == taken[queue] < end
                taken[queue] = end
        if begun and not place:
            assert taken == dict.fromkeys(left, 0) | begun
    assert taken == left


@given(st.lists(st.tuples(st.dictionaries(queues, st.integers(1, 50), max_size=4), st.integers(1, 9)), max_size=5))
def test_progress_survives_a_restart_at_any_point(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[dict[MessageQueue, int], int]]
) -> None:
    path = tmp_path_factory.mktemp("progress") / "p.json"
    expected: dict[MessageQueue, int] = {}
    names = set()
    for steps_done, (moves, count) in enumerate(steps):
        progress = open_progress(path, IDENTITY)
        assert progress.next_offsets == expected
        assert progress.sent == sum(count for _, count in steps[:steps_done])
        assert open_progress(path, IDENTITY).round_name == progress.round_name, "the same attempt has the same name"
        names.add(progress.round_name)
        ends = {queue: expected.get(queue, 0) + by for queue, by in moves.items()}
        progress.begin(ends)
        assert open_progress(path, IDENTITY) == progress, "also while a round is under way"
        assert progress.round_name in names
        for queue, by in moves.items():
            expected[queue] = expected.get(queue, 0) + by
        progress.advance({queue: expected[queue] for queue in moves}, count)
    assert len(names) == 1 + sum(bool(moves) for moves, _ in steps[:-1]) if steps else not names


def test_a_round_that_an_earlier_release_began_keeps_its_name(tmp_path: Path) -> None:
    progress = open_progress(tmp_path / "p.json", {"to": "Again"})
    progress.advance({MessageQueue("Orders", "a", 0): 7}, 3)
    assert progress.round_name == "82aa432f2ffe7934-34c94896e3bf2e9c"


def test_the_file_of_another_replay_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    open_progress(path, IDENTITY).advance({MessageQueue("Orders", "a", 0): 7}, 3)
    with pytest.raises(ConfigError, match="differs in to: choose another --progress"):
        open_progress(path, {**IDENTITY, "to": "Elsewhere"})
    assert open_progress(path, IDENTITY, again=True).next_offsets == {}
    path.write_text(json.dumps({"something": "else"}))
    with pytest.raises(ConfigError, match="not the progress of a replay"):
        open_progress(path, IDENTITY)


def test_each_replay_has_its_own_file() -> None:
    ours = default_path(IDENTITY, {"XDG_STATE_HOME": "/state"})
    assert ours.parent == Path("/state/skyrocket/replay")
    assert ours == default_path(dict(reversed(IDENTITY.items())), {"XDG_STATE_HOME": "/state"})
    assert ours != default_path({**IDENTITY, "to": "Elsewhere"}, {"XDG_STATE_HOME": "/state"})


def test_topics_of_the_system_are_no_target_and_a_rate_is_needed() -> None:
    for topic in ("%DLQ%Billing", "%RETRY%Billing", "SCHEDULE_TOPIC_XXXX"):
        with pytest.raises(ConfigError, match="topic of the system"):
            replay.checked_target(topic)
    with pytest.raises(ConfigError, match="--rate"):
        replay.Sending({}, 0)
