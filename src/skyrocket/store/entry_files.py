"""Fixed-size entries in files of fixed size, appended at the end: what every kind of consume queue is made of.

New entries stay in memory (the tail) and are written by one `write_out` for many of them. So the cost of an append
does not depend on the number of queues, and files need not stay open or mapped. A crash loses the tail; recovery
reads it again from the log, exactly as it does for entries that RocketMQ had not flushed.

    first_byte … tail_start    in files, `path/<20 digits>`
    tail_start … end           in memory, readers take entries from there
"""

import contextlib
import os

from skyrocket.errors import CorruptFile
from skyrocket.format.store_names import parse_offset_name
from skyrocket.store.disk import Disk
from skyrocket.store.handle_cache import HandleCache


class EntryFiles:
    """The files of one queue and their tail in memory. One thread appends and writes out; any thread reads."""

    __slots__ = (
        "_directory_made",
        "_disk",
        "_handles",
        "changes",
        "directory",
        "entry_size",
        "file_size",
        "removed",
        "starts",
        "tail",
        "touched",
        "trusted",
    )

    def __init__(self, disk: Disk, handles: HandleCache, directory: str, entry_size: int, file_size: int) -> None:
        self._disk = disk
        self._handles = handles
        self.directory = directory
        self.entry_size = entry_size
        self.file_size = -(-file_size // entry_size) * entry_size
        self.starts: list[int] = []  # start bytes of the files on disk
        # Start byte and bytes of the tail. Always replaced as a pair, so that a reader sees both of one moment.
        self.tail: tuple[int, bytearray] = (0, bytearray())
        self.touched: set[int] = set()  # files written since the last sync
        self.trusted: set[int] = set()  # files whose entries are known to be of this queue; the reader adds to it
        self.removed = False  # with its queue: records without an entry are nobody's any more, and get none
        self.changes = 0  # of entries that stand in files: who remembers what was there must look again
        self._directory_made = False

    def load(self) -> bool:
        """Read the names and lengths of the files; recovery then says where the entries end.

        False when a file in the middle is missing: the queue must be built anew.
        """
        whole = True
        starts: list[int] = []
        for name in self._disk.names(self.directory):
            path = os.path.join(self.directory, name)
            start = parse_offset_name(name)
            if start is None or start % self.entry_size:
                raise CorruptFile(
                    path, "a file that does not belong here", "Move it out of the directory and start again"
                )
            length = self._disk.size(path)
            if length == 0:
                self._disk.unlink(path)  # created by a process that died before it could size it
                continue
            if length != self.file_size:
                raise CorruptFile(
                    path,
                    f"is {length} bytes long, files of this queue have {self.file_size}",
                    "Set the file size that the store was written with, or delete the queue's directory: "
                    "it is rebuilt from the log",
                )
            if starts and start != starts[-1] + self.file_size:
                whole = False
            starts.append(start)
        self.starts = starts
        self._directory_made = bool(starts)
        self.tail = (self.files_end, bytearray())
        return whole

    @property
    def files_end(self) -> int:
        return self.starts[-1] + self.file_size if self.starts else 0

    @property
    def first_byte(self) -> int:
        """Where the oldest entry that still exists begins."""
        return self.starts[0] if self.starts else self.tail[0]

    @property
    def end(self) -> int:
        start, data = self.tail
        return start + len(data)

    def path_of(self, start: int) -> str:
        return f"{self.directory}/{start:020d}"  # not os.path.join: every read comes by here

    def read(self, position: int, length: int) -> bytes:
        """Bytes at a position, from one file or from the tail, so possibly fewer than asked for."""
        tail_start, data = self.tail
        if position >= tail_start:
            at = position - tail_start
            return bytes(data[at : at + length])
        start = position - position % self.file_size
        length = min(length, start + self.file_size - position, tail_start - position)
        try:
            return self._handles.read(self.path_of(start), length, position - start)
        except FileNotFoundError:
            return b""  # expired and deleted since the reader looked at the queue's first offset

    def begin_at(self, position: int) -> None:
        """Let an empty queue begin at a position."""
        assert not self.starts
        assert not self.tail[1]
        self.tail = (position, bytearray())

    def overwrite(self, position: int, data: bytes) -> None:
        """Replace entries that are wrong; they lie within one file or in the tail."""
        tail_start, tail = self.tail
        if position >= tail_start:
            at = position - tail_start
            tail[at : at + len(data)] = data
            return
        start = position - position % self.file_size
        self._handles.write(self.path_of(start), data, position - start, self.file_size)
        self.changes += 1
        self.touched.add(start)

    def write_out(self) -> int:
        """Write the tail to its files; returns how many bytes that were."""
        position, data = self.tail[0], bytes(self.tail[1])  # a copy: a failed write must not keep the tail from growing
        if self.removed:
            self.tail = (position, bytearray())
            return 0
        if not data:
            return 0
        if not self._directory_made:
            self._disk.make_directory(self.directory)
            self._directory_made = True
        view = memoryview(data)
        done = 0
        while done < len(data):
            start = position + done - (position + done) % self.file_size
            piece = view[done : done + start + self.file_size - position - done]
            self._handles.write(self.path_of(start), piece, position + done - start, self.file_size)
            if not self.starts or self.starts[-1] < start:
                self.starts.append(start)
                self.trusted.add(start)
            self.touched.add(start)
            done += len(piece)
        self.tail = (position + done, bytearray())
        return done

    def take_touched(self) -> list[int]:
        """Files to be forced to disk; what is written from now on is for the next time."""
        touched, self.touched = self.touched, set()
        return sorted(touched)

    def sync(self, starts: list[int]) -> None:
        """Force files to disk; one that retention has deleted in the meantime needs nothing."""
        for start in starts:
            with contextlib.suppress(FileNotFoundError):
                self._handles.sync(self.path_of(start))

    def truncate(self, position: int) -> None:
        """Drop everything from a position on; the rest of its file reads as zeros.

        A file is never left without entries: RocketMQ would take its first zeros for one.
        """
        tail_start, data = self.tail
        if position >= tail_start:
            self.tail = (tail_start, data[: position - tail_start])
            return
        while self.starts and self.starts[-1] >= position:
            self._drop(self.starts.pop())
        if self.starts and position < self.files_end:
            path = self.path_of(self.starts[-1])
            self._handles.zero_from(path, position - self.starts[-1], self.file_size)
            self.touched.add(self.starts[-1])
        self.tail = (position, bytearray())
        self.changes += 1

    def drop_first_file(self) -> None:
        """Delete the oldest file; the newest one always stays."""
        assert len(self.starts) > 1
        self.changes += 1  # before: a reader who does not find the file any more can tell why
        self._drop(self.starts.pop(0))

    def destroy(self) -> None:
        """Delete all files and the directory."""
        self.tail = (0, bytearray())
        while self.starts:
            self._drop(self.starts.pop())
        self._disk.remove_directory(self.directory)
        self._directory_made = False

    def _drop(self, start: int) -> None:
        path = self.path_of(start)
        self.touched.discard(start)
        self.trusted.discard(start)
        self._handles.forget(path)
        self._disk.unlink(path)
        self.changes += 1
