"""All index files of a store: which one is written, which are searched, which may go.

Records are collected and indexed many at a time (`index_batch_records`, `index_batch_delay_ms`): nobody waits for
the index, and a query first brings it up to date.
"""

import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skyrocket.clock import Clock
from skyrocket.config.sections import StoreConfig
from skyrocket.format import index_layout as layout
from skyrocket.format import sys_flag as flags
from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.index_keys import KeyHashes
from skyrocket.format.index_layout import IndexHeader
from skyrocket.store.disk import Disk
from skyrocket.store.index_file import IndexFile
from skyrocket.store.index_keys import even_key_hashes, key_hashes, prefixes_of, segment_hashes
from skyrocket.store.log_columns import ColumnItems
from skyrocket.store.record_run import Appended, RecordRun, each_item
from skyrocket.store.record_tuples import (
    PHYSICAL_OFFSET,
    PROPERTIES,
    QUEUE,
    STORE_TIMESTAMP,
    SYS_FLAG,
    DispatchItem,
)
from skyrocket.store.topic_queue import TopicQueue
from skyrocket.store.write_gate import Patience

log = logging.getLogger(__name__)

_Ints = NDArray[np.int64]
_NO_INTS: _Ints = np.empty(0, dtype=np.int64)
_Keys = tuple[_Ints, _Ints, _Ints]  # hashes, physical offsets, store times
_NO_KEYS: _Keys = (_NO_INTS, _NO_INTS, _NO_INTS)
_STILL_SECONDS = 0.01
_MOST_HELD_BACK = 200_000  # records that wait while the disk stands still
_MOST_WAITING = 1_000_000  # records that wait for a disk; with more of them the trouble does not pass


