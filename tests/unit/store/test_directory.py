"""The store directory: its tree, its lock against others, and the mark of an unclean stop."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.errors import StoreLocked
from skyrocket.format.store_names import is_directory_name, offset_name, parse_offset_name
from skyrocket.store.directory import StoreDirectory
from skyrocket.store.layout import StorePaths
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import Stores, UnforcedDisk, put, small_config


@pytest.mark.requirement("D001", "A001")
def test_the_directory_has_rocketmqs_tree(stores: Stores) -> None:
    store = stores.open()
    put(store, properties={"KEYS": "k"})
    store.dispatch()
    store.flush_queues()
    assert store.index is not None
    store.index.catch_up()
    names = {path.name for path in Path(store.paths.root).iterdir()}
    assert {"abort", "checkpoint", "commitlog", "config", "consumequeue", "index", "lock"} <= names
    assert names - {"abort", "checkpoint", "commitlog", "config", "consumequeue", "index", "lock"} == {
        "skyrocket.manifest"
    }


@pytest.mark.requirement("A005")
@pytest.mark.parametrize(
    ("offset", "name"),
    [(0, "00000000000000000000"), (1 << 30, "00000000001073741824"), ((1 << 63) - 1, "09223372036854775807")],
)
def test_offset_names_have_20_digits(offset: int, name: str) -> None:
    assert offset_name(offset) == name
    assert parse_offset_name(name) == offset


@pytest.mark.parametrize("name", ["", "0", "0" * 19, "0" * 21, "0" * 19 + "x", "٠" * 20, "-" + "0" * 19, "checkpoint"])
def test_other_names_are_no_offsets(name: str) -> None:
    assert parse_offset_name(name) is None


@pytest.mark.parametrize(
    ("name", "fits"), [("a", True), ("%LMQ%a", True), ("", False), (".", False), ("..", False), ("a/b", False)]
)
def test_names_that_can_be_directories(name: str, fits: bool) -> None:
    assert is_directory_name(name) is fits


# -- the mark ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("A022", "C156")
def test_the_mark_is_there_while_the_store_runs_and_gone_after_a_clean_stop(stores: Stores) -> None:
    store = stores.open()
    assert store.recovery is not None
    assert store.recovery.clean
    assert Path(store.paths.abort).read_text() == str(os.getpid())
    store.close()
    assert not Path(store.paths.abort).exists()
    Path(store.paths.abort).touch()
    store = stores.open()
    assert store.recovery is not None
    assert not store.recovery.clean


def test_the_mark_stays_when_the_store_could_not_finish(stores: Stores) -> None:
    class Broken(UnforcedDisk):
        error = False

        def sync(self, fd: int) -> None:
            if self.error:
                raise OSError(5, "Input/output error")

    disk = Broken()
    store = stores.open(disk=disk)
    put(store)
    disk.error = True
    store.close()
    assert Path(store.paths.abort).exists()
    disk.error = False
    assert stores.open().get("Orders", 0, 0).count == 1  # and the lock is free


# -- the lock ------------------------------------------------------------------------------------------------------


def second(store: MessageStore) -> MessageStore:
    return MessageStore(store.paths.root, small_config(), clock=FakeClock(), disk=UnforcedDisk())


@pytest.mark.requirement("A024")
def test_a_second_store_of_the_same_process_is_refused(stores: Stores, tmp_path: Path) -> None:
    store = stores.open()
    with pytest.raises(StoreLocked, match="in this process"):
        second(store).open()
    (tmp_path / "link").symlink_to(store.paths.root)
    with pytest.raises(StoreLocked):
        MessageStore(tmp_path / "link", small_config(), disk=UnforcedDisk()).open()
    assert put(store).ok
    store.close()
    again = second(store)
    again.open()
    again.close()


@pytest.mark.requirement("A024")
def test_another_process_is_kept_out_by_the_lock_that_java_takes(stores: Stores) -> None:
    store = stores.open()
    program = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "try:\n"
        "    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)\n"
        "except OSError:\n"
        "    sys.exit(7)\n"
    )
    attempt = [sys.executable, "-c", program, store.paths.lock]
    assert subprocess.run(attempt, check=False).returncode == 7
    assert Path(store.paths.lock).read_bytes() == b"lock"
    store.close()
    assert subprocess.run(attempt, check=False).returncode == 0


@pytest.mark.requirement("A024")
def test_a_store_that_another_process_holds_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "lock").write_bytes(b"lock")
    program = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        store = MessageStore(tmp_path, small_config(), disk=UnforcedDisk())
        with pytest.raises(StoreLocked, match="storePathRootDir"):
            store.open()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["lock"]
        holder.communicate()
    store = MessageStore(tmp_path, small_config(), disk=UnforcedDisk())
    store.open()
    store.close()


def test_a_store_that_cannot_be_opened_leaves_the_lock_free(tmp_path: Path) -> None:
    directory = tmp_path / "commitlog"
    directory.mkdir()
    (directory / "stray").write_bytes(b"x")
    store = MessageStore(tmp_path, small_config(), disk=UnforcedDisk())
    with pytest.raises(Exception, match="stray"):
        store.open()
    (directory / "stray").unlink()
    with open(tmp_path / "lock", "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(file, fcntl.LOCK_UN)
    directory_lock = StoreDirectory(UnforcedDisk(), StorePaths(str(tmp_path)))
    directory_lock.lock()
    directory_lock.unlock()
