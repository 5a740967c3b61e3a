"""Index files that were not whole when their process died: the next start rebuilds them, and the inspector says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from skyrocket.format.index_layout import HEADER_SIZE, entry_position, slot_position
from skyrocket.inspector.findings import Finding, FindingKind, Severity
from skyrocket.inspector.settings import InspectionSettings, inspection_settings
from skyrocket.inspector.verify import verify
from skyrocket.offline.store_files import find_store_files
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import Stores, put

SLOTS, ENTRIES, RECORDS = 50, 30, 40  # one full file and the beginning of another
SETTINGS = inspection_settings(None, [f"maxHashSlotNum={SLOTS}", f"maxIndexNum={ENTRIES}"])


def findings(root: Path, severity: Severity, settings: InspectionSettings = SETTINGS) -> list[Finding]:
    return [each for each in verify(find_store_files(root), settings).findings if each.severity is severity]


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """A store that was closed in order, with two index files."""
    stores = Stores(tmp_path, FakeClock())
    store = stores.open(index_entries=ENTRIES, index_tags=False)
    for number in range(RECORDS):
        put(store, properties={"KEYS": f"k{number}"})
        stores.clock.advance(seconds=1)
    store.close()
    return stores


@pytest.fixture
def root(stores: Stores, tmp_path: Path) -> Path:
    found = tmp_path / "store"
    assert len(list((found / "index").iterdir())) == 2
    assert findings(found, Severity.ERROR) == []
    return found


def overwrite(file: Path, position: int, data: bytes) -> None:
    old = file.read_bytes()
    file.write_bytes(old[:position] + data + old[position + len(data) :])


TORN: list[Callable[[Path], object]] = [
    lambda file: overwrite(file, slot_position(0), bytes(SLOTS * 4)),  # this page was never written
    lambda file: overwrite(file, entry_position(SLOTS, 3), bytes(60)),
    lambda file: overwrite(file, entry_position(SLOTS, 2) + 4, b"\xff" * 8),
    lambda file: overwrite(file, 0, bytes(HEADER_SIZE)),
    lambda file: overwrite(file, 16, b"\xff" * 8),  # a header that cannot be true
    lambda file: file.write_bytes(file.read_bytes()[:100]),
    lambda file: file.write_bytes(b""),
]


@pytest.mark.parametrize("tear", TORN, ids=["slots", "entries", "offset", "header", "untrue header", "short", "empty"])
def test_a_torn_index_of_a_store_that_was_not_stopped_in_order_is_mended_by_the_next_start(
    tear: Callable[[Path], object], stores: Stores, root: Path
) -> None:
    newest = max((root / "index").iterdir())
    tear(newest)
    assert findings(root, Severity.ERROR), "closed in order, it stays an error"
    (root / "abort").touch()
    assert findings(root, Severity.ERROR) == []
    warnings = [each for each in findings(root, Severity.WARNING) if each.file == f"index/{newest.name}"]
    assert any("the next start rebuilds it" in each.remedy for each in warnings), warnings
    stores.open(index_entries=ENTRIES, index_tags=False).close()
    assert findings(root, Severity.ERROR) + findings(root, Severity.WARNING) == []


def test_a_whole_file_that_the_start_keeps_is_damaged_all_the_same(root: Path) -> None:
    (root / "abort").touch()
    overwrite(min((root / "index").iterdir()), slot_position(0), bytes(SLOTS * 4))
    assert FindingKind.INDEX_CHAIN in {each.kind for each in findings(root, Severity.ERROR)}


def test_a_full_file_that_was_cut_short_is_not_called_rebuilt_where_nobody_said_how_large_files_are(root: Path) -> None:
    (root / "abort").touch()
    oldest = min((root / "index").iterdir())
    oldest.write_bytes(oldest.read_bytes()[:100])
    errors = findings(root, Severity.ERROR, inspection_settings(None, []))
    assert (FindingKind.INDEX_SHAPE, f"index/{oldest.name}") in {(each.kind, each.file) for each in errors}


def test_what_a_running_process_has_is_not_called_rebuilt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "abort").touch()
    overwrite(max((root / "index").iterdir()), slot_position(0), bytes(SLOTS * 4))
    monkeypatch.setattr("skyrocket.inspector.index_check.lock_holder", lambda lock: 4711)
    monkeypatch.setattr("skyrocket.inspector.index_check._PAUSE_SECONDS", 0.0)
    assert FindingKind.INDEX_CHAIN in {each.kind for each in findings(root, Severity.ERROR)}
