"""The lake's bookkeeping: published whole or not at all, whatever step a writer dies at."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.lake import Change, Gap, Lake, LakeBusy, LakeFile, lake_writer, versions
from skyrocket.pipeline.lake.manifest import LakeDamaged


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


def a_file(name: str, begin: int, end: int, topic: str = "Orders") -> LakeFile:
    path = f"topic={topic}/dt=2026-11-16/{name}.parquet"
    return LakeFile(path, topic, "2026-11-16", "broker-a", 3, 4, begin, end - 1, 1, 2)


def archive(lake: Lake, begin: int, end: int) -> None:
    """What the archive job does: nothing if it is already there."""
    with lake_writer(lake, "broker-a") as books:
        if lake.state().archived_to.get("broker-a", 0) >= end:
            return
        new = a_file(f"broker-a-{begin}", begin, end)
        staged = lake.root / books.staging / new.path
        staged.parent.mkdir(parents=True)
        staged.write_bytes(b"rows")
        books.publish(Change("archive", "broker-a", begin, end, added=(new,)))


def compact(lake: Lake) -> None:
    with lake_writer(lake, "compaction") as books:
        state = lake.state()
        if len(state.files) == 1:
            return
        new = a_file("compacted", 0, 20)
        staged = lake.root / books.staging / new.path
        staged.parent.mkdir(parents=True)
        staged.write_bytes(b"all rows")
        books.publish(Change("compact", "broker-a", added=(new,), removed=tuple(sorted(state.files))))


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Die at the n-th change of the directory tree."""
    done: list[str] = []

    def counted(name: str, original):  # type: ignore[no-untyped-def]
        def call(*given, **named):  # type: ignore[no-untyped-def]
            if len(done) == step:
                raise Killed
            done.append(name)
            return original(*given, **named)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", counted("rename", Path.replace))
        patch.setattr(Path, "unlink", counted("unlink", Path.unlink))
        patch.setattr(os, "link", counted("link", os.link))
        yield done


def parquet_files(lake: Lake) -> set[str]:
    return {str(each.relative_to(lake.root)) for each in lake.root.glob("topic=*/dt=*/*.parquet")}


def test_a_published_change_is_in_the_state_and_its_files_are_in_place(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    archive(lake, 0, 10)
    archive(lake, 10, 20)
    state = lake.state()
    assert state.version == 2
    assert state.archived_to == {"broker-a": 20}
    assert state.begins_at == {"broker-a": 0}
    assert state.rows == 6
    assert set(state.files) == parquet_files(lake)
    assert [each.first_offset for each in state.of_topics(["Orders"])] == [0, 10]
    assert state.of_topics(["Payments"]) == []


@pytest.mark.parametrize("work", [lambda lake: archive(lake, 10, 20), compact], ids=["archive", "compact"])
def test_a_writer_killed_at_any_step_leaves_all_or_nothing_and_the_next_one_finishes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: object
) -> None:
    assert callable(work)
    step = 0
    while True:
        lake = Lake(tmp_path / str(step))
        archive(lake, 0, 10)
        if work is compact:
            archive(lake, 10, 20)
        with killed_at(step, monkeypatch) as done:
            try:
                work(lake)
            except Killed:
                pass
            else:
                break
        assert lake.state().version in (1, 2, 3)
        work(lake)
        state = lake.state()
        assert state.archived_to == {"broker-a": 20}
        assert set(state.files) == parquet_files(lake), f"killed after {done}"
        assert not list((lake.books / "pending").glob("*.json"))
        assert len(state.files) == (1 if work is compact else 2)
        step += 1
    assert step >= 5, "the change has fewer steps than it is known to have: are they still counted?"


def test_two_writers_of_one_broker_exclude_each_other_and_two_brokers_do_not(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake_writer(lake, "broker-a"):
        with pytest.raises(
            LakeBusy, match=r"another process writes the records of broker-a .*its lock: .*broker-a\.lock"
        ):
            lake_writer(lake, "broker-a").__enter__()
        with lake_writer(lake, "broker-b") as books:
            books.publish(Change("archive", "broker-b", 5, 6, gaps=(Gap("broker-b", 5, 6, "deleted by retention"),)))
    assert lake.state().archived_to == {"broker-b": 6}
    assert lake.state().gaps == [Gap("broker-b", 5, 6, "deleted by retention")]


def test_a_writer_that_loses_the_race_for_a_version_takes_the_next(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    mine, theirs = lake.state(), lake.state()
    assert lake.publish(Change("archive", "broker-b", 0, 6), theirs)
    assert not lake.publish(Change("archive", "broker-a", 0, 10), mine)
    archive(lake, 0, 10)
    assert lake.state().archived_to == {"broker-a": 10, "broker-b": 6}


def test_a_snapshot_stands_for_the_versions_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SNAPSHOT_EVERY", 3)
    lake = Lake(tmp_path)
    for begin in range(0, 70, 10):
        archive(lake, begin, begin + 10)
    whole = lake.state()
    for number in (1, 2, 3, 4, 5):
        (lake.books / "versions" / f"{number:020d}.json").unlink()
    assert lake.state() == whole
    assert whole.version == 7


def test_bookkeeping_that_contradicts_itself_is_refused_with_the_cause(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    archive(lake, 0, 10)
    second = lake.books / "versions" / f"{2:020d}.json"
    for change, cause in [
        (Change("archive", "broker-a", 11, 20), "archives broker-a from offset 11, but the lake ends at 10"),
        (Change("archive", "broker-a", 10, 9), "ends at 9, before its begin 10"),
        (
            Change("compact", "broker-a", removed=("absent.parquet",)),
            "removes absent.parquet, which the lake does not hold",
        ),
        (Change("archive", "broker-a", 10, 12, added=(a_file("broker-a-0", 0, 10),)), "a second time"),
    ]:
        second.write_text(json.dumps(asdict(change)))
        with pytest.raises(LakeDamaged, match=cause):
            lake.state()
    second.write_text('{"kind": "archive", "broker": "broker-a", "colour": 1}')
    with pytest.raises(LakeDamaged, match=r"unknown fields \['colour'\]"):
        lake.state()
    second.write_text("{")
    with pytest.raises(LakeDamaged, match="is not JSON"):
        lake.state()
    second.write_text("[]")
    with pytest.raises(LakeDamaged, match="no JSON object"):
        lake.state()
    second.rename(second.with_name(f"{5:020d}.json"))
    with pytest.raises(LakeDamaged, match=r"version 2 is missing but 0+5\.json exists"):
        lake.state()


def test_a_pending_change_whose_files_are_gone_is_not_published(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    change = Change("archive", "broker-a", 0, 10, added=(a_file("lost", 0, 10),))
    with lake_writer(lake, "broker-a") as books, pytest.raises(SkyrocketError, match="neither it nor"):
        books.publish(change)
    assert lake.state().version == 0
