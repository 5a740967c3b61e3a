"""Consumer offsets against a plain model, their resets, copies and their file."""

import logging
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyrocket.broker.state.consumer_offsets import NO_CORRECTION, ConsumerOffsetTable
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import CONSUMER_OFFSETS
from skyrocket.protocol.errors import InvalidParameter
from skyrocket.testing.clock import FakeClock
from tests.golden_store import GOLDEN
from tests.unit.broker.state.files import PATH, MemoryDisk, config_file


def table(clock: FakeClock, disk: MemoryDisk | None = None, version_step: int = 500) -> ConsumerOffsetTable:
    return ConsumerOffsetTable(config_file(CONSUMER_OFFSETS, disk), clock, version_step=version_step)


@pytest.fixture
def offsets(clock: FakeClock) -> ConsumerOffsetTable:
    return table(clock)


def test_commit_and_query(offsets: ConsumerOffsetTable) -> None:
    assert offsets.committed("g", "T", 0) is None
    assert not offsets.dirty
    assert offsets.commit("g", "T", 0, 7)
    assert offsets.dirty
    assert offsets.committed("g", "T", 0) == 7
    assert offsets.committed("g", "T", 1) is None
    assert offsets.committed("h", "T", 0) is None
    assert offsets.committed_queues("g", "T") == {0: 7}
    assert offsets.committed_queues("g", "U") == {}


@pytest.mark.requirement("C006")
def test_groups_do_not_influence_each_other(offsets: ConsumerOffsetTable) -> None:
    offsets.commit("fast", "T", 0, 1000)
    offsets.commit("slow", "T", 0, 1)
    offsets.reset("fast", "T", {0: 5})
    offsets.remove_group("fast")
    assert offsets.committed("slow", "T", 0) == 1
    assert offsets.groups_of("T") == ("slow",)


