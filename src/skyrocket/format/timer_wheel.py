"""The timer wheel: a ring of slots, one per step of the clock, each the head of a chain in the timer log.

    TIME 8 (in steps) | FIRST POSITION 8 | LAST POSITION 8 | MESSAGES 4 | MAGIC 4 = 0

The file has twice as many slots as the wheel's window (7 days of seconds), so a slot of the past is never mistaken
for one of the future. It is not cleared when its time has passed: a slot counts only for the time stored in it.

Also the pure rules of parking: to which time a delivery is rounded, and when a message must be parked again on the
way (rolled), because its time lies beyond the window.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

import numpy as np

from skyrocket.errors import DataError
from skyrocket.format.dtypes import Bools, Int64s, dtype_of

Buffer = bytes | bytearray | memoryview

SLOT = Struct(">qqqii")
SLOT_SIZE = SLOT.size
WINDOW_SLOTS = 604_800
WHEEL_SLOTS = 2 * WINDOW_SLOTS
WHEEL_SIZE = WHEEL_SLOTS * SLOT_SIZE
DEFAULT_PRECISION_MS = 1000

_NO_POSITION = -1
_LARGEST_ROLL_WINDOW = WINDOW_SLOTS - 60
SLOT_DTYPE = dtype_of(SLOT, ("time", "first", "last", "messages", "magic"))


class Slot(NamedTuple):
    """One wheel time; `messages` is below zero where rolled cancels outnumber the messages."""

    time_ms: int
    first_position: int = _NO_POSITION
    last_position: int = _NO_POSITION
    messages: int = 0
    magic: int = 0

    @property
    def is_empty(self) -> bool:
        return self.last_position == _NO_POSITION


def slot_index(time_ms: int, precision_ms: int = DEFAULT_PRECISION_MS, slots: int = WHEEL_SLOTS) -> int:
    """The place of a time on the wheel."""
    return time_ms // precision_ms % slots


def decode_slot(buffer: Buffer, index: int, precision_ms: int = DEFAULT_PRECISION_MS) -> Slot:
    """The slot at a place, whatever its time; raises DataError when the buffer does not reach so far."""
    position = index * SLOT_SIZE
    if not 0 <= position <= len(buffer) - SLOT_SIZE:
        raise DataError(f"slot {index} lies outside a timer wheel of {len(buffer)} bytes")
    time, *rest = SLOT.unpack_from(buffer, position)
    return Slot(time * precision_ms, *rest)


def used_slots(buffer: Buffer, precision_ms: int = DEFAULT_PRECISION_MS) -> Iterator[tuple[int, Slot]]:
    """Every slot that was ever written, with its place."""
    table = np.frombuffer(buffer, SLOT_DTYPE, count=len(buffer) // SLOT_SIZE)
    for index in np.flatnonzero(table["time"]):
        yield int(index), decode_slot(buffer, int(index), precision_ms)


def parked_time_ms(deliver_ms: int, precision_ms: int = DEFAULT_PRECISION_MS) -> int:
    """The wheel time of a delivery: the step before it, even when it lies exactly on one."""
    return (deliver_ms - 1) // precision_ms * precision_ms


def roll_window_slots(setting: int) -> int:
    """The window in steps; RocketMQ takes the largest one for a setting out of bounds."""
    return setting if 2 <= setting <= _LARGEST_ROLL_WINDOW else _LARGEST_ROLL_WINDOW


class Parking(NamedTuple):
    """The slot that a message is put into, and whether it will be parked again when that time comes."""

    slot_time_ms: int
    rolls: bool


def parking(due_ms: int, write_time_ms: int, window_slots: int, precision_ms: int = DEFAULT_PRECISION_MS) -> Parking:
    """Where a message with this due time is parked by a wheel that stands at `write_time_ms`.

    Beyond the window it rolls: a whole window further, or half of one when the rest would be so short that the
    next roll might come too late.
    """
    beyond_ms = due_ms - write_time_ms - window_slots * precision_ms
    if beyond_ms < 0:
        return Parking(due_ms, rolls=False)
    # Whole steps are halved, not milliseconds: the slot must lie on a step.
    steps = window_slots // 2 if beyond_ms < window_slots // 3 * precision_ms else window_slots
    return Parking(write_time_ms + steps * precision_ms, rolls=True)


def parkings(
    due_ms: Int64s, write_time_ms: int, window_slots: int, precision_ms: int = DEFAULT_PRECISION_MS
) -> tuple[Int64s, Bools]:
    """The same for many messages: the times of their slots, and which of them roll."""
    rolls = due_ms - write_time_ms >= window_slots * precision_ms
    if rolls.any():
        due_ms = due_ms.copy()
        due_ms[rolls] = [
            parking(each_ms, write_time_ms, window_slots, precision_ms).slot_time_ms
            for each_ms in due_ms[rolls].tolist()
        ]
    return due_ms, rolls
