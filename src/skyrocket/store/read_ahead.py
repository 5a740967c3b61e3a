"""For who reads a queue on and on: its next entries, read and compared with their records once for twenty pulls.

    read 0 … 32     as any other; it is noted that somebody will go on at 32
    read 32 … 64    somebody goes on there: 640 entries are read and compared
    read 64 … 96    what is left of them is noted at 64, so this read need not look at entries at all

Who reads what is old gets fewer at a time (8, by RocketMQ's limits), so fewer are read for them: their records may have
to come from the disk, and everybody waits for what a read waits for. Readers at different places of a queue do not
disturb each other. What is remembered holds as long as nobody changes entries of the queue's files; entries in memory,
the newest, are not remembered. Whoever is known to his caller has a Trail of his own, so that nobody must look for him.
"""

import threading
from collections import OrderedDict
from typing import Final, NamedTuple
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from skyrocket.format.dtypes import Int64s, gathered
from skyrocket.format.queue_entry import ENTRY_DTYPE, ENTRY_SIZE
from skyrocket.format.record import FIELD_CODES, field_offset, some_fields
from skyrocket.store.commit_log import CommitLog
from skyrocket.store.consume_queue import ConsumeQueue
from skyrocket.store.mapped_file_queue import MappedFile

_ENTRIES: Final = 640  # read at once
_OLD_ENTRIES: Final = 160  # of records that may no longer be in memory
_FEWEST: Final = 64  # fewer are read as any others
FEWEST_WANTED: Final = 16  # who takes fewer at a time gains nothing
_MOST_READERS: Final = 512
_RESTS: Final = 20  # pulls that entries would have lasted for, by one whose entries were given up for another's
COPY_BELOW: Final = 64 << 10  # bytes of records among those of other queues that are copied together

_NAMES: Final = ("size", "queue_offset", "physical_offset")
PLACE: Final = some_fields(*_NAMES)  # by which a record is known to be the one that an entry means
_PLACES: Final = np.dtype(
    {
        "names": _NAMES,
        "formats": [{"i": ">i4", "q": ">i8"}[FIELD_CODES[name]] for name in _NAMES],
        "offsets": [field_offset(name) for name in _NAMES],
    }
)


def file_with(log: CommitLog, physical_offset: int, size: int) -> MappedFile | None:
    """The file of the log that has all of these bytes; None when they are gone, not yet there, or cross a file."""
    file = log.files.find(physical_offset) if physical_offset + size <= log.readable_offset else None
    return None if file is None or physical_offset + size > file.start_offset + file.size else file


class Records(NamedTuple):
    """What a read found: in as few pieces as may be."""

    slices: list[memoryview]
    size: int


class Ahead:
    """Entries of a queue whose records are what the entries say; all of them lie in one file of the log."""

    __slots__ = (
        "__weakref__",
        "alike",
        "changes",
        "end",
        "file",
        "first",
        "places",
        "record_size",
        "sizes",
        "start_offset",
    )

    def __init__(self, changes: int, first: int, file: MappedFile, places: Int64s, sizes: Int64s) -> None:
        self.changes = changes
        self.first = first  # queue offset
        self.end = first + len(places)
        self.file: MappedFile | None = file  # None: it is deleted, or not mapped any more
        self.start_offset = file.start_offset
        self.places = places  # in the file
        self.sizes = sizes
        size = self.record_size = int(sizes[0])
        # All places of the file at which so many bytes may begin: picked from, they are copied together at once.
        self.alike: NDArray[np.void] | None = None
        if (sizes == size).all():
            self.alike = np.ndarray((file.size - size + 1,), f"V{size}", file.map, 0, strides=(1,))

    def let_go(self) -> None:
        """The file would keep its room on disk."""
        self.file = self.alike = None

    def records(self, offset: int, count: int, most_bytes: int) -> Records | None:
        """So many records from a queue offset on; None when there are not so many, they are too large, or are gone."""
        file, alike = self.file, self.alike
        if offset + count > self.end or file is None:
            return None
        begin = offset - self.first
        after = begin + count
        size = self.record_size * count if alike is not None else int(self.sizes[begin:after].sum())
        if size > most_bytes:
            return None
        start = self.places.item(begin)
        if self.places.item(after - 1) + self.sizes.item(after - 1) - start == size:  # neighbours in the log
            return Records([file.view[start : start + size]], size)
        places = self.places[begin:after]
        if size < COPY_BELOW and alike is not None:
            return Records([memoryview(alike[places].tobytes())], size)
        pairs = zip(places.tolist(), self.sizes[begin:after].tolist(), strict=True)
        if size < COPY_BELOW:
            log = file.map
            slices = [memoryview(b"".join([log[at : at + each] for at, each in pairs]))]
        else:
            view = file.view
            slices = [view[at : at + each] for at, each in pairs]
        return Records(slices, size)


