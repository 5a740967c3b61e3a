"""Bytes of a master's log that arrive in pieces: dispatched when a record is whole, and damage is seen as such."""

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from skyrocket.broker.core.dispatching import Dispatching
from skyrocket.config.sections import FlushDiskType
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import QUEUE_OFFSET_AT
from skyrocket.store import dispatcher
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.index_file import IndexFile
from skyrocket.store.message_store import MessageStore
from tests.unit.store.stores import small_config, writing_queues
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


async def test_bytes_that_came_while_queues_were_written_are_dispatched_afterwards(tmp_path: Path, log: bytes) -> None:
    """The last records before a silence of the master: nothing else comes that would have them dispatched."""
    with MessageStore(tmp_path / "slave", small_config(dispatch_thread=False)) as store:
        Dispatching(store)
        with writing_queues(store):
            store.append_raw(0, log)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert store.max_offset("Orders", 0) == 0
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


def copied(root: Path, messages: Sequence[PutMessage]) -> bytes:
    """The log of a master that has these messages."""
    with MessageStore(root, small_config()) as store:
        for message in messages:
            store.put(message)
        found = store.commit_log.raw(0, 1 << 20)
        assert found is not None
        return bytes(found)


@pytest.mark.parametrize("number", [1 << 40, -5], ids=["far ahead", "below zero"])
@pytest.mark.parametrize("least", [1, 1000], ids=["many at once", "one by one"])
def test_a_number_that_cannot_be_leaves_its_record_out_and_costs_no_memory(
    tmp_path: Path,
    log: bytes,
    number: int,
    least: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Entries up to it would take terabytes. The records behind it are dispatched."""
    monkeypatch.setattr(dispatcher, "_COLUMN_RECORDS", least)
    second = len(log) // 3
    at = second + QUEUE_OFFSET_AT
    broken = log[:at] + number.to_bytes(8, "big", signed=True) + log[at + 8 :]
    with MessageStore(tmp_path / "slave", small_config()) as store:
        store.append_raw(0, broken)
        store.dispatch()
        assert store.max_offset("Orders", 0) == 3
        assert store.dispatcher.damage is None
    assert f"its queue offset cannot be right topic=Orders queue=0 claimed={number}" in caplog.text


def test_many_records_wait_for_the_index_while_the_disk_has_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = [PutMessage("Orders", 0, b"x", encode_properties({"KEYS": f"k{number}"})) for number in range(60)]
    log = copied(tmp_path / "master", keyed)
    monkeypatch.setattr(dispatcher, "_COLUMN_RECORDS", 10)
    reserve = IndexFile.reserve

    def refuse(file: IndexFile, entries: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    with MessageStore(tmp_path / "slave", small_config()) as store:
        assert store.index is not None
        monkeypatch.setattr(IndexFile, "reserve", refuse)
        store.append_raw(0, log[: len(log) // 2])
        assert store.dispatch() == 30
        store.append_raw(len(log) // 2, log[len(log) // 2 :])
        assert store.dispatch() == 30
        assert store.failure is None
        monkeypatch.setattr(IndexFile, "reserve", reserve)
        store.index.catch_up()
        assert [len(store.query("Orders", f"k{number}")) for number in range(60)] == [1] * 60


@pytest.mark.parametrize("topic", [b"../../", b"Ord/rs", b"Ord\0rs"])
@pytest.mark.parametrize("least", [1, 1000], ids=["many at once", "one by one"])
def test_a_topic_that_leads_out_of_the_store_is_damage(
    tmp_path: Path, log: bytes, topic: bytes, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A master's bytes say where a slave makes directories; its start already refused such names."""
    monkeypatch.setattr(dispatcher, "_COLUMN_RECORDS", least)
    second, third = len(log) // 3, len(log) // 3 * 2
    broken = log[:second] + log[second:third].replace(b"Orders", topic) + log[third:]
    with MessageStore(tmp_path / "slave", small_config()) as store:
        store.append_raw(0, broken)
        store.dispatch()
        assert store.dispatcher.damage == (second, f"a topic {topic!r}")
        assert [queue.topic for queue in store.queues] == ["Orders"]
        assert store.max_offset("Orders", 0) == 1
