"""The topic source's decisions, as pure functions: options, positions, limits, splits, losses. No JVM, no broker."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.client.consumer.queue_ranges import QueueRange, first_at_or_after
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.initial_offsets import remembered
from skyrocket.pipeline.topic_source.loss import DataLost, beyond_the_end, clamped, decide, losses_of
from skyrocket.pipeline.topic_source.offsets import BadOffsets, Bounds, Offsets, as_text, flat, nested
from skyrocket.pipeline.topic_source.positions import EARLIEST, LATEST, resolved
from skyrocket.pipeline.topic_source.settings import Subscribed, TopicSettings, read_settings
from skyrocket.pipeline.topic_source.splits import JOINED, backlog, capped, heads, limited, ranges_of, started, tasks_of
from skyrocket.pipeline.topic_source.stream import initial_offsets_location
from tests.loops import run_bounded

A0, A1, B0 = (MessageQueue("T", broker, number) for broker, number in (("a", 0), ("a", 1), ("b", 0)))
BOUNDS = {A0: Bounds(10, 100), A1: Bounds(0, 50), B0: Bounds(5, 5)}
QUEUES = st.builds(MessageQueue, st.sampled_from(["T", "Ü", "a.b"]), st.sampled_from(["a", "b"]), st.integers(0, 12))
OFFSETS = st.dictionaries(QUEUES, st.integers(0, 1 << 62))


def batch(**options: str) -> TopicSettings:
    given = {"namesrvAddr": "127.0.0.1:1", "subscribe": "T"} | options
    return read_settings({name: value for name, value in given.items() if value}, streaming=False)


def stream(**options: str) -> TopicSettings:
    given = {"namesrvAddr": "127.0.0.1:1", "subscribe": "T"} | options
    return read_settings({name: value for name, value in given.items() if value}, streaming=True)


class Known:
    """Facts without brokers: message n of every queue was stored at n * 10 ms."""

    def __init__(self, committed: Offsets | None = None) -> None:
        self._committed = committed or {}

    async def committed(self, queue: MessageQueue) -> int | None:
        return self._committed.get(queue)

    async def offset_at(self, queue: MessageQueue, at_ms: int, bounds: Bounds) -> int:
        return min(max(-(-at_ms // 10), bounds.low), bounds.high)


def start_of(options: TopicSettings, facts: Known | None = None) -> Offsets:
    return run_bounded(resolved(options.start, BOUNDS, facts or Known(), unnamed=EARLIEST))


def end_of(options: TopicSettings) -> Offsets:
    return run_bounded(resolved(options.end, BOUNDS, Known(), unnamed=LATEST))


# ── offsets as text ──────────────────────────────────────────────────────────────────────────────────────────────────


@given(OFFSETS)
def test_offsets_survive_their_text_whatever_the_order_of_queues(offsets: Offsets) -> None:
    assert flat(json.loads(as_text(offsets))) == offsets
    assert as_text(dict(reversed(offsets.items()))) == as_text(offsets)
    assert json.dumps(nested(offsets), sort_keys=True) == json.dumps(nested(offsets))


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"T": 3}',
        '{"T": {"a": {"x": 1}}}',
        '{"T": {"a": {"0": 1.5}}}',
        '{"T": {"a": {"0": true}}}',
        '{"T": {"a": {"0": -3}}}',
    ],
)
def test_what_is_no_offsets_is_refused(text: str) -> None:
    with pytest.raises(BadOffsets):
        flat(json.loads(text))


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"subscribe": ""}, 'needs exactly one of the options "subscribe", "subscribePattern", "assign"'),
        ({"subscribePattern": "T.*"}, "2 were given"),
        ({"subscribe": "", "subscribePattern": "T("}, "not a regular expression"),
        ({"subscribe": "", "assign": '{"T": {"a": 0}}'}, "list of queue numbers"),
        ({"subscribe": "", "assign": "{}"}, "names no queue"),
        ({"namesrvAddr": ""}, '"namesrvAddr" of format "rocketmq" is missing'),
        ({"startingOffset": "earliest"}, 'did you mean "startingOffsets"'),
        ({"startingOffsets": "latest"}, "nothing to read"),
        ({"startingOffsets": "oldest"}, "it is earliest, latest, group or JSON"),
        ({"startingOffsets": "group"}, '"consumerGroup" does not say which'),
        ({"endingOffsets": '{"T": {"a": {"0": -2}}}'}, "nothing would be read"),
        ({"endingOffsets": "earliest"}, "it is latest or JSON"),
        ({"startingTimestamp": "yesterday"}, "not a whole number"),
        ({"tags": "a", "sqlFilter": "x > 1"}, r'"tags" .* and option "sqlFilter" exclude each other; keep one of them'),
        ({"tags": "||"}, r'"tags" .* is "\|\|", which names no tag; write TagA \|\| TagB'),
        (
            {"sqlFilter": "x >"},
            r'"sqlFilter" .* is "x >", which is not an SQL92 condition: .*; write one over properties',
        ),
        ({"maxOffsetsPerTrigger": "5"}, "spark.readStream only"),
        ({"accessKey": "me"}, "secretKey"),
        ({"includeProperties": "true", "properties": "raw"}, "one of them"),
        ({"properties": "xml"}, "map, raw, none"),
    ],
)
def test_wrong_options_of_a_batch_are_told(options: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        batch(**options)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"endingOffsets": "latest"}, "spark.read only"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "more than maxOffsetsPerTrigger"),
        ({"maxOffsetsPerTrigger": "0"}, "at least 1"),
    ],
)
def test_wrong_options_of_a_stream_are_told(options: dict[str, str], what: str) -> None:
    with pytest.raises(OptionError, match=what):
        stream(**options)


def test_a_pattern_leaves_out_what_belongs_to_the_system_unless_it_says_so() -> None:
    names = ["Orders", "Orders2", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "%RETRY%g", "%DLQ%g"]
    assert Subscribed(pattern=".*").matching(names) == ("Orders", "Orders2")
    assert Subscribed(pattern="%DLQ%.*").matching(names) == ("%DLQ%g",)
    assert Subscribed(pattern="Order").matching(names) == ()


def test_tags_may_be_separated_by_commas_or_bars() -> None:
    assert batch(tags="a, b").wanted.tags == batch(tags="a || b").wanted.tags == ("a", "b")
    assert batch().wanted.expression == "*"


@pytest.mark.parametrize(
    ("options", "is_fixed"),
    [
        ({"startingOffsets": "earliest"}, True),
        ({"startingOffsets": '{"T": {"a": {"0": 3, "1": -2}}}'}, True),
        ({"startingOffsets": '{"T": {"a": {"0": -1}}}'}, False),
        ({}, False),
        ({"startingTimestamp": "1"}, False),
        ({"startingOffsets": "group", "consumerGroup": "g"}, False),
    ],
)
def test_a_start_that_moves_is_known_as_such(options: dict[str, str], is_fixed: bool) -> None:
    assert stream(**options).start.is_fixed is is_fixed


# ── where to begin and to end ────────────────────────────────────────────────────────────────────────────────────────


def test_earliest_and_latest_are_what_the_queues_hold() -> None:
    assert start_of(batch()) == {A0: 10, A1: 0, B0: 5}
    assert start_of(stream()) == end_of(batch()) == {A0: 100, A1: 50, B0: 5}


def test_offsets_in_json_may_be_first_last_or_missing() -> None:
    text = json.dumps({"T": {"a": {"0": 42, "1": -1}}})
    assert start_of(batch(startingOffsets=text)) == {A0: 42, A1: 50, B0: 5}
    assert end_of(batch(endingOffsets=text)) == {A0: 42, A1: 50, B0: 5}


def test_a_queue_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(OptionError, match=r"names T/c/0, which is not among .*T/a/0, T/a/1, T/b/0"):
        start_of(batch(startingOffsets='{"T": {"c": {"0": 1}}}'))


def test_a_group_begins_where_it_is_and_at_the_first_message_where_it_never_was() -> None:
    options = batch(startingOffsets="group", consumerGroup="g")
    assert start_of(options, Known({A0: 77})) == {A0: 77, A1: 0, B0: 5}


def test_times_beat_offsets_and_are_exclusive_at_the_end() -> None:
    options = batch(startingTimestamp="205", startingOffsets="{}", startingOffsetsByTimestampStrategy="latest")
    assert start_of(options) == {A0: 21, A1: 21, B0: 5}
    assert end_of(batch(endingTimestamp="300")) == {A0: 30, A1: 30, B0: 5}
    by_queue = batch(startingOffsetsByTimestamp='{"T": {"a": {"0": 500}}}')
    assert start_of(by_queue) == {A0: 50, A1: 0, B0: 5}


def test_a_time_that_nothing_is_as_new_as_is_an_error_or_the_end_as_the_strategy_says() -> None:
    with pytest.raises(OptionError, match=r"startingTimestamp.*no message that new.*Strategy"):
        start_of(batch(startingTimestamp="999999"))
    options = batch(startingTimestamp="999999", startingOffsetsByTimestampStrategy="latest")
    assert start_of(options) == {A0: 100, A1: 50, B0: 5}


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(-1, 45), st.integers(-5, 60), st.integers(0, 5))
def test_a_moment_is_found_exactly_whatever_the_broker_answers(
    times: list[int], at_ms: int, hint: int, low: int
) -> None:
    ordered = sorted(times)

    async def store_time(offset: int) -> int:
        return ordered[offset - low]

    found = run_bounded(first_at_or_after(at_ms, low, low + len(ordered), hint, store_time))
    assert found == low + sum(time < at_ms for time in ordered)


# ── how far a batch goes ─────────────────────────────────────────────────────────────────────────────────────────────


def test_new_queues_begin_at_their_first_message_and_vanished_ones_stay() -> None:
    before = {A0: 20, MessageQueue("T", "gone", 0): 7}
    start = started(before, BOUNDS)
    assert start == {A0: 20, A1: 0, B0: 5, MessageQueue("T", "gone", 0): 7}
    assert heads(start, BOUNDS) == {A0: 100, A1: 50, B0: 5, MessageQueue("T", "gone", 0): 7}
    assert backlog(start, heads(start, BOUNDS)) == 130


@given(st.dictionaries(QUEUES, st.tuples(st.integers(0, 1000), st.integers(0, 1000))), st.integers(1, 2000))
def test_a_limit_is_shared_by_backlog_and_leaves_nobody_out(
    queues: dict[MessageQueue, tuple[int, int]], most: int
) -> None:
    start = {queue: low for queue, (low, _) in queues.items()}
    end = {queue: low + count for queue, (low, count) in queues.items()}
    chosen = limited(start, end, most)
    waiting = [queue for queue in queues if end[queue] > start[queue]]
    assert chosen.keys() == end.keys()
    assert all(start[queue] <= chosen[queue] <= end[queue] for queue in queues)
    assert all(chosen[queue] > start[queue] for queue in waiting)
    assert backlog(start, chosen) <= max(most, 0) + len(waiting)
    if backlog(start, end) <= most:
        assert chosen == end


@given(OFFSETS, st.integers(1, 50))
@settings(max_examples=30)
def test_limited_batches_reach_the_end(ends: Offsets, most: int) -> None:
    end = {queue: offset % 200 for queue, offset in ends.items()}
    position = dict.fromkeys(end, 0)
    for _ in range(400):
        position = limited(position, end, most)
    assert position == end


def test_an_available_now_run_does_not_go_beyond_its_target() -> None:
    assert capped({A0: 9, A1: 3, B0: 4}, {A0: 5, A1: 6}) == {A0: 5, A1: 3}


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    st.dictionaries(QUEUES, st.tuples(st.integers(0, 50), st.integers(0, 50_000)), max_size=12),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 5_000),
)
def test_tasks_cover_every_offset_once_and_in_order(
    queues: dict[MessageQueue, tuple[int, int]], least: int | None, most: int | None
) -> None:
    start = {queue: low for queue, (low, _) in queues.items()}
    end = {queue: low + count for queue, (low, count) in queues.items()}
    ranges = ranges_of(start, end)
    tasks = tasks_of(ranges, least, most)
    pieces = [piece for task in tasks for piece in task]
    assert all(piece.end > piece.begin for piece in pieces)
    glued: list[QueueRange] = []
    for piece in pieces:
        if glued and glued[-1].queue == piece.queue and glued[-1].end == piece.begin:
            glued[-1] = glued[-1]._replace(end=piece.end)
        else:
            glued.append(piece)
    assert glued == ranges
    sizes = [sum(piece.end - piece.begin for piece in task) for task in tasks]
    if most is not None:
        assert all(size <= most for size in sizes)
    if least is not None:
        assert len(tasks) >= min(least, sum(sizes))
    assert tasks == tasks_of(ranges, least, most)


def test_small_ranges_share_a_task_and_big_ones_have_their_own() -> None:
    small = [QueueRange(MessageQueue("T", "a", number), 0, 25) for number in range(8)]
    assert tasks_of(small) == [tuple(small)]
    big = [QueueRange(MessageQueue("T", "a", number), 0, JOINED) for number in range(3)]
    assert tasks_of(big) == [(each,) for each in big]


# ── losses ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_offsets_that_retention_deleted_or_a_broker_lost_are_found() -> None:
    losses = losses_of({A0: 3, A1: 60, B0: 5, MessageQueue("T", "away", 0): 1}, BOUNDS)
    assert [loss.offsets for loss in losses] == [QueueRange(A0, 3, 10), QueueRange(A1, 50, 60)]
    with pytest.raises(
        DataLost, match=r"17 offsets are lost: topic T, broker a, queue 0, offsets 3 to 10.*failOnDataLoss"
    ):
        decide(losses, fails=True)
    assert clamped({A0: 3, A1: 60}, BOUNDS) == {A0: 10, A1: 50}


def test_losses_that_may_be_are_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    decide(losses_of({A0: 3}, BOUNDS), fails=False)
    assert "count=7" in caplog.text
    assert beyond_the_end({A0: 100, A1: 50}, BOUNDS) == []
    assert beyond_the_end({A0: 101}, BOUNDS)[0].offsets == QueueRange(A0, 100, 101)


# ── where a stream began ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_answer_is_the_answer_ever_after(tmp_path: Path) -> None:
    location = f"file://{tmp_path}/deep/start.json"
    assert remembered(location, lambda: {A0: 7}) == {A0: 7}
    assert remembered(location, lambda: pytest.fail("asked again")) == {A0: 7}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["start.json"]


def test_of_two_who_begin_at_once_one_wins_and_both_agree(tmp_path: Path) -> None:
    location = str(tmp_path / "start.json")

    def while_another_is_faster() -> Offsets:
        assert remembered(location, lambda: {A0: 1}) == {A0: 1}
        return {A0: 2}

    assert remembered(location, while_another_is_faster) == {A0: 1}


def test_a_location_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"nowhere://bucket/x cannot be used: .*; give a checkpoint"):
        remembered("nowhere://bucket/x", lambda: {A0: 1})
    broken = tmp_path / "start.json"
    broken.write_text("{")
    with pytest.raises(OptionError, match="cannot be read"):
        remembered(str(broken), dict)
    with pytest.raises(OptionError, match="cannot be"):
        remembered(str(broken / "below" / "x.json"), lambda: {A0: 1})


def test_a_file_of_another_machine_is_not_taken_for_one_of_this_one(tmp_path: Path) -> None:
    elsewhere = f"file://otherhost{tmp_path}/start.json"
    with pytest.raises(OptionError, match=f"names the machine otherhost.*write file://{tmp_path}/start.json"):
        remembered(elsewhere, lambda: pytest.fail("asked"))
    with pytest.raises(OptionError, match="names the machine otherhost"):
        initial_offsets_location(f"file://otherhost{tmp_path}", {"subscribe": "A"})
    assert list(tmp_path.iterdir()) == []
    assert remembered(f"file://localhost{tmp_path}/start.json", lambda: {A0: 1}) == {A0: 1}


def test_two_sources_of_one_query_have_files_of_their_own(tmp_path: Path) -> None:
    one = initial_offsets_location(str(tmp_path), {"subscribe": "A", "namesrvAddr": "x:1"})
    assert one != initial_offsets_location(str(tmp_path), {"subscribe": "B", "namesrvAddr": "x:1"})
    assert one == initial_offsets_location(str(tmp_path), {"SUBSCRIBE": "A", "namesrvAddr": "moved:1"})
