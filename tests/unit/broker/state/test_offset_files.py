"""Consumer offsets in one file, and in two where RocketMQ with enableLmq had the store."""

from pathlib import Path

from skyrocket.broker.state.offset_files import OffsetFiles
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import CONSUMER_OFFSETS, ConsumerOffsets
from skyrocket.model.data_version import DataVersion
from skyrocket.store.disk import Disk


def files(directory: Path) -> OffsetFiles:
    return OffsetFiles(Disk(), str(directory / "consumerOffset.json"), str(directory / "lmqConsumerOffset.json"))


def write(path: Path, timestamp: int, offsets: dict[str, dict[int, int]], light: dict[str, int] | None = None) -> None:
    content = ConsumerOffsets(DataVersion(timestamp=timestamp), offsets, light_offsets=light)
    path.write_bytes(CONSUMER_OFFSETS.encode(content, Dialect.V5_4))


def test_without_the_file_of_light_queues_there_is_one_file(tmp_path: Path) -> None:
    one = files(tmp_path)
    assert one.load() is None
    one.save(ConsumerOffsets(offsets={"T@g": {0: 7}}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["consumerOffset.json"]


def test_the_offsets_of_all_groups_are_found_in_the_file_of_light_queues(tmp_path: Path) -> None:
    write(tmp_path / "lmqConsumerOffset.json", 5, {"T@g": {0: 7}, "%LMQ%$p$l@g": {0: 3}}, {"%LMQ%x@%LMQ%x": 2})
    loaded = files(tmp_path).load()
    assert loaded is not None
    assert loaded.offsets == {"T@g": {0: 7}, "%LMQ%$p$l@g": {0: 3}}
    assert loaded.light_offsets == {"%LMQ%x@%LMQ%x": 2}


def test_the_newer_of_two_files_leads_and_the_older_fills_up(tmp_path: Path) -> None:
    write(tmp_path / "consumerOffset.json", 9, {"T@g": {0: 7, 1: 1}})
    write(tmp_path / "lmqConsumerOffset.json", 5, {"T@g": {0: 6, 2: 2}, "U@g": {0: 1}}, {})
    loaded = files(tmp_path).load()
    assert loaded is not None
    assert loaded.offsets == {"T@g": {0: 7, 1: 1, 2: 2}, "U@g": {0: 1}}


def test_both_files_say_what_was_saved(tmp_path: Path) -> None:
    write(tmp_path / "lmqConsumerOffset.json", 5, {"T@g": {0: 7}}, {"%LMQ%x@%LMQ%x": 2})
    both = files(tmp_path)
    loaded = both.load()
    assert loaded is not None
    loaded.offsets["T@g"][0] = 8
    both.save(loaded)
    for name, light in (("consumerOffset.json", None), ("lmqConsumerOffset.json", {"%LMQ%x@%LMQ%x": 2})):
        saved = CONSUMER_OFFSETS.decode((tmp_path / name).read_bytes())
        assert (saved.offsets, saved.light_offsets) == ({"T@g": {0: 8}}, light)
