"""A log that is cut on purpose: its master went another way from there on."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.unit.store.stores import FILE_SIZE, small_config

_MESSAGES = 200  # some two files of the log


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A store that was closed, and where its records begin."""
    root = tmp_path_factory.mktemp("written")
    starts = []
    with MessageStore(root / "store", small_config()) as store:
        for number in range(_MESSAGES):
            result = store.put(PutMessage("Orders", number % 3, b"%d" % number + bytes(500), b"KEYS\x01k%d" % number))
            starts.append(result.physical_offset)
    assert starts[-1] > FILE_SIZE
    return root / "store", starts


@settings(max_examples=10)
@given(at=st.integers(0, _MESSAGES - 1))
def test_log_queues_and_index_end_where_the_log_was_cut(
    written: tuple[Path, list[int]], tmp_path_factory: pytest.TempPathFactory, at: int
) -> None:
    root = copy_of(written[0], tmp_path_factory)
    cut_at = written[1][at]
    store = MessageStore(root, small_config())
    report = store.open(cut_at=cut_at)
    try:
        assert report.end_offset == store.commit_log.written_offset == cut_at
        assert sum(store.max_offset("Orders", queue) for queue in range(3)) == at
        assert not store.query("Orders", f"k{at}")
        assert not at or len(store.query("Orders", f"k{at - 1}")) == 1
        store.put(PutMessage("Orders", at % 3, b"another", b"KEYS\x01other\x02"))
        store.dispatch()
        assert len(store.query("Orders", "other")) == 1
        assert sum(store.max_offset("Orders", queue) for queue in range(3)) == at + 1
    finally:
        store.close()
    with MessageStore(root, small_config()) as again:
        assert again.recovery is not None
        assert again.recovery.clean
        assert sum(again.max_offset("Orders", queue) for queue in range(3)) == at + 1


def test_what_was_cut_off_is_kept(written: tuple[Path, list[int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    root = copy_of(written[0], tmp_path_factory)
    cut_at = written[1][10]
    log = (root / "commitlog" / f"{0:020d}").read_bytes()
    store = MessageStore(root, small_config())
    store.open(cut_at=cut_at)
    store.close()
    kept = root / "skyrocket.cut" / f"{cut_at:020d}"
    assert (kept / f"{cut_at:020d}").read_bytes().rstrip(b"\0") == log[cut_at:].rstrip(b"\0")
    assert (kept / f"{FILE_SIZE:020d}").exists()


def test_only_what_is_shown_is_dispatched(tmp_path: Path) -> None:
    with MessageStore(tmp_path, small_config()) as store:
        first = store.put(PutMessage("Orders", 0, b"first"))
        store.shown_end = lambda: first.end_offset
        store.put(PutMessage("Orders", 0, b"second"))
        store.dispatch()
        assert store.max_offset("Orders", 0) == 1
        store.shown_end = None
        store.dispatch()
        assert store.max_offset("Orders", 0) == 2


def copy_of(source: Path, factory: pytest.TempPathFactory) -> Path:
    target = factory.mktemp("copy") / "store"
    shutil.copytree(source, target)
    return target
