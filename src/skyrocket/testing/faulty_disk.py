"""A disk that counts, fails, tears and forgets: faults for tests of the store.

Three kinds of fault, all decided by the test and none by chance:

    fail     the n-th operation of a kind raises an OSError; later ones work again
    full     from the n-th operation on that needs space ENOSPC is raised, until `free`
    crash    the n-th operation does not happen, or only its first bytes are written; everything after it raises
             PowerCut, a BaseException, so that no handler of the store can go on as if nothing had happened

What a crash leaves behind depends on what crashed. When only the process dies, the page cache survives: the
directory is as it stands. When the power fails, only what was forced to disk is sure. For that the disk keeps,
beside the real files, what would be found after a power cut:

    content   of each file at its last sync; of everything written since, any 512-byte sector may be there or not
    names     and lengths in the order in which they were made (as journaling file systems keep them): some first
              part of what was not yet forced by `sync_directory` is there, the rest is not

`leave_after_power_cut` writes such a directory, by a seed. Nothing is really forced to disk, so tests are fast.
Writes that numpy makes through a map cannot be counted, but they are seen in the content like all others.
"""

import errno
import mmap
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Any

from skyrocket.store.disk import Disk

SECTOR = 512


class Operation(Enum):
    """What can be counted and made to fail."""

    WRITE = "write"  # through a map, at a position, or a whole small file
    SYNC = "sync"  # of a file, a directory or the whole file system
    RENAME = "rename"
    CREATE = "create"
    ALLOCATE = "allocate"
    UNLINK = "unlink"
    ZERO = "zero"  # the rest of a file


class PowerCut(BaseException):
    """The machine, or the process, stopped here."""


@dataclass(frozen=True, slots=True)
class Fault:
    """The operation with this number (from 1; of this kind, or of any) fails with an error, or crashes."""

    number: int
    operation: Operation | None = None
    error: int | None = None  # errno; None: crash
    kept_bytes: int = 0  # of a write that crashes: this many bytes are still written


@dataclass(frozen=True, slots=True)
class _Link:
    """A name was made; the file exists with length 0 until its length is set."""

    path: str
    file: int


@dataclass(frozen=True, slots=True)
class _Unlink:
    path: str


@dataclass(frozen=True, slots=True)
class _Rename:
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class _Resize:
    """A length was set or grew."""

    file: int
    size: int


_Change = _Link | _Unlink | _Rename | _Resize


class FaultyMap(mmap.mmap):
    """A map whose assignments are operations of the disk."""

    disk: "FaultyDisk | None" = None

    def __setitem__(self, place: Any, value: Any) -> None:
        if self.disk is None:
            super().__setitem__(place, value)
        else:
            self.disk.write_map(self, place, value)

    def put(self, start: int, data: bytes) -> None:
        """Write without being counted."""
        super().__setitem__(slice(start, start + len(data)), data)


