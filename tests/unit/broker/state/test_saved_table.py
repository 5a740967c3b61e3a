"""A table and its file: when it is dirty, and what a disk that fails leaves behind."""

from collections.abc import Sequence

import pytest

from skyrocket.broker.state.topics import TopicTable
from skyrocket.errors import CorruptFile
from skyrocket.format.config_files import TOPICS
from skyrocket.model.topic_config import TopicConfig
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.state.files import PATH, MemoryDisk, config_file


class FullDisk(MemoryDisk):
    """No byte more, until someone makes room."""

    is_full = True

    def write_file(self, path: str, data: bytes) -> None:
        if self.is_full:
            raise OSError(28, "No space left on device")
        super().write_file(path, data)


def saved_topics(disk: MemoryDisk) -> set[str]:
    return set(TOPICS.decode(disk.files[PATH]).topics)


def test_a_save_takes_the_table_as_it_was_when_it_began(clock: FakeClock) -> None:
    disk = MemoryDisk()
    topics = TopicTable(config_file(TOPICS, disk), clock, save_at_once=False)
    topics.update(TopicConfig("T"))
    write = topics.begin_save()
    assert not topics.dirty
    topics.update(TopicConfig("U"))
    write()
    assert saved_topics(disk) == {"T"}
    assert topics.dirty
    topics.save()
    assert saved_topics(disk) == {"T", "U"}
    assert not topics.dirty


def test_a_full_disk_refuses_the_change_but_the_topic_is_not_lost(clock: FakeClock) -> None:
    disk, heard = FullDisk(), list[Sequence[TopicConfig]]()
    topics = TopicTable(config_file(TOPICS, disk), clock)
    topics.on_change(heard.append)
    with pytest.raises(OSError, match="No space left"):
        topics.update(TopicConfig("T"))
    assert topics.dirty
    assert topics.find("T") == TopicConfig("T")
    assert heard == [[TopicConfig("T")]]
    disk.is_full = False
    topics.save()
    assert saved_topics(disk) == {"T"}


def test_a_damaged_file_is_not_taken_for_an_empty_one(clock: FakeClock) -> None:
    topics = TopicTable(config_file(TOPICS, MemoryDisk(**{PATH: b"{"})), clock)
    with pytest.raises(CorruptFile):
        topics.load()


def test_no_file_is_a_fresh_broker(clock: FakeClock) -> None:
    topics = TopicTable(config_file(TOPICS), clock, [TopicConfig("T")])
    topics.load()
    assert topics.topics == {"T": TopicConfig("T")}
    assert not topics.dirty
