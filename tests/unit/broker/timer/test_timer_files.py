"""The files of timers: what survives a stop, a kill and a loss, and when they go."""

import os
from collections import Counter
from pathlib import Path

import pytest

from skyrocket.errors import CorruptFile
from skyrocket.format.timer_wheel import WHEEL_SIZE
from skyrocket.inspector.settings import inspection_settings
from skyrocket.inspector.verify import verify
from skyrocket.offline.store_files import find_store_files
from skyrocket.testing.clock import FakeClock
from tests.unit.broker.timer.timed import TOPIC, Timed, copy_of, lose_timer_tail, reopened
from tests.unit.store.stores import UnforcedDisk, clean_expired

# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_after_a_clean_stop_the_files_agree_with_each_other(timed: Timed, clock: FakeClock) -> None:
    for number in range(70):
        timed.put_at(b"%d" % number, clock.now_ms() + 500 * number)
    timed.recall("60", clock.now_ms() + 30_000)
    clock.advance(seconds=10)
    timed.fire()
    timed.stop()
    findings = verify(find_store_files(timed.root), inspection_settings(None, ["mappedFileSizeTimerLog=1040"])).findings
    assert [str(each) for each in findings if "timer" in each.file] == []
    assert (timed.root / "timerwheel").stat().st_size == WHEEL_SIZE
    again = Timed(timed.root, clock)
    assert len(again.service.pending()) == 70 - len(timed_out(clock, 70)) + 1
    again.stop()


def timed_out(clock: FakeClock, count: int) -> list[int]:
    began_ms = FakeClock().now_ms()
    return [n for n in range(count) if (began_ms + 500 * n - 1) // 1000 * 1000 + 1000 <= clock.now_ms()]


def test_what_was_parked_and_what_was_not_survives_a_kill_and_a_power_cut(
    tmp_path: Path, timed: Timed, clock: FakeClock
) -> None:
    for number in range(40):
        timed.put_at(b"%d" % number, clock.now_ms() + 5000)
        if number == 15:
            timed.fire()
            timed.service.save()
        if number == 30:
            timed.fire()
    for name in ("kill", "power"):
        copy_of(timed, tmp_path / name)
        if name == "power":
            lose_timer_tail(tmp_path / name)
        again = Timed(tmp_path / name, clock)
        again.fire()
        assert again.counts.counts() == {TOPIC: 40}
        assert len(again.service.pending()) == 40
        again.stop()
    clock.advance(seconds=6)
    again = Timed(tmp_path / "power", clock)
    again.fire()
    assert Counter(again.bodies()) == Counter(b"%d" % number for number in range(40))
    again.stop()


def test_a_missing_timer_log_is_built_again_from_the_queue(timed: Timed, clock: FakeClock) -> None:
    for number in range(50):
        timed.put_at(b"%d" % number, clock.now_ms() + 2000 + 100 * number)
    clock.advance(seconds=4)
    timed.fire()
    before = timed.bodies()
    assert 0 < len(before) < 50
    timed.stop()
    for file in (timed.root / "timerlog").iterdir():
        file.unlink()
    (timed.root / "timerwheel").unlink()
    clock.advance(seconds=10)
    again = Timed(timed.root, clock)
    again.fire()
    assert set(again.bodies()) == {b"%d" % number for number in range(50)}
    again.stop()


def test_a_wheel_of_another_precision_is_refused_with_the_next_step(
    timed: Timed, clock: FakeClock, tmp_path: Path
) -> None:
    timed.put_at(b"x", clock.now_ms() + 5000)
    timed.fire()
    timed.service.save()
    copy_of(timed, tmp_path / "other")
    with pytest.raises(CorruptFile, match=r"is timerPrecisionMs another than it was\?\. Set it back"):
        Timed(tmp_path / "other", clock, timer_precision_ms=500)


def test_a_wheel_that_was_built_again_lacks_only_what_was_delivered(timed: Timed, clock: FakeClock) -> None:
    timed.put_at(b"x", clock.now_ms() + 1000)
    clock.advance(seconds=2)
    timed.fire()
    timed.stop()
    (timed.root / "timerwheel").unlink()
    again = reopened(Timed(timed.root, clock))
    again.put_at(b"y", clock.now_ms() + 1000)
    again.fire()
    again = reopened(again)
    clock.advance(seconds=2)
    again.fire()
    assert again.bodies() == [b"x", b"y"]
    again.stop()


def test_a_wheel_of_the_wrong_size_is_refused(timed: Timed, clock: FakeClock, tmp_path: Path) -> None:
    copy_of(timed, tmp_path / "other")
    (tmp_path / "other" / "timerwheel").write_bytes(b"x" * 100)
    with pytest.raises(CorruptFile, match="is 100 bytes long, a timer wheel has"):
        Timed(tmp_path / "other", clock)


def test_an_idle_timer_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, disk=UnforcedDisk())
    timed.put_at(b"x", clock.now_ms() + 100_000)
    timed.fire()
    timed.service.save()
    clock.advance(seconds=5)
    timed.fire()
    assert not timed.service._has_changed()
    timed.stop()


# ── retention ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_is_never_deleted_before_its_delivery(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, commit_log_file_size=8192, file_reserved_hours=1, delete_batch=100)
    timed.put_at(b"x", clock.now_ms() + 40 * 3_600_000)
    timed.fire()
    for _ in range(60):
        timed.put(b"y" * 1000)
    timed.store.flush()
    timed.service.save()
    log = timed.store.commit_log
    assert log.files.starts[-1] > 0
    clock.advance(hours=30)
    for start in log.files.starts:
        os.utime(log.files.path_of(start), (0, 0))
    timed.service.pin()
    assert clean_expired(timed.store).log_files == 0
    assert timed.service.clean() == 0
    clock.advance(hours=11)
    timed.fire()
    assert timed.bodies()[-1] == b"x"
    timed.store.flush()
    timed.service.pin()
    assert clean_expired(timed.store).log_files > 0
    timed.stop()


def test_files_of_the_timer_log_go_with_the_messages_that_they_point_to(tmp_path: Path, clock: FakeClock) -> None:
    timed = Timed(tmp_path / "store", clock, commit_log_file_size=8192, file_reserved_hours=1, delete_batch=100)
    for number in range(100):
        timed.put_at(b"%d" % number, clock.now_ms() + 1000)
    clock.advance(seconds=2)
    timed.fire()
    timed.put_at(b"last", clock.now_ms() + 50_000_000)
    timed.fire()
    timed.store.flush()
    assert timed.service.clean() == 0, "the messages are still there"
    clock.advance(hours=2)
    log = timed.store.commit_log
    for start in log.files.starts:
        os.utime(log.files.path_of(start), (0, 0))
    timed.service.pin()
    assert clean_expired(timed.store).log_files > 0
    assert timed.service.clean() > 0
    again = reopened(timed, commit_log_file_size=8192)
    clock.advance(hours=20)
    again.fire()
    assert again.bodies()[-1] == b"last"
    again.stop()
