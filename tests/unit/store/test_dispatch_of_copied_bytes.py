"""Bytes of a master's log that arrive in pieces: dispatched when a record is whole, and damage is seen as such."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.broker.core.dispatching import Dispatching
from skyrocket.config.sections import FlushDiskType
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.unit.store.stores import small_config
from tests.waiting import until


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


@pytest.mark.timeout(20)
def test_a_record_of_which_the_disk_has_only_a_part_waits(tmp_path: Path, log: bytes) -> None:
    """With SYNC_FLUSH dispatch ends where the disk does, which may be inside a record: a slave hung there for good."""
    second = len(log) // 3
    with MessageStore(tmp_path / "slave", small_config(dispatch_thread=False)) as store:
        store.append_raw(0, log)
        assert store.dispatcher.dispatch(10) == 0
        assert store.dispatcher.dispatch(second + 10) == 1
        assert store.dispatcher.dispatch(len(log)) == 2
        assert store.max_offset("Orders", 0) == 3


async def test_nobody_looks_again_and_again_at_a_record_whose_rest_has_not_come(
    tmp_path: Path, log: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is here is on disk: a slave whose master went away in the middle of a record was busy for nothing."""
    config = small_config(dispatch_thread=False, flush_disk_type=FlushDiskType.SYNC_FLUSH)
    with MessageStore(tmp_path / "slave", config) as store:
        Dispatching(store)
        looks: list[int] = []
        dispatch = store.dispatch

        def counted() -> int:
            looks.append(dispatch())
            return looks[-1]

        monkeypatch.setattr(store, "dispatch", counted)
        store.append_raw(0, log[: len(log) // 2])
        await until(lambda: store.max_offset("Orders", 0) == 1)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert len(looks) < 10
        store.append_raw(len(log) // 2, log[len(log) // 2 :])
        await until(lambda: store.max_offset("Orders", 0) == 3)


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