class Index:
    """Key and time → physical offsets."""

    def __init__(self, disk: Disk, directory: str, config: StoreConfig, clock: Clock) -> None:
        self.directory = directory
        self.on_completed: Callable[[int], None] = lambda end_timestamp: None  # a file is full and on disk
        self._disk = disk
        self._config = config
        self._clock = clock
        self._lock = threading.RLock()
        self._names: list[str] = []
        self._headers: dict[str, IndexHeader] = {}  # of files that will not change any more
        self._mapped: OrderedDict[str, IndexFile] = OrderedDict()
        self._current: IndexFile | None = None
        self._backlog: list[Appended] = []
        self._backlog_records = 0  # more than its length when there are runs in it
        self._backlog_since = 0.0
        self._skip_before = -1  # records before this offset are in the files already
        self._end_timestamp = 0
        self._syncing: list[threading.Thread] = []
        self._sync_error: OSError | None = None
        self._unplaced = _NO_KEYS  # of the newest batch, while no file can be made for them
        self._half_put = False  # what the newest file holds is not known: nothing is put until the next start
        self._trouble: OSError | None = None  # why what waits is not in the files
        self.patience: Patience | None = None  # with a disk that takes nothing at the moment; None: there is none

    # -- life ------------------------------------------------------------------------------------------

    def load(self, *, clean: bool, checkpoint_timestamp: int) -> bool:
        """Open the files; after an unclean stop drop those that were not complete. False: they must all be rebuilt."""
        self._disk.make_directory(self.directory)
        for name in self._disk.names(self.directory):
            if name.isascii() and name.isdigit():
                self._names.append(name)
            else:
                log.warning("not an index file path=%s", os.path.join(self.directory, name))
        for name in self.names:
            file = self._open(name)
            if not file.sane:
                log.warning("index file damaged or cut short, rebuilding the index from the log path=%s", file.path)
                return False
            if not clean and not (file.full and file.header.end_timestamp <= checkpoint_timestamp):
                self._remove(name)
                continue
            self._headers[name] = file.header
        if self._names:
            self._current = self._open(self._names[-1])
        self._skip_before = self.end_physical_offset + (1 if clean else 0)
        return True

    def drop_behind(self, log_end: int) -> bool:
        """Delete files with records that the log does not have (any more); whether there were such files."""
        with self._lock:
            self.catch_up()
            ahead = [name for name in self._names if self._header(name).end_physical_offset >= log_end]
            for name in ahead:
                if self._current is not None and name == self._names[-1]:
                    self._current = None
                self._remove(name)
            if ahead and self._names:
                self._current = self._open(self._names[-1])
            return bool(ahead)

    def clear(self) -> None:
        """Delete all files: the index will be built anew."""
        with self._lock:
            self._current = None
            self._backlog.clear()
            self._backlog_records = 0
            self._unplaced = _NO_KEYS
            self._skip_before = -1
            for name in list(self._names):
                self._remove(name)

    def close(self) -> None:
        """Write the backlog and force all of it to disk."""
        with self._lock:
            self.catch_up()
            self._await_syncs()
            left = bool(self._backlog) or len(self._unplaced[0])
            error = self._trouble if left else self._sync_error
            if error is not None:
                raise error
            if self._current is not None:
                self._current.sync()
                self._disk.sync_directory(self.directory)
                self._end_timestamp = self._current.header.end_timestamp
            self.release()

    def release(self) -> None:
        """Let go of all maps and files; what is not on disk is left to recovery."""
        self._await_syncs()
        self._current = None
        self._mapped.clear()

    def await_completed(self) -> None:
        """Until every full file is on disk, or is known not to be, and `on_completed` was told."""
        self._await_syncs(None)

    def _await_syncs(self, seconds: float | None = 60) -> None:
        for thread in self._syncing:
            thread.join(seconds)
        self._syncing = []

    @property
    def names(self) -> list[str]:
        return list(self._names)

    @property
    def end_physical_offset(self) -> int:
        """Start of the newest record in the index; -1 without entries."""
        for name in reversed(self._names if self._current is not None else []):
            header = self._header(name)
            if header.next_number > 1:
                return header.end_physical_offset
        return -1

    @property
    def end_timestamp(self) -> int:
        """Store time of the newest record in the index, known even after it was closed; 0 without entries."""
        current = self._current
        if current is None or current.header.next_number <= 1:
            return self._end_timestamp
        return current.header.end_timestamp

    @property
    def backlog(self) -> int:
        """Records that wait for the index."""
        return self._backlog_records

    # -- building --------------------------------------------------------------------------------------

    def add(self, items: Sequence[Appended], count: int) -> None:
        """Take so many records in log order; they are indexed when enough are there or the first has waited long."""
        with self._lock:
            if not self._backlog:
                self._backlog_since = time.monotonic()
            self._backlog.extend(items)
            self._backlog_records += count
            enough = self._backlog_records >= self._config.index_batch_records and self._trouble is None
            if (enough and not self._must_wait) or self.overdue:
                self.catch_up()

    def add_columns(self, items: ColumnItems) -> None:
        """The same with records that were read many at once: they do not wait, unless the disk has no room."""
        with self._lock:
            self.catch_up()
            if self._backlog or self._trouble is not None or self._half_put:
                self.add(items, len(items))
            else:
                self._unplaced = self._keys_of(items)
                self.catch_up()

    @property
    def overdue(self) -> bool:
        """Whether the oldest record has waited as long as it may."""
        waited_ms = (time.monotonic() - self._backlog_since) * 1000
        waits = bool(self._backlog) or self._trouble is not None
        return waits and waited_ms >= self._config.index_batch_delay_ms and not self._must_wait

    @property
    def _must_wait(self) -> bool:
        """Entries go through a map, which a disk that stands still holds up together with the whole program."""
        return self._disk.stands_still(_STILL_SECONDS) and self._backlog_records < _MOST_HELD_BACK

    def skip_indexed(self) -> None:
        """Records will come again from an older place: leave out those that are in the index."""
        with self._lock:
            self.catch_up()
            self._skip_before = self.end_physical_offset + 1

    def catch_up(self) -> None:
        """Index everything that waits; where the disk has no room at the moment, it goes on waiting."""
        with self._lock:
            if self._half_put:
                return  # such a file must never look complete: the next start builds it anew
            try:
                self._place()
                while self._backlog:
                    self._build(self._take(max(self._config.index_batch_records, 1)))
            except OSError as error:
                self._trouble = error
                self._backlog_since = time.monotonic()  # tried again when that is overdue
                lasts = self._half_put or self._backlog_records > _MOST_WAITING
                if lasts or self.patience is None or not self.patience.has(error):
                    raise
            else:
                if self._trouble is not None and self.patience is not None:
                    self.patience.is_over()
                self._trouble = None

    def _take(self, most: int) -> Sequence[Appended]:
        """The oldest of what waits: so many records, and the rest of the run in which the last of them is."""
        backlog = self._backlog
        if self._backlog_records == len(backlog):
            number = count = min(len(backlog), most)
        else:
            number = count = 0
            while count < most and number < len(backlog):
                one = backlog[number]
                count += one.count if isinstance(one, RecordRun) else 1
                number += 1
        taken = backlog[:number]
        del backlog[:number]
        self._backlog_records -= count
        return taken

    def _build(self, taken: Sequence[Appended]) -> None:
        skip = self._skip_before
        if skip >= 0 or any(_is_rolled_back(one) for one in taken):
            taken = [item for item in each_item(taken) if item[PHYSICAL_OFFSET] >= skip and not _is_rolled_back(item)]
            if not taken:
                return
            self._skip_before = -1  # the log goes on from here: nothing can come twice any more
        self._unplaced = _joined([self._keys_in(list(some)) for _, some in groupby(taken, _number_of_even)])
        self._place()

    def _keys_in(self, taken: Sequence[Appended]) -> _Keys:
        """Those of one run of even batches, or of all kinds of other records."""
        with_tags = self._config.index_tags
        one = taken[0]
        if isinstance(one, RecordRun) and isinstance(one.properties, EvenTexts):
            return _keys_of_even(one, one.properties, with_tags=with_tags)
        prefixes, offsets, times, properties = _columns(taken)
        keys = key_hashes(prefixes, properties, with_tags=with_tags)
        return keys.hashes, offsets[keys.records], times[keys.records]

    def _keys_of(self, items: ColumnItems) -> _Keys:
        columns = items.columns
        wanted = columns.parts.sys_flags & flags.TRANSACTION_MASK != flags.TRANSACTION_ROLLBACK
        if self._skip_before >= 0:
            wanted &= columns.physical_offsets >= self._skip_before
        if not wanted.any():
            return _NO_KEYS
        self._skip_before = -1
        prefixes = prefixes_of(items.queues)[items.queue_numbers]
        keys = segment_hashes(columns.segments, prefixes, with_tags=self._config.index_tags)
        if not wanted.all():
            rows = wanted[keys.records]
            keys = KeyHashes(keys.hashes[rows], keys.records[rows], keys.are_tags[rows])
        return keys.hashes, columns.physical_offsets[keys.records], columns.store_timestamps[keys.records]

    def _place(self) -> None:
        """Put the keys of a batch into files; what finds no room stays."""
        while len(self._unplaced[0]):
            file = self._writable_file()
            hashes, physical_offsets, timestamps = self._unplaced
            room = file.room
            file.reserve(len(hashes[:room]))
            try:
                file.put(hashes[:room], physical_offsets[:room], timestamps[:room])
            except OSError:
                self._half_put = True
                raise
            self._unplaced = (hashes[room:], physical_offsets[room:], timestamps[room:])

    def _writable_file(self) -> IndexFile:
        current = self._current
        if current is not None and not current.full:
            return current
        seed = IndexHeader(0, 0, 0, 0, 0, 1)
        if current is not None:
            end = current.header
            seed = IndexHeader(
                end.end_timestamp, end.end_timestamp, end.end_physical_offset, end.end_physical_offset, 0, 1
            )
        name = self._new_name()
        path = os.path.join(self.directory, name)
        try:
            made = IndexFile(self._disk, path, self._config.index_slots, self._config.index_entries, seed)
        except OSError:
            self._disk.unlink(path)  # without a header a start would take it for damage
            raise
        if current is not None:
            self._complete(current)
        self._current = made
        self._names.append(name)
        self._mapped[name] = self._current
        self._trim()
        return self._current

    def _complete(self, file: IndexFile) -> None:
        """A full file goes to disk, in a thread of its own: it is hundreds of megabytes, and dispatch must go on."""
        self._headers[os.path.basename(file.path)] = file.header
        earlier = self._syncing[-1:]
        thread = threading.Thread(target=self._sync, args=(file, earlier), name="store-index-sync", daemon=True)
        self._syncing = [*(other for other in self._syncing if other.is_alive()), thread]
        thread.start()

    def _sync(self, file: IndexFile, earlier: list[threading.Thread]) -> None:
        for thread in earlier:  # the time of a file says that all before it are on disk too
            thread.join()
        if self._sync_error is not None:
            return
        try:
            file.sync()
            self._disk.sync_directory(self.directory)
        except OSError as error:
            # Its time is not put into the checkpoint: after a crash the file is built anew.
            log.error("index file not forced to disk path=%s error=%s", file.path, error)
            self._sync_error = error
            return
        try:
            self.on_completed(file.header.end_timestamp)
        except OSError as error:
            log.warning("index file not named in the checkpoint path=%s error=%s", file.path, error)
            if self.patience is not None and self.patience.has(error):
                self._trouble = error  # until keys are written again; a clean stop names the file
            else:
                self._sync_error = error

    def _new_name(self) -> str:
        """Local time to the millisecond; later than every other name even when two files fill within one."""
        now = self._clock.now_ms()
        local = time.localtime(now // 1000)
        name = time.strftime("%Y%m%d%H%M%S", local) + f"{now % 1000:03d}"
        newest = self._names[-1] if self._names else ""
        return name if name > newest else f"{int(newest) + 1:017d}"

    # -- searching -------------------------------------------------------------------------------------

    def query(self, text: str, limit: int, begin: int, end: int) -> list[int]:
        """Physical offsets for the text of a key, newest first; hash collisions are among them."""
        limit = min(limit, self._config.max_query_results)
        key_hash = layout.index_hash(text)
        found: list[int] = []
        with self._lock:
            self.catch_up()
            names = list(self._names)
        for name in reversed(names):
            # Only the file that is written needs the lock, and it is in memory. An older one may have to come from
            # a slow disk: dispatch must go on meanwhile.
            with self._lock:
                if name not in self._headers and (self._current is None or name != self._names[-1]):
                    continue  # it was removed since
                header = self._header(name)
                wanted = layout.overlaps(header, begin, end)
                file = self._open(name) if wanted else None
                if file is not None and file is self._current:
                    found += file.find(key_hash, begin, end, limit - len(found))
                    file = None
            if file is not None:
                found += file.find(key_hash, begin, end, limit - len(found))
            if header.begin_timestamp < begin or len(found) >= limit:
                break
        return found

    @property
    def newest_header(self) -> IndexHeader | None:
        """Header of the newest file."""
        return self._current.header if self._current is not None else None

    def remove_expired(self, log_start: int) -> list[str]:
        """Delete files, never the newest, whose records have all left the log; returns their names."""
        with self._lock:
            expired = [name for name in self._names[:-1] if self._header(name).end_physical_offset < log_start]
            for name in expired:
                self._remove(name)
            return expired

    def _header(self, name: str) -> IndexHeader:
        if self._current is not None and name == self._names[-1]:
            return self._current.header
        return self._headers[name]

    def _open(self, name: str) -> IndexFile:
        file = self._mapped.get(name)
        if file is None:
            path = os.path.join(self.directory, name)
            file = IndexFile(self._disk, path, self._config.index_slots, self._config.index_entries)
            self._mapped[name] = file
        self._mapped.move_to_end(name)
        self._trim()
        return file

    def _trim(self) -> None:
        while len(self._mapped) > self._config.max_mapped_index_files:
            self._mapped.popitem(last=False)

    def _remove(self, name: str) -> None:
        self._names.remove(name)
        self._headers.pop(name, None)
        self._mapped.pop(name, None)
        self._disk.unlink(os.path.join(self.directory, name))


def _is_rolled_back(one: Appended) -> bool:
    return isinstance(one, tuple) and one[SYS_FLAG] & flags.TRANSACTION_MASK == flags.TRANSACTION_ROLLBACK


def _number_of_even(one: Appended) -> int:
    """What tells runs of even batches from each other, and from all else."""
    return id(one) if isinstance(one, RecordRun) and isinstance(one.properties, EvenTexts) else 0


def _columns(taken: Sequence[Appended]) -> tuple[NDArray[np.uint64], _Ints, _Ints, Sequence[bytes]]:
    """Prefixes of keys, physical offsets, store times and properties of all records."""
    if not any(isinstance(one, RecordRun) for one in taken):
        queues, starts, _, times, _, texts, _ = zip(*cast("Sequence[DispatchItem]", taken), strict=True)
        return prefixes_of(queues), np.array(starts, dtype=np.int64), np.array(times, dtype=np.int64), texts
    owners: list[TopicQueue] = []
    counts: list[int] = []
    stored: list[int] = []
    offsets: list[int] = []
    properties: list[bytes] = []
    for one in taken:
        if isinstance(one, RecordRun):
            owners += [part.queue for part in one.parts]
            counts += [part.end - part.at for part in one.parts]
            stored += [one.store_timestamp] * len(one.parts)
            offsets += one.starts
            properties += one.properties
        else:
            owners.append(one[QUEUE])
            counts.append(1)
            stored.append(one[STORE_TIMESTAMP])
            offsets.append(one[PHYSICAL_OFFSET])
            properties.append(one[PROPERTIES])
    prefixes = np.repeat(prefixes_of(owners), counts)
    return prefixes, np.array(offsets, dtype=np.int64), np.repeat(np.array(stored, dtype=np.int64), counts), properties


def _keys_of_even(run: RecordRun, texts: EvenTexts, *, with_tags: bool) -> _Keys:
    """The keys of records of one size, whose properties are of one length."""
    counts = [part.end - part.at for part in run.parts]
    prefixes = np.repeat(prefixes_of([part.queue for part in run.parts]), counts)
    keys = even_key_hashes(prefixes, texts, with_tags=with_tags)
    places = keys.records * run.sizes[0] + run.starts[0]
    return keys.hashes, places, np.full(len(places), run.store_timestamp)


def _joined(keys: Sequence[_Keys]) -> _Keys:
    if len(keys) == 1:
        return keys[0]
    hashes, offsets, times = zip(*keys, strict=True)
    return np.concatenate(hashes), np.concatenate(offsets), np.concatenate(times)