class Trail:
    """One who reads a queue on and on, and what was read for him; his caller keeps it."""

    __slots__ = ("ahead", "expected", "place", "queue", "rests")

    def __init__(self, queue: ConsumeQueue) -> None:
        self.queue = queue
        self.place = (queue.topic, queue.queue_id)
        self.ahead: Ahead | None = None
        self.expected = -1  # where he will go on
        self.rests = 0  # so many times he reads as any other

    def ahead_of(self, offset: int, count: int) -> Ahead | None:
        """Entries among which so many from an offset on are; None when there are none, or not any more."""
        ahead = self.ahead
        if (
            ahead is None
            or offset < ahead.first
            or offset + count > ahead.end
            or ahead.changes != self.queue.entries.changes
            or ahead.file is None
        ):
            return None
        return ahead


class ReadAhead:
    """Who goes on where, and what was read for them."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._at: OrderedDict[tuple[ConsumeQueue, int], Ahead | None] = OrderedDict()  # None: nothing was read yet
        self._trails: OrderedDict[Trail, None] = OrderedDict()  # with entries; who has got some last stands last
        self._alive: WeakSet[Ahead] = WeakSet()
        self._lock = threading.Lock()  # files are let go of by the thread that deletes them

    def at(self, queue: ConsumeQueue, offset: int, count: int, old: int) -> Ahead | None:
        """So many entries or more from an offset on, for who was expected there; None: read them as any others.

        Records before the place `old` in the log may no longer be in memory.
        """
        if (queue, offset) not in self._at:
            return None
        ahead, end = self._at.pop((queue, offset)), offset + count
        if ahead is None or end > ahead.end or ahead.changes != queue.entries.changes or ahead.file is None:
            ahead = self.read(queue, offset, old)
        return ahead if ahead is not None and end <= ahead.end else None

    def follow(self, trail: Trail, offset: int, old: int) -> Ahead | None:
        """The entries from an offset on, for one who has a trail and reached their end; None when they are few.

        There may be more who follow than are remembered. Each would take the entries of another before they were used,
        and who has lost his own reads as any other for as long as they would have lasted.
        """
        if trail.rests:
            trail.rests -= 1
            return None
        trails = self._trails
        trails.pop(trail, None)
        ahead = trail.ahead = self.read(trail.queue, offset, old)
        if ahead is None:
            return None  # so who only waits for what is new takes nobody's place
        trails[trail] = None
        if len(trails) > _MOST_READERS:
            loser = trails.popitem(last=False)[0]
            loser.ahead, loser.rests = None, _RESTS
        return ahead

    def expect(self, queue: ConsumeQueue, offset: int, ahead: Ahead | None = None) -> None:
        """Somebody will go on there, with what is left of these entries."""
        if ahead is None and self._at.get((queue, offset)) is not None:
            return  # so will another one, who has some left
        self._at[queue, offset] = ahead
        if len(self._at) > _MOST_READERS:
            self._at.popitem(last=False)

    def let_go(self, file: MappedFile) -> None:
        """A file of the log was deleted, or is not mapped any more: what is remembered would keep its room on disk."""
        oldest = self._log.min_offset
        with self._lock:
            for ahead in self._alive:
                its = ahead.file
                if its is not None and (its is file or its.start_offset < oldest):
                    ahead.let_go()

    def read(self, queue: ConsumeQueue, offset: int, old: int) -> Ahead | None:
        """The entries from an offset on; None when they are few, or not as usual."""
        entries, log = queue.entries, self._log
        changes = entries.changes
        if entries.tail[0] - offset * ENTRY_SIZE < _FEWEST * ENTRY_SIZE:
            return None
        table = np.frombuffer(entries.read(offset * ENTRY_SIZE, _ENTRIES * ENTRY_SIZE), dtype=ENTRY_DTYPE)
        if len(table) < _FEWEST:
            return None
        first, size, _ = table[0].item()
        if first < old:
            table = table[:_OLD_ENTRIES]
        file = file_with(log, first, PLACE.size)
        # The first alone before the others: in light queues, whose records have other numbers, none is as usual.
        if file is None or PLACE.unpack_from(file.map, first - file.start_offset) != (size, offset, first):
            return None
        places, sizes = table["physical_offset"].astype(np.int64), table["size"].astype(np.int64)
        places -= file.start_offset
        end = min(file.size, log.readable_offset - file.start_offset)
        usual = (places >= 0) & (sizes >= PLACE.size) & (places <= end - sizes)
        count = len(table) if usual.all() else int(np.argmin(usual))
        if count < _FEWEST:
            return None
        places, sizes = places[:count], sizes[:count]
        heads = gathered(file.map, _PLACES, places)
        right = (
            (heads["size"] == sizes)
            & (heads["queue_offset"] == np.arange(offset, offset + count))
            & (heads["physical_offset"] == places + file.start_offset)
        )
        return self._kept(Ahead(changes, offset, file, places, sizes)) if right.all() else None

    def _kept(self, ahead: Ahead) -> Ahead | None:
        """To be let go of with its file; None when that has just happened."""
        file = ahead.file
        assert file is not None
        with self._lock:
            self._alive.add(ahead)
        return ahead if self._log.files.find(file.start_offset) is file else None
