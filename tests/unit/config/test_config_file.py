"""Loading and saving one config file: the backup, damage, and a crash at every step."""

import logging
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile, DataError
from skyrocket.fastjson import Dialect
from skyrocket.format.config_files import TOPICS, Topics
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk

DAMAGED = b"\0\0\0\0"


def decoded(data: bytes) -> str:
    if not data.startswith(b"content "):
        raise DataError(f"expected content, found {data!r}")
    return data.decode()


class Crash(Exception):
    """The machine stopped."""


class CrashingDisk(Disk):
    """Stops before the n-th change of the disk."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def write_file(self, path: str, data: bytes) -> None:
        if self._steps == 0:
            super().write_file(path, data[: len(data) // 2])
        self._step()
        super().write_file(path, data)

    def rename(self, old: str, new: str) -> None:
        self._step()
        super().rename(old, new)

    def sync_directory(self, path: str) -> None:
        self._step()
        super().sync_directory(path)

    def _step(self) -> None:
        if self._steps == 0:
            raise Crash
        self._steps -= 1


STEPS_OF_A_SAVE = 4


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "topics.json"


def config_file(path: Path, disk: Disk | None = None) -> ConfigFile[str]:
    return ConfigFile(disk or Disk(), str(path), decoded, str.encode)


def backup(path: Path) -> Path:
    return path.with_name(path.name + ".bak")


def test_what_was_never_saved_is_none(path: Path) -> None:
    assert config_file(path).load() is None


def test_what_was_saved_is_loaded(path: Path) -> None:
    config_file(path).save("content 1")
    assert config_file(path).load() == "content 1"
    assert [file.name for file in path.parent.iterdir()] == ["topics.json"]


def test_a_save_keeps_the_content_of_before_as_backup(path: Path) -> None:
    for number in range(3):
        config_file(path).save(f"content {number}")
    assert path.read_bytes() == b"content 2"
    assert backup(path).read_bytes() == b"content 1"
    assert sorted(file.name for file in path.parent.iterdir()) == ["topics.json", "topics.json.bak"]


@pytest.mark.parametrize("main", [None, b"", DAMAGED], ids=["missing", "empty", "damaged"])
def test_the_backup_serves_when_the_file_cannot(
    path: Path, main: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    if main is not None:
        path.write_bytes(main)
    backup(path).write_bytes(b"content 1")
    with caplog.at_level(logging.WARNING):
        assert config_file(path).load() == "content 1"
    assert "taken from its backup" in caplog.text


@pytest.mark.parametrize("main", [b"", DAMAGED], ids=["empty", "damaged"])
@pytest.mark.parametrize("steps", range(STEPS_OF_A_SAVE))
def test_a_crash_while_saving_over_a_file_that_was_no_good_does_not_lose_the_backup(
    path: Path, main: bytes, steps: int
) -> None:
    path.write_bytes(main)
    backup(path).write_bytes(b"content 1")
    file = config_file(path, CrashingDisk(steps))
    assert file.load() == "content 1"
    with pytest.raises(Crash):
        file.save("content 2")
    assert config_file(path).load() in ("content 1", "content 2")


def test_a_file_that_was_no_good_is_kept_for_a_closer_look(path: Path) -> None:
    path.write_bytes(DAMAGED)
    backup(path).write_bytes(b"content 1")
    file = config_file(path)
    file.load()
    file.save("content 2")
    file.save("content 3")
    assert path.with_name("topics.json.damaged").read_bytes() == DAMAGED
    assert (path.read_bytes(), backup(path).read_bytes()) == (b"content 3", b"content 2")


@pytest.mark.parametrize(
    ("main", "bak", "named"),
    [
        (DAMAGED, None, "topics.json"),
        (DAMAGED, b"", "topics.json"),
        (DAMAGED, DAMAGED, "topics.json"),
        (None, DAMAGED, "topics.json.bak"),
        (b"", DAMAGED, "topics.json.bak"),
    ],
)
def test_bytes_that_cannot_be_read_are_never_taken_for_nothing(
    path: Path, main: bytes | None, bak: bytes | None, named: str
) -> None:
    for place, data in ((path, main), (backup(path), bak)):
        if data is not None:
            place.write_bytes(data)
    with pytest.raises(CorruptFile, match="Repair it, or put a good copy there") as caught:
        config_file(path).load()
    assert caught.value.path == str(path.with_name(named))
    assert "found b'\\x00" in caught.value.reason


@pytest.mark.parametrize("bak", [None, b""])
def test_files_without_a_byte_are_nothing(path: Path, bak: bytes | None) -> None:
    path.write_bytes(b"")
    if bak is not None:
        backup(path).write_bytes(bak)
    assert config_file(path).load() is None


@pytest.mark.parametrize("saves_before", range(3))
@pytest.mark.parametrize("steps", range(STEPS_OF_A_SAVE))
def test_a_crash_at_any_step_leaves_the_old_or_the_new_content(path: Path, saves_before: int, steps: int) -> None:
    for number in range(saves_before):
        config_file(path).save(f"content {number}")
    old = f"content {saves_before - 1}" if saves_before else None
    crashes = steps < (STEPS_OF_A_SAVE if saves_before else STEPS_OF_A_SAVE - 1)
    if crashes:
        with pytest.raises(Crash):
            config_file(path, CrashingDisk(steps)).save("content new")
    assert config_file(path).load() in (old, "content new")
    config_file(path).save("content after")
    assert config_file(path).load() == "content after"


def test_a_file_of_topics(path: Path) -> None:
    file = ConfigFile(Disk(), str(path), TOPICS.decode, lambda content: TOPICS.encode(content, Dialect.V5_4))
    content = Topics(topics={"T": TopicConfig("T")})
    file.save(content)
    assert file.load() == content
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFile, match="line 21, column 1: expected ',' or '}', found the end of the text"):
        file.load()
