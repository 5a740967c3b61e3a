"""topics.json with its journal: new topics survive a kill before the save, deleted ones stay deleted."""

from pathlib import Path

from skyrocket.broker.state.topic_file import TopicFile
from skyrocket.broker.state.topics import TopicTable
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.disk import Disk
from skyrocket.testing.clock import FakeClock


def opened(folder: Path) -> TopicTable:
    """As a broker opens it."""
    file = TopicFile(Disk(), str(folder / "topics.json"))
    table = TopicTable(file, FakeClock(), [], auto_create=True, save_at_once=False)
    table.load()
    table.on_change(lambda configs: file.note(table.data_version, configs))
    return table


def test_a_topic_survives_a_kill_before_the_first_save(tmp_path: Path) -> None:
    first = opened(tmp_path)
    first.update(TopicConfig("A", 4, 4))
    again = opened(tmp_path)
    assert again.topics == first.topics
    assert again.data_version == first.data_version


def test_topics_after_the_last_save_are_added_to_those_before_it(tmp_path: Path) -> None:
    table = opened(tmp_path)
    table.update(TopicConfig("A", 4, 4))
    table.save()
    assert (tmp_path / "topics.journal").read_bytes() == b""
    table.update(TopicConfig("B", 2, 2))
    table.update(TopicConfig("A", 8, 8))
    assert {name: config.read_queues for name, config in opened(tmp_path).topics.items()} == {"A": 8, "B": 2}


def test_a_topic_created_while_the_file_is_written_is_kept(tmp_path: Path) -> None:
    table = opened(tmp_path)
    table.update(TopicConfig("A"))
    write = table.begin_save()
    table.update(TopicConfig("B"))
    write()
    assert set(opened(tmp_path).topics) == {"A", "B"}


def test_a_topic_deleted_in_a_saved_version_does_not_come_back(tmp_path: Path) -> None:
    table = opened(tmp_path)
    table.update(TopicConfig("A"))
    table.delete("A")
    write = table.begin_save()
    table.update(TopicConfig("B"))
    write()  # the journal keeps both lines
    assert set(opened(tmp_path).topics) == {"B"}


def test_a_damaged_last_line_is_passed_over(tmp_path: Path) -> None:
    table = opened(tmp_path)
    table.update(TopicConfig("A"))
    with open(tmp_path / "topics.journal", "ab") as journal:
        journal.write(b'{"dataVersion":{"cou')
    assert set(opened(tmp_path).topics) == {"A"}