def test_going_back_is_taken_and_logged(offsets: ConsumerOffsetTable, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        offsets.commit("g", "T", 0, 7)
        offsets.commit("g", "T", 0, 7)
        assert not caplog.messages
        offsets.commit("g", "T", 0, -1)
    assert caplog.messages == ["consumer offset goes back group=g topic=T queue=0 from=7 to=-1"]
    assert offsets.committed("g", "T", 0) == -1


def test_missing_numbers(offsets: ConsumerOffsetTable) -> None:
    with pytest.raises(InvalidParameter) as refused:
        offsets.commit("g", "T", None, 1)
    assert refused.value.remark == "QueueId is null, topic is T"
    with pytest.raises(InvalidParameter) as refused:
        offsets.commit("g", "T", 0, None)
    assert refused.value.remark == "Offset is null, topic is T"


def test_the_data_version_counts_every_so_many_commits(clock: FakeClock) -> None:
    offsets = table(clock, version_step=3)
    counters = []
    for n in range(7):
        offsets.commit("g", "T", 0, n)
        counters.append(offsets.data_version.counter)
    assert counters == [0, 0, 1, 1, 1, 2, 2]


def test_a_reset_waits_for_the_next_pull_and_swallows_commits_until_then(offsets: ConsumerOffsetTable) -> None:
    offsets.commit("g", "T", 0, 90)
    offsets.commit("g", "T", 1, 91)
    offsets.reset("g", "T", {0: 10, 2: 12})
    assert not offsets.commit("g", "T", 0, 95)
    assert offsets.commit("g", "T", 1, 96)
    assert offsets.committed_queues("g", "T") == {0: 10, 1: 96, 2: 12}
    assert offsets.waiting_reset("g", "T", 0) == 10
    assert offsets.take_reset("g", "T", 0) == 10
    assert offsets.take_reset("g", "T", 0) is None
    assert offsets.take_reset("h", "T", 0) is None
    assert offsets.commit("g", "T", 0, 11)
    assert offsets.committed("g", "T", 0) == 11
    assert offsets.committed("g", "T", 2) == 12
    offsets.reset("g", "T", {})


def test_with_resets_through_clients_nothing_waits(clock: FakeClock) -> None:
    offsets = ConsumerOffsetTable(config_file(CONSUMER_OFFSETS), clock, server_side_reset=False)
    offsets.reset("g", "T", {0: 10})
    assert offsets.commit("g", "T", 0, 95)
    assert offsets.committed("g", "T", 0) == 95
    assert offsets.take_reset("g", "T", 0) is None


def test_pull_offsets_are_apart_and_not_saved(offsets: ConsumerOffsetTable) -> None:
    offsets.note_pull("g", "T", 0, 40)
    assert offsets.pulled("g", "T", 0) == 40
    assert offsets.pulled("g", "T", 1) is None
    assert not offsets.dirty
    assert offsets.content().offsets == {}
    offsets.remove("g", "T")
    assert offsets.pulled("g", "T", 0) is None


def test_clone(offsets: ConsumerOffsetTable) -> None:
    for topic in ("T", "U"):
        offsets.commit("g", topic, 0, 7)
    offsets.commit("h", "T", 5, 5)
    offsets.clone("g", "h", ["T", "no such"])
    assert offsets.committed_queues("h", "T") == {0: 7}
    assert offsets.topics_of("h") == ("T",)
    offsets.clone("g", "h")
    offsets.clone("g", "g")
    assert offsets.topics_of("h") == offsets.topics_of("g") == ("T", "U")
    offsets.commit("h", "T", 0, 9)
    assert offsets.committed("g", "T", 0) == 7


@pytest.mark.parametrize(
    ("committed", "left_out", "corrections"),
    [
        ({"a": {0: 50}, "b": {0: 40}}, [], {0: 40}),
        ({"a": {0: 50}, "b": {0: 40}}, ["b"], {0: 50}),
        ({"a": {0: 50}, "b": {0: 9}}, [], {0: 50}),  # 9 is no longer in the queue
        ({"a": {0: 50}, "c": {0: 9}}, [], {0: NO_CORRECTION}),  # c is the group compared with
        ({"a": {0: 50}, "c": {0: 60, 1: 70}}, [], {0: 50, 1: 70}),
        ({}, [], {}),
    ],
)
def test_correction_offsets(
    offsets: ConsumerOffsetTable, committed: dict[str, dict[int, int]], left_out: list[str], corrections: dict[int, int]
) -> None:
    for group, queues in committed.items():
        for queue_id, offset in queues.items():
            offsets.commit(group, "T", queue_id, offset)
    assert offsets.correction_offsets("T", "c", left_out, lambda _queue_id: 10) == corrections
    assert set(offsets.groups_of("T")) == committed.keys()


def test_offsets_of_broadcast_groups_are_kept_under_a_name_of_their_own(offsets: ConsumerOffsetTable) -> None:
    offsets.commit("g@broadcast", "T", 0, 3)
    assert offsets.committed("g@broadcast", "T", 0) == 3
    assert offsets.committed("g", "T", 0) is None
    assert offsets.groups_of("T") == ()
    offsets.remove_topic("T")
    assert offsets.committed("g@broadcast", "T", 0) is None


@pytest.mark.requirement("A068")
@pytest.mark.parametrize(
    ("version", "dialect"), [("5.4.0", Dialect.V5_4), ("4.9.7", Dialect.V4_9)], ids=["5.4.0", "4.9.7"]
)
def test_golden_files_are_loaded_and_saved_as_they_were(clock: FakeClock, version: str, dialect: Dialect) -> None:
    written = (GOLDEN / version / "clean" / "config" / "consumerOffset.json").read_bytes()
    disk = MemoryDisk(**{PATH: written})
    offsets = ConsumerOffsetTable(config_file(CONSUMER_OFFSETS, disk, dialect), clock)
    offsets.load()
    assert offsets.committed("GroupOrderly", "TopicOrder", 0) == 72
    assert "TopicOrder" in offsets.topics_of("GroupOrderly")
    offsets.save()
    assert disk.files[PATH] == written


GROUPS, TOPICS, QUEUES = st.sampled_from("gh"), st.sampled_from("TU"), st.integers(0, 2)
OFFSETS = st.integers(0, 100)


class OffsetsLikeAModel(RuleBasedStateMachine):
    """Every operation against a dict of (group, topic, queue); a restart loses what was not saved, and all resets."""

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.disk = FakeClock(), MemoryDisk()
        self.table = table(self.clock, self.disk)
        self.model: dict[tuple[str, str, int], int] = {}
        self.saved: dict[tuple[str, str, int], int] = {}
        self.resets: dict[tuple[str, str, int], int] = {}

    @rule(group=GROUPS, topic=TOPICS, queue_id=QUEUES, offset=OFFSETS)
    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        taken = self.table.commit(group, topic, queue_id, offset)
        assert taken == ((group, topic, queue_id) not in self.resets)
        if taken:
            self.model[group, topic, queue_id] = offset

    @rule(group=GROUPS, topic=TOPICS, wanted=st.dictionaries(QUEUES, OFFSETS))
    def reset(self, group: str, topic: str, wanted: dict[int, int]) -> None:
        self.table.reset(group, topic, wanted)
        changes = {(group, topic, queue_id): offset for queue_id, offset in wanted.items()}
        self.model |= changes
        self.resets |= changes

    @rule(group=GROUPS, topic=TOPICS, queue_id=QUEUES)
    def pull(self, group: str, topic: str, queue_id: int) -> None:
        assert self.table.take_reset(group, topic, queue_id) == self.resets.pop((group, topic, queue_id), None)

    @rule(source=GROUPS, copy=GROUPS, topic=TOPICS)
    def clone(self, source: str, copy: str, topic: str) -> None:
        self.table.clone(source, copy, [topic])
        copied = {queue: offset for (g, t, queue), offset in self.model.items() if (g, t) == (source, topic)}
        if copied:
            self._drop(key for key in self.model if key[:2] == (copy, topic))
            self.model |= {(copy, topic, queue): offset for queue, offset in copied.items()}

    @rule(topic=TOPICS)
    def remove_topic(self, topic: str) -> None:
        self.table.remove_topic(topic)
        self._drop(key for key in self.model if key[1] == topic)
        self.resets = {key: offset for key, offset in self.resets.items() if key[1] != topic}

    @rule(group=GROUPS)
    def remove_group(self, group: str) -> None:
        self.table.remove_group(group)
        self._drop(key for key in self.model if key[0] == group)
        self.resets = {key: offset for key, offset in self.resets.items() if key[0] != group}

    @rule()
    def save(self) -> None:
        if self.table.dirty:
            self.table.save()
        self.saved = dict(self.model)

    @rule()
    def restart(self) -> None:
        self.table = table(self.clock, self.disk)
        self.table.load()
        self.model, self.resets = dict(self.saved), {}

    def _drop(self, keys: Iterable[tuple[str, str, int]]) -> None:
        for key in list(keys):
            del self.model[key]

    @invariant()
    def same(self) -> None:
        for group in "gh":
            for topic in "TU":
                mine = {queue: offset for (g, t, queue), offset in self.model.items() if (g, t) == (group, topic)}
                for queue_id in range(3):
                    key = (group, topic, queue_id)
                    assert self.table.committed(*key) == self.resets.get(key, mine.get(queue_id))
                assert self.table.committed_queues(group, topic) == mine
            assert set(self.table.topics_of(group)) == {t for g, t, _ in self.model if g == group}
        for topic in "TU":
            assert set(self.table.groups_of(topic)) == {g for g, t, _ in self.model if t == topic}
        assert self.table.dirty or self.model == self.saved


TestOffsetsLikeAModel = OffsetsLikeAModel.TestCase
TestOffsetsLikeAModel.settings = settings(max_examples=60, stateful_step_count=30)
