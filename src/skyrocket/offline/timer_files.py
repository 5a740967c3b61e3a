"""Timer log and timer wheel as they lie on disk."""

from typing import NamedTuple

from skyrocket.format.timer_log import TimerLogEnd, TimerLogWalk, TimerUnit
from skyrocket.format.timer_wheel import Slot, used_slots
from skyrocket.offline.offset_files import OffsetFile, read_at
from skyrocket.offline.store_files import StoreFiles


class PlacedUnit(NamedTuple):
    """A unit and its position in the whole timer log."""

    position: int
    unit: TimerUnit


class TimerLogContent(NamedTuple):
    """All units in order, and where the walk through each file ended."""

    units: list[PlacedUnit]
    endings: list[tuple[OffsetFile, TimerLogEnd, int]]

    @property
    def end(self) -> int:
        """The position behind the last unit."""
        return max((file.offset + stop for file, _, stop in self.endings), default=0)


def read_timer_log(store: StoreFiles) -> TimerLogContent:
    """Every unit of the timer log."""
    content = TimerLogContent([], [])
    for file in store.timer_log.files:
        walk = TimerLogWalk(read_at(file.path, 0, file.size))
        content.units.extend(PlacedUnit(file.offset + at, unit) for at, unit in walk)
        content.endings.append((file, walk.end, walk.position))
    return content


def read_wheel(store: StoreFiles) -> list[tuple[int, Slot]]:
    """Every slot of the wheel that was ever used, with its place."""
    if not store.timer_wheel.exists():
        return []
    return list(used_slots(read_at(store.timer_wheel, 0, store.timer_wheel.stat().st_size)))
