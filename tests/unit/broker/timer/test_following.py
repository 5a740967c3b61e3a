"""What a slave keeps of the timer of whoever delivers."""

from pathlib import Path

from skyrocket.broker.timer.following import TimerFollower
from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.format.config_files import TIMERS
from skyrocket.format.timer_checkpoint import TimerCheckpoint, encode_timer_checkpoint
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths
from skyrocket.testing.clock import FakeClock


def follower(paths: StorePaths) -> TimerFollower:
    counts = ConfigFile(Disk(), str(Path(paths.config) / "timermetrics"), TIMERS.decode, TIMERS.encode)
    made = TimerFollower(Disk(), paths.timer_checkpoint, TimerCountTable(counts, FakeClock()))
    made.load()
    return made


def test_the_wheel_of_a_former_master_becomes_a_check_point_at_a_slave_that_may_act(tmp_path: Path) -> None:
    paths = StorePaths(str(tmp_path))
    for folder in (paths.config, paths.timer_log):
        Path(folder).mkdir(parents=True)
    Path(paths.timer_wheel).write_bytes(b"wheel")
    Disk().write_file(paths.timer_checkpoint, encode_timer_checkpoint(TimerCheckpoint(7000, 520, 10)))
    slave = follower(paths)
    slave.let_wheel_go(paths)
    assert slave.known == TimerCheckpoint(7000, master_queue_offset=10)
    assert not Path(paths.timer_wheel).exists()
    assert not Path(paths.timer_log).exists()
    slave.take_checkpoint(encode_timer_checkpoint(TimerCheckpoint(9000, 0, 12)))
    assert follower(paths).known == TimerCheckpoint(9000, master_queue_offset=12)
