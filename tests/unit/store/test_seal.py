"""The seal of a clean stop: what is as it was left is not walked through again; what is not is found out."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.config.sections import FlushDiskType
from skyrocket.errors import CorruptFile
from skyrocket.store.manifest import load_manifest, save_manifest
from skyrocket.store.message_store import MessageStore
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import TOPIC, Stores, UnforcedDisk, bodies, put

MESSAGES = 300  # three log files


def filled(stores: Stores, **changes: Any) -> MessageStore:
    """A store that was closed, with messages in two queues."""
    store = stores.open(**changes)
    for number in range(MESSAGES):
        put(store, b"%d " % number + b"x" * 450, queue_id=number % 2, properties={"KEYS": f"k{number}"})
    store.close()
    return store


def numbers(store: MessageStore) -> list[int]:
    """Of all messages that can be read."""
    store.dispatch()
    found: list[int] = []
    for queue_id in (0, 1):
        offset = 0
        while (got := store.get(TOPIC, queue_id, offset, 32)).count:
            found += [int(body.split()[0]) for body in bodies(got)]
            offset += got.count
    return sorted(found)


def walked(store: MessageStore) -> int:
    assert store.recovery is not None
    assert store.recovery.clean
    return store.recovery.records


@pytest.mark.parametrize("changes", [{}, {"flush_disk_type": FlushDiskType.SYNC_FLUSH}, {"transient_pool": True}])
def test_what_is_as_it_was_left_is_not_walked_through(
    stores: Stores, clock: FakeClock, changes: dict[str, Any]
) -> None:
    filled(stores, **changes)
    clock.set(clock.now_ms() - 10_000)
    store = stores.open(**changes)
    assert walked(store) == 0
    assert numbers(store) == list(range(MESSAGES))
    result = put(store, b"300 ", properties={"KEYS": "k300"})
    assert result.queue_offset == MESSAGES // 2
    assert result.store_timestamp == clock.now_ms() + 10_000  # never before what is there
    store.close()
    again = stores.open(**changes)
    assert walked(again) == 0
    assert numbers(again) == list(range(MESSAGES + 1))
    assert [len(again.query(TOPIC, f"k{number}")) for number in (0, 299, 300)] == [1, 1, 1]


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


SEALED = {"append_record_crc": True, "verify_record_crc": True}


@pytest.mark.parametrize(
    ("back", "changes"),
    [(1, SEALED), (5_000, SEALED), (100, {}), (300, {}), (5_100, {})],  # without a CRC of the record: in a body
)
def test_a_changed_bit_of_the_newest_log_file_is_found(stores: Stores, back: int, changes: dict[str, Any]) -> None:
    store = filled(stores, **changes)
    log = store.commit_log
    newest = Path(log.files.path_of(log.written_offset - log.written_offset % log.file_size))
    flip(newest, log.written_offset % log.file_size - back)
    with pytest.raises(CorruptFile):
        stores.open(**changes)
    # The operator may give the records up; all that lie before them are there.
    store = stores.open(**changes, truncate_damaged_log=True)
    found = numbers(store)
    assert found == list(range(len(found)))
    assert MESSAGES - 20 < len(found) < MESSAGES


def test_a_changed_entry_of_a_queue_is_mended(stores: Stores) -> None:
    store = filled(stores)
    for name in sorted(Path(store.paths.consume_queue, TOPIC, "1").iterdir())[-3:]:
        flip(name, 5)
    store = stores.open()
    assert walked(store) > 0
    assert numbers(store) == list(range(MESSAGES))


def test_records_that_another_program_has_added_are_walked_through(stores: Stores) -> None:
    store = filled(stores)
    manifest = load_manifest(UnforcedDisk(), store.paths.manifest)
    assert manifest is not None
    store = stores.open()
    put(store, b"300 ")
    store.close()
    save_manifest(UnforcedDisk(), store.paths.manifest, manifest)  # that of our own stop, before the other program
    store = stores.open()
    assert walked(store) > 0
    assert numbers(store) == list(range(MESSAGES + 1))


def without_index(store: MessageStore) -> None:
    for name in Path(store.paths.index).iterdir():
        flip(name, 15)  # in the header: where the newest record of the index is


def with_another_queue(store: MessageStore) -> None:
    Path(store.paths.consume_queue, TOPIC, "7").mkdir()


def with_the_manifest_of_an_older_release(store: MessageStore) -> None:
    manifest = load_manifest(UnforcedDisk(), store.paths.manifest)
    assert manifest is not None
    save_manifest(UnforcedDisk(), store.paths.manifest, replace(manifest, seal=None))


@pytest.mark.parametrize("change", [without_index, with_another_queue, with_the_manifest_of_an_older_release])
def test_what_does_not_fit_is_walked_through(stores: Stores, change: Callable[[MessageStore], None]) -> None:
    change(filled(stores))
    store = stores.open()
    assert walked(store) > 0
    assert numbers(store) == list(range(MESSAGES))
    assert all(len(store.query(TOPIC, f"k{number}")) == 1 for number in range(MESSAGES))


def test_an_index_that_is_switched_on_later_is_built(stores: Stores) -> None:
    filled(stores, index_enabled=False)
    store = stores.open()
    assert walked(store) == MESSAGES
    assert all(len(store.query(TOPIC, f"k{number}")) == 1 for number in range(MESSAGES))


def test_a_store_without_a_message_is_opened_again(stores: Stores) -> None:
    stores.open().close()
    store = stores.open()
    assert walked(store) == 0
    assert put(store).queue_offset == 0
