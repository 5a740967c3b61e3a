"""The timer wheel in memory, with its file: pages that changed are written when the owner says so.

RocketMQ does the same. A wheel that is mapped would reach the disk in any order and at any moment; like this the file
never points to units that the timer log had not on disk before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyrocket.errors import CorruptFile
from skyrocket.format.dtypes import Int64s
from skyrocket.format.timer_log import NO_POSITION
from skyrocket.format.timer_wheel import (
    SLOT,
    SLOT_DTYPE,
    SLOT_SIZE,
    WHEEL_SIZE,
    WHEEL_SLOTS,
    Slot,
    decode_slot,
    slot_index,
)
from skyrocket.store.disk import Disk

Page = tuple[int, bytes]  # position in the file, content

_PAGE = 4096
_SLOTS_OF_PAGE = _PAGE // SLOT_SIZE
_READ_AT_ONCE = 1 << 16
_pack_slot_into = SLOT.pack_into


class Chains(NamedTuple):
    """First and last unit in the timer log of slots, and how many messages wait, as columns."""

    first_positions: Int64s
    last_positions: Int64s
    messages: Int64s


class Wheel:
    """The slots; one owner changes them."""

    def __init__(self, disk: Disk, path: str, precision_ms: int) -> None:
        self.precision_ms = precision_ms
        self._disk = disk
        self._path = path
        # Zeros that take no memory and no time before they are written; a bytearray would write all of them.
        self._slots = np.zeros(WHEEL_SLOTS, SLOT_DTYPE)
        self._plain_slots = self._slots.view(f"V{SLOT_SIZE}")  # numpy copies these far faster than their fields
        self._data = self._slots.view(np.uint8).data
        self._dirty: set[int] = set()  # numbers of pages
        self._used: set[int] = set()  # those that are not all zeros

    def load(self) -> bool:
        """Read the file; False when there is none. Raises CorruptFile for one of another size."""
        try:
            size = self._disk.size(self._path)
        except FileNotFoundError:
            return False
        if size == 0:
            return False  # created by a process that died before it could size it
        if size != WHEEL_SIZE:
            raise CorruptFile(
                self._path,
                f"is {size} bytes long, a timer wheel has {WHEEL_SIZE}",
                "Move it away: it is built again from the timer log",
            )
        fd = self._disk.open(self._path)
        try:
            for start, end in self._disk.data_extents(fd, 0, WHEEL_SIZE):
                for at in range(start, end, _READ_AT_ONCE):
                    data = self._disk.read_at(fd, min(_READ_AT_ONCE, end - at), at)
                    if data.count(0) != len(data):
                        self._data[at : at + len(data)] = data
                        self._used.update(range(at // _PAGE, (at + len(data) - 1) // _PAGE + 1))
        finally:
            self._disk.close(fd)
        return True

    # ── slots ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def step_of(self, time_ms: int) -> int:
        """The time at which the slot of a time begins."""
        return time_ms - time_ms % self.precision_ms

    def slot(self, time_ms: int) -> Slot:
        """What waits for a step; an empty slot when the stored one belongs to another round."""
        stored = self.stored(time_ms)
        wanted_ms = self.step_of(time_ms)
        return stored if stored.time_ms == wanted_ms else Slot(wanted_ms)

    def stored(self, time_ms: int) -> Slot:
        """What stands in the place of a time, of whatever round."""
        return decode_slot(self._data, slot_index(time_ms, self.precision_ms, WHEEL_SLOTS), self.precision_ms)

    def put(self, slot: Slot) -> None:
        """Change a slot."""
        step = slot.time_ms // self.precision_ms
        index = step % WHEEL_SLOTS
        _pack_slot_into(self._data, index * SLOT_SIZE, step, slot.first_position, slot.last_position, slot.messages, 0)
        self._dirty.add(index // _SLOTS_OF_PAGE)
        self._used.add(index // _SLOTS_OF_PAGE)

    # The same for many slots at once: every message that is parked comes here.

    def chains(self, steps: Int64s) -> Chains:
        """What waits for steps (not milliseconds): empty chains where the stored slot belongs to another round."""
        stored = self._plain_slots[steps % WHEEL_SLOTS].view(SLOT_DTYPE)
        is_other = stored["time"] != steps
        chains = Chains(
            stored["first"].astype(np.int64), stored["last"].astype(np.int64), stored["messages"].astype(np.int64)
        )
        if is_other.any():
            chains.first_positions[is_other] = chains.last_positions[is_other] = NO_POSITION
            chains.messages[is_other] = 0
        return chains

    def put_chains(self, steps: Int64s, chains: Chains) -> None:
        """Change the slots of steps, of which no two have the same place."""
        places = steps % WHEEL_SLOTS
        slots = np.zeros(len(steps), SLOT_DTYPE)
        slots["time"] = steps
        slots["first"], slots["last"], slots["messages"] = chains
        self._plain_slots[places] = slots.view(self._plain_slots.dtype)
        pages = (places // _SLOTS_OF_PAGE).tolist()
        self._dirty.update(pages)
        self._used.update(pages)

    def stored_times_ms(self, times_ms: Int64s) -> Int64s:
        """The times for which the slots stand that are in the places of times."""
        places = times_ms // self.precision_ms % WHEEL_SLOTS
        steps: Int64s = self._slots["time"][places].astype(np.int64)
        return steps * self.precision_ms

    def clear_from(self, time_ms: int) -> None:
        """Forget what waits from a time on."""
        for waiting_ms in self.waiting_times(time_ms):
            index = slot_index(waiting_ms, self.precision_ms, WHEEL_SLOTS)
            self._data[index * SLOT_SIZE : (index + 1) * SLOT_SIZE] = bytes(SLOT_SIZE)
            self._dirty.add(index // _SLOTS_OF_PAGE)

    def waiting_times(self, time_ms: int) -> list[int]:
        """The steps in use from a time on, soonest first."""
        times: list[int] = (np.sort(self._waiting(time_ms)["time"].astype(np.int64)) * self.precision_ms).tolist()
        return times

    def newest_unit(self, time_ms: int) -> int:
        """The highest position in the timer log that a slot from a time on points to; -1 when there is none."""
        return int(self._waiting(time_ms)["last"].max(initial=-1))

    def oldest_unit(self, time_ms: int) -> int | None:
        """The lowest position in the timer log that a slot from a time on begins with."""
        positions = self._waiting(time_ms)["first"]
        return int(positions.min()) if len(positions) else None

    def _waiting(self, time_ms: int) -> NDArray[np.void]:
        pages = self._slots.reshape(-1, _SLOTS_OF_PAGE)
        slots: NDArray[np.void] = pages[sorted(self._used)].ravel()
        chosen: NDArray[np.void] = slots[(slots["time"] >= max(time_ms // self.precision_ms, 1)) & (slots["last"] >= 0)]
        return chosen

    # ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_dirty(self) -> bool:
        return bool(self._dirty)

    def take_dirty(self) -> list[Page]:
        """The pages that changed since the last time, as they are now."""
        pages = [(number * _PAGE, bytes(self._data[number * _PAGE : (number + 1) * _PAGE])) for number in self._dirty]
        self._dirty.clear()
        return sorted(pages)

    def keep_dirty(self, pages: list[Page]) -> None:
        """These could not be written: they are taken again."""
        self._dirty.update(position // _PAGE for position, _ in pages)

    def write(self, pages: list[Page]) -> None:
        """Write pages and force them to disk; from any one thread."""
        fd = self._disk.create(self._path, WHEEL_SIZE)
        try:
            for position, page in pages:
                self._disk.write_at(fd, page, position)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
