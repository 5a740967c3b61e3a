"""Stores in order that once looked damaged, and property texts that once passed unseen."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.format.record import PHYSICAL_OFFSET_AT, field_offset
from skyrocket.inspector import index_check
from skyrocket.inspector.findings import Finding, FindingKind, Severity
from skyrocket.inspector.settings import inspection_settings
from skyrocket.inspector.verify import verify
from skyrocket.offline.index_files import IndexContent, IndexShape, read_index_file
from skyrocket.offline.store_files import find_store_files
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import PutStatus
from skyrocket.testing.clock import FakeClock
from tests.unit.inspector.conftest import Copies
from tests.unit.store.stores import Stores, UnforcedDisk, message, put

SETTINGS = inspection_settings(None, ["maxHashSlotNum=50", "maxIndexNum=1000"])


def findings(root: Path) -> list[Finding]:
    return list(verify(find_store_files(root), SETTINGS).findings)


def test_a_deleted_topic_and_a_kill_are_in_order(tmp_path: Path) -> None:
    stores = Stores(tmp_path, FakeClock())
    store = stores.open()
    for topic in ("Orders", "Gone"):
        for _ in range(5):
            put(store, topic=topic)
    store.dispatch()
    store.flush_queues()
    store.removal.remove_topic("Gone")
    put(store, topic="Gone")  # made again: its numbers begin at 0
    store.close()
    (tmp_path / "store" / "abort").touch()  # as a kill leaves it
    found = {finding.kind for finding in findings(tmp_path / "store") if finding.severity is not Severity.NOTE}
    assert found <= {FindingKind.INDEX_ABSENT}  # these messages have no keys


class CrowdedDisk(UnforcedDisk):
    """A disk that may have no more blocks."""

    full = False

    def allocate(self, fd: int, position: int, length: int) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().allocate(fd, position, length)


def test_a_put_that_was_refused_has_left_no_time_behind(tmp_path: Path) -> None:
    disk = CrowdedDisk()
    stores = Stores(tmp_path, FakeClock())
    store = stores.open(disk=disk)
    put(store)
    disk.full = True
    stores.clock.advance(ms=5)
    assert store.put(message(b"x" * 20_000)).status is PutStatus.CREATE_MAPPED_FILE_FAILED
    disk.full = False
    store.close()
    assert [finding for finding in findings(tmp_path / "store") if finding.severity is Severity.ERROR] == []


def test_properties_that_are_not_text_or_have_no_value_are_named(tmp_path: Path) -> None:
    stores = Stores(tmp_path, FakeClock())
    store = stores.open()
    texts = [b"a\x01b\x02", b"a\x01\xff\xfe\x02", b"a\x01b\x02c\x01\x02", b"a\x01b\x02c"]
    places = [store.put(PutMessage("Orders", 0, b"x", text)).physical_offset for text in texts]
    store.close()
    odd = [finding for finding in findings(tmp_path / "store") if finding.kind is FindingKind.PROPERTIES_ODD]
    assert {finding.position for finding in odd} == set(places[1:])
    assert {finding.position: finding.severity for finding in odd}[places[1]] is Severity.WARNING


def test_an_index_file_that_a_broker_is_writing_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = Stores(tmp_path, FakeClock())
    store = stores.open()
    for number in range(5):
        put(store, properties={"KEYS": f"k{number}"})
    store.close()
    reads: list[Path] = []

    def caught_in_between(path: Path, shape: IndexShape) -> IndexContent:
        reads.append(path)
        content = read_index_file(path, shape)
        if len(reads) > 1:
            return content
        return replace(content, header=content.header._replace(used_slots=content.header.used_slots - 1))

    monkeypatch.setattr(index_check, "read_index_file", caught_in_between)
    assert FindingKind.INDEX_HEADER in {finding.kind for finding in findings(tmp_path / "store")}  # nobody writes it
    reads.clear()
    monkeypatch.setattr(index_check, "lock_holder", lambda lock: 4711)
    assert FindingKind.INDEX_HEADER not in {finding.kind for finding in findings(tmp_path / "store")}


@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_what_a_recovery_of_rocketmq_left_behind_the_end_of_the_log_is_no_damage(version: str, copy_of: Copies) -> None:
    store = copy_of(version, "clean")
    newest = [file for file in store.files("commitlog") if any(store.read(file)[:4])][-1]
    base, last = int(Path(newest).name), store.log_records(newest)[-1]
    end = last.physical_offset + last.size - base
    old = bytearray(store.read(newest)[end - last.size : end])
    begin = end + 50
    old[PHYSICAL_OFFSET_AT : PHYSICAL_OFFSET_AT + 8] = (base + begin).to_bytes(8)
    store.write(newest, end, b"\x7f" * 50 + old)  # the rest of a record, and a whole one
    result = store.verify()
    stale = [finding for finding in result.findings if finding.kind is FindingKind.STALE_BYTES]
    assert [(finding.severity, finding.file, finding.position) for finding in stale] == [(Severity.NOTE, newest, end)]
    assert not result.has_problems(strict=True)
    assert result.extent.end == base + end


@pytest.mark.parametrize("recovered", [True, False])
def test_one_millisecond_on_both_sides_of_the_end_is_damage_unless_4_9_recovered_the_store_and_wrote_nothing(
    recovered: bool, copy_of: Copies
) -> None:
    store = copy_of("4.9.7", "killed-recovered")
    newest = [file for file in store.files("commitlog") if any(store.read(file)[:4])][-1]
    base, records = int(Path(newest).name), store.log_records(newest)
    before, hurt, behind = records[-3:]
    assert before.store_timestamp == hurt.store_timestamp
    time = before.store_timestamp.to_bytes(8)
    store.write(newest, behind.physical_offset - base + field_offset("store_timestamp"), time)
    store.write(store.files("index")[-1], 8, time)  # its header has the time of the last record as well
    store.flip(newest, hurt.physical_offset - base + 100)
    store.write("checkpoint", 8, time)  # of the queues; that of the log is older, as a kill left it
    if not recovered:
        store.write("checkpoint", 0, time)
    result = store.verify()
    if recovered:
        (stale,) = [finding for finding in result.findings if finding.kind is FindingKind.STALE_BYTES]
        assert (stale.severity, stale.position) == (Severity.WARNING, hurt.physical_offset - base)
    else:
        store.assert_found(FindingKind.RECORD_DAMAGED, newest)
    assert result.has_problems() is not recovered


@pytest.mark.parametrize("at", [-2, -40, 5])
def test_a_damaged_record_of_a_store_that_4_9_recovered_is_damage(at: int, copy_of: Copies) -> None:
    store = copy_of("4.9.7", "killed-recovered")
    newest = [file for file in store.files("commitlog") if any(store.read(file)[:4])][-1]
    hurt = store.log_records(newest)[at]
    store.flip(newest, hurt.physical_offset - int(Path(newest).name) + 100)
    store.assert_found(FindingKind.RECORD_DAMAGED, newest)


@pytest.mark.parametrize("offset", ["9" * 19, "9" * 5000])
def test_an_offset_in_a_light_queue_that_is_no_number_ends_no_inspection(tmp_path: Path, offset: str) -> None:
    """Clients may say it to a broker without light queues, which stores it as it comes."""
    stores = Stores(tmp_path, FakeClock())
    store = stores.open()
    put(store, properties={"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": offset})
    store.dispatch()
    store.close()
    assert [finding for finding in findings(tmp_path / "store") if finding.severity is Severity.ERROR] == []
