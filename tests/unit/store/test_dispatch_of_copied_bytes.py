"""Bytes of a master's log that arrive in pieces: dispatched when a record is whole, and damage is seen as such."""

from pathlib import Path

import pytest

from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.unit.store.stores import small_config


@pytest.fixture
def log(tmp_path: Path) -> bytes:
    with MessageStore(tmp_path / "master", small_config(dispatch_thread=False)) as store:
        for number in range(3):
            store.put(PutMessage("Orders", 0, bytes([number]) * 200))
        found = store.commit_log.raw(0, 1 << 20)
        assert found is not None
        return bytes(found)


def test_a_record_that_is_still_arriving_is_no_damage(tmp_path: Path, log: bytes) -> None:
    with MessageStore(tmp_path / "slave", small_config(dispatch_thread=False)) as store:
        for offset in range(0, len(log), 7):
            store.append_raw(offset, log[offset : offset + 7])
            store.dispatch()
            assert store.dispatcher.damage is None
        assert store.max_offset("Orders", 0) == 3


@pytest.mark.parametrize(
    ("at", "written", "reason"),
    [
        (0, b"\0\0\0\0", ""),  # zeros where a size belongs
        (0, b"\x7f\xff\xff\xff", "size"),  # a size that no file holds
        (4, b"oops", "magic"),
        (28, b"\1", "stored physical offset"),
    ],
)
def test_damage_is_told_with_its_place(tmp_path: Path, log: bytes, at: int, written: bytes, reason: str) -> None:
    second = len(log) // 3
    at += second
    broken = log[:at] + written + log[at + len(written) :]
    with MessageStore(tmp_path / "slave", small_config(dispatch_thread=False)) as store:
        store.append_raw(0, broken)
        store.dispatch()
        damage = store.dispatcher.damage
        assert damage is not None
        assert damage.physical_offset == second
        assert reason in damage.reason
        assert store.max_offset("Orders", 0) == 1