class FaultyDisk(Disk):
    """The real file system below one directory, with faults and a model of what is durable."""

    def __init__(self, root: str | os.PathLike[str], *faults: Fault) -> None:
        """Everything that is below `root` now counts as durable."""
        super().__init__()
        self.counts: Counter[Operation] = Counter()
        self.faults = list(faults)
        self.crashed = False
        self.crashed_at = ""  # what the crash interrupted, for the message of a failing test
        self.used = 0.0  # what `used_ratio` says
        self._lock = threading.RLock()
        self._space: int | None = None  # operations that still find space; None: enough for all
        self._root = os.path.realpath(root)
        self._files = 0
        self._names: dict[str, int] = {}
        self._durable_names: dict[str, int] = {}
        self._durable: dict[int, bytes] = {}
        self._gone: dict[int, bytes] = {}  # content of unlinked files, whose names may come back
        self._changes: list[_Change] = []
        self._open: dict[int, int] = {}  # descriptor → file
        self._allocated: set[int] = set()
        self._adopt()

    # -- telling it what to do ------------------------------------------------------------------------

    @property
    def operations(self) -> int:
        """How many operations there were, of all kinds."""
        return self.counts.total()

    def fail_next(self, operation: Operation, error: int = errno.EIO, *, after: int = 0) -> None:
        """Let an operation of a kind fail: the next one, or a later one."""
        with self._lock:
            self.faults.append(Fault(self.counts[operation] + 1 + after, operation, error))

    def fill(self, *, after: int = 0) -> None:
        """Let the disk be full: now, or after some more operations that need space."""
        with self._lock:
            self._space = after

    def free(self) -> None:
        """Let there be space again."""
        with self._lock:
            self._space = None

    def for_next_process(self) -> "FaultyDisk":
        """The process died, not the machine: the disk for a new one, with the page cache as it was."""
        with self._lock:
            successor = FaultyDisk(self._root)
            successor.used = self.used
            successor._files, successor._allocated = self._files, self._allocated
            successor._names, successor._durable_names = self._names, self._durable_names
            successor._durable, successor._gone = self._durable, self._gone
            successor._changes = self._changes
            return successor

    def crash(self) -> None:
        """Stop now."""
        with self._lock:
            self.crashed = True

    def used_ratio(self, path: str) -> float:
        return self.used

    # -- counting ---------------------------------------------------------------------------------------

    @contextmanager
    def _operation(self, operation: Operation, what: str, *, needs_space: bool = False) -> Iterator[int | None]:
        """Count an operation; yields how many bytes of it still happen when it crashes, None when all do."""
        with self._lock:
            self._alive()
            self.counts[operation] += 1
            fault = self._fault(operation)
            if fault is not None and fault.error is not None:
                raise OSError(fault.error, os.strerror(fault.error), what)
            if needs_space and self._space is not None:
                if self._space <= 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), what)
                self._space -= 1
            if fault is None:
                yield None
                return
            self.crashed, self.crashed_at = True, f"{operation.value} {what}"
            yield fault.kept_bytes
            raise PowerCut(self.crashed_at)

    def _fault(self, operation: Operation) -> Fault | None:
        for fault in self.faults:
            number = self.operations if fault.operation is None else self.counts[operation]
            if number == fault.number and fault.operation in (None, operation):
                return fault
        return None

    def _alive(self) -> None:
        if self.crashed:
            raise PowerCut("after the crash")

    # -- operations ---------------------------------------------------------------------------------------

    def make_directory(self, path: str) -> None:
        self._alive()
        super().make_directory(path)

    def remove_directory(self, path: str) -> None:
        self._alive()
        super().remove_directory(path)

    def remove_tree(self, path: str) -> None:
        for directory, _, names in os.walk(path):
            for name in names:
                self.unlink(os.path.join(directory, name))
        self._alive()
        super().remove_tree(path)

    def rename(self, old: str, new: str) -> None:
        with self._operation(Operation.RENAME, new) as kept:
            if kept is None:
                super().rename(old, new)
                file = self._names.pop(self._key(old), None)
                if file is not None:
                    self._names[self._key(new)] = file
                    self._changes.append(_Rename(self._key(old), self._key(new)))

    def unlink(self, path: str) -> None:
        with self._operation(Operation.UNLINK, path) as kept:
            if kept is None:
                file = self._names.pop(self._key(path), None)
                if file is not None:
                    self._gone[file] = self._content(path)
                    self._changes.append(_Unlink(self._key(path)))
                super().unlink(path)

    def sync_directory(self, path: str) -> None:
        with self._operation(Operation.SYNC, path) as kept:
            if kept is None:
                within = self._key(path)
                last = max((n for n, c in enumerate(self._changes, 1) if within in _directories(c)), default=0)
                self._make_durable(last)

    def write_file(self, path: str, data: bytes) -> None:
        with self._operation(Operation.WRITE, path, needs_space=True) as kept:
            known = self._key(path) in self._names
            file = self._link(path)
            if known:
                self._changes.append(_Resize(file, 0))
            with open(path, "wb") as opened:
                opened.write(data if kept is None else data[:kept])
            self._resized(file, len(data) if kept is None else min(kept, len(data)))
            if kept is None:
                self._sync_file(file, data)

    def create(self, path: str, size: int) -> int:
        with self._operation(Operation.CREATE, path, needs_space=self._key(path) not in self._names) as kept:
            file = self._link(path)
            if kept is not None:
                return -1
            if self.size(path) != size:
                self._resized(file, size)
            fd = super().create(path, size)
            self._open[fd] = file
            return fd

    def open(self, path: str) -> int:
        with self._lock:
            self._alive()
            fd = super().open(path)
            self._open[fd] = self._names[self._key(path)]
            return fd

    def close(self, fd: int) -> None:
        with self._lock:
            if self._open.pop(fd, None) is not None:
                super().close(fd)

    def close_all(self) -> None:
        """Close what a crash left open, as the end of the process would."""
        for fd in list(self._open):
            self.close(fd)

    def allocate(self, fd: int, position: int, length: int) -> None:
        with self._operation(Operation.ALLOCATE, f"descriptor {fd}", needs_space=True) as kept:
            if kept is None:
                super().allocate(fd, position, length)
                self._allocated.add(self._open[fd])

    def zero_from(self, fd: int, position: int, size: int) -> None:
        with self._operation(Operation.ZERO, f"descriptor {fd}") as kept:
            super().zero_from(fd, position, size if kept is None else min(size, position + kept))

    def map(self, fd: int, size: int) -> mmap.mmap:
        self._alive()
        mapped = FaultyMap(fd, size)
        mapped.disk = self
        return mapped

    def write_map(self, mapped: FaultyMap, place: Any, value: Any) -> None:
        """An assignment to a map; a torn one writes its first bytes."""
        with self._operation(Operation.WRITE, f"map of {len(mapped)} bytes") as kept:
            start, stop, _ = place.indices(len(mapped))
            data = bytes(value)
            assert len(data) == stop - start
            mapped.put(start, data if kept is None else data[:kept])

    def write_at(self, fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
        # What was allocated, or has been written before, has its place on disk.
        new = self._open[fd] not in self._allocated and self.next_data(fd, position) != position
        with self._operation(Operation.WRITE, f"descriptor {fd} at {position}", needs_space=new) as kept:
            super().write_at(fd, data if kept is None else memoryview(data)[:kept], position)

    def sync(self, fd: int) -> None:
        with self._operation(Operation.SYNC, f"descriptor {fd}") as kept:
            if kept is None:
                self._sync_file(self._open[fd], os.pread(fd, os.fstat(fd).st_size, 0))

    def sync_all(self, directory: str) -> None:
        with self._operation(Operation.SYNC, directory) as kept:
            if kept is None:
                self._make_durable(len(self._changes))
                for path, file in self._names.items():
                    self._sync_file(file, self._content(os.path.join(self._root, path)))

    # -- what is durable ------------------------------------------------------------------------------------

    def write_back(self, random: Random, share: float = 0.5) -> None:
        """Let some dirty sectors reach the disk as they are now, as the kernel does at any time."""
        with self._lock:
            for path, file in self._names.items():
                now = self._content(os.path.join(self._root, path))
                self._durable[file] = _mixed(self._durable[file], now, len(self._durable[file]), random, share)

    def leave_after_power_cut(self, target: str | os.PathLike[str], random: Random) -> None:
        """Write into an empty directory what a power cut now could leave."""
        with self._lock:
            kept = random.randint(0, len(self._changes))
            names, sizes = self._replay(self._changes[:kept])
            share = random.choice((0.0, 0.1, 0.5, 0.9, 1.0))
            for directory, _, _ in os.walk(self._root):
                super().make_directory(os.path.join(target, os.path.relpath(directory, self._root)))
            current = {file: path for path, file in self._names.items()}
            for path, file in names.items():
                durable = self._durable[file]
                place = current.get(file)
                now = self._gone.get(file, b"") if place is None else self._content(os.path.join(self._root, place))
                place = os.path.join(target, path)
                super().make_directory(os.path.dirname(place))
                with open(place, "wb") as opened:
                    opened.write(_mixed(durable, now, sizes.get(file, len(durable)), random, share))

    def _replay(self, changes: list[_Change]) -> tuple[dict[str, int], dict[int, int]]:
        """Names after some changes, and the lengths that they set."""
        names = dict(self._durable_names)
        sizes: dict[int, int] = {}
        for change in changes:
            match change:
                case _Link(path, file):
                    names[path] = file
                case _Unlink(path):
                    names.pop(path, None)
                case _Rename(old, new):
                    names[new] = names.pop(old)
                case _Resize(file, size):
                    sizes[file] = size
        return names, sizes

    def _make_durable(self, number: int) -> None:
        """Force the first changes; lengths too, the bytes between are zeros."""
        done, self._changes = self._changes[:number], self._changes[number:]
        self._durable_names, sizes = self._replay(done)
        for file, size in sizes.items():
            self._durable[file] = self._durable[file][:size].ljust(size, b"\0")

    def _sync_file(self, file: int, content: bytes) -> None:
        self._durable[file] = content
        self._changes = [c for c in self._changes if not (isinstance(c, _Resize) and c.file == file)]

    def _link(self, path: str) -> int:
        key = self._key(path)
        file = self._names.get(key)
        if file is None:
            file = self._files = self._files + 1
            self._names[key] = file
            self._durable[file] = b""
            self._changes.append(_Link(key, file))
            with open(path, "ab"):
                pass
        return file

    def _resized(self, file: int, size: int) -> None:
        self._changes.append(_Resize(file, size))

    def _adopt(self) -> None:
        for directory, _, names in os.walk(self._root):
            for name in names:
                path = os.path.join(directory, name)
                self._files += 1
                self._names[self._key(path)] = self._files
                self._durable[self._files] = self._content(path)
        self._durable_names = dict(self._names)

    def _content(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def _key(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self._root)


def _directories(change: _Change) -> set[str]:
    """The directories whose names a change touches."""
    match change:
        case _Link(path, _) | _Unlink(path):
            return {os.path.dirname(path) or "."}
        case _Rename(old, new):
            return {os.path.dirname(old) or ".", os.path.dirname(new) or "."}
    return set()


def _mixed(durable: bytes, now: bytes, size: int, random: Random, share: float) -> bytes:
    """Content of a length: durable, but each sector that was written since is there with some probability."""
    content = bytearray(durable[:size].ljust(size, b"\0"))
    for start in range(0, min(size, len(now)), SECTOR):
        end = min(start + SECTOR, size)
        sector = now[start:end]
        if content[start : start + len(sector)] != sector and random.random() < share:
            content[start : start + len(sector)] = sector
    return bytes(content)
