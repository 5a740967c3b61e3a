"""What lies in a store directory: found by name only, nothing is read yet; and who holds its lock."""

import fcntl
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from skyrocket.errors import SkyrocketError
from skyrocket.format.dispatch_claims import QueueName
from skyrocket.format.store_names import (
    ABORT,
    BATCH_QUEUES,
    CHECKPOINT,
    COMMIT_LOG,
    CONFIG,
    INDEX,
    LOCK,
    QUEUE_EXTENSIONS,
    QUEUES,
    TIMER_CHECKPOINT,
    TIMER_LOG,
    TIMER_WHEEL,
)
from skyrocket.offline.offset_files import OffsetFiles

_FLOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, process: struct flock of 64-bit Linux


class NotAStore(SkyrocketError):
    """The path is not a store directory."""


@dataclass(frozen=True)
class StoreFiles:
    """The parts of a store; paths may not exist."""

    root: Path
    commit_log: OffsetFiles
    queues: dict[QueueName, OffsetFiles]
    batch_queues: dict[QueueName, OffsetFiles]
    extensions: dict[QueueName, OffsetFiles]
    index_files: list[Path]
    timer_log: OffsetFiles
    strays: list[Path]

    @property
    def unclean(self) -> bool:
        """Whether the last process did not stop in order: its marker is still there."""
        return (self.root / ABORT).exists()

    @property
    def checkpoint(self) -> Path:
        return self.root / CHECKPOINT

    @property
    def lock(self) -> Path:
        return self.root / LOCK

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def timer_wheel(self) -> Path:
        return self.root / TIMER_WHEEL

    @property
    def timer_checkpoint(self) -> Path:
        return self.config / TIMER_CHECKPOINT

    def name_of(self, path: Path) -> str:
        """A path as findings show it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def locate(self, files: OffsetFiles, offset: int) -> tuple[str, int | None]:
        """The file that holds a byte, as findings show it, and where in it; only the directory when no file does."""
        file = files.file_of(offset)
        return (
            (self.name_of(files.directory), None) if file is None else (self.name_of(file.path), offset - file.offset)
        )


def find_store_files(root: Path) -> StoreFiles:
    """Look around in a store; raises NotAStore with what to try instead."""
    if log_directory(root) == root:
        raise NotAStore(f"{root} is not a store: it holds the log alone. Did you mean {root.parent}?")
    strays: list[Path] = []
    return StoreFiles(
        root=root,
        commit_log=OffsetFiles(root / COMMIT_LOG),
        queues=queue_directories(root / QUEUES, strays),
        batch_queues=queue_directories(root / BATCH_QUEUES, strays),
        extensions=queue_directories(root / QUEUE_EXTENSIONS, strays),
        index_files=index_paths(root / INDEX, strays),
        timer_log=OffsetFiles(root / TIMER_LOG),
        strays=strays,
    )


def log_directory(place: Path) -> Path:
    """The log of a store, given its root or the directory itself; raises NotAStore with what to try instead."""
    remedy = f"Give the directory that holds `{COMMIT_LOG}`: storePathRootDir."
    if not place.is_dir():
        raise NotAStore(f"{place} {'is a file' if place.exists() else 'does not exist'}. {remedy}")
    if (place / COMMIT_LOG).is_dir():
        return place / COMMIT_LOG
    if place.name == COMMIT_LOG or OffsetFiles(place).files:
        return place
    inner = sorted(place.glob(f"*/{COMMIT_LOG}"))
    hint = f"Did you mean {inner[0].parent}?" if inner else remedy
    raise NotAStore(f"{place} is not a store: it has no directory `{COMMIT_LOG}`. {hint}")


def queue_directories(directory: Path, strays: list[Path] | None = None) -> dict[QueueName, OffsetFiles]:
    """The queues under a directory, by topic and queue id; what does not look like one is a stray."""
    found = {}
    strays = [] if strays is None else strays
    for topic in sorted(directory.iterdir()) if directory.is_dir() else []:
        if not topic.is_dir():
            strays.append(topic)
            continue
        for queue in topic.iterdir():
            if queue.is_dir() and queue.name.isascii() and queue.name.isdigit():
                found[QueueName(topic.name, int(queue.name))] = OffsetFiles(queue)
            else:
                strays.append(queue)
    return dict(sorted(found.items()))


def index_paths(directory: Path, strays: list[Path] | None = None) -> list[Path]:
    """The index files in a directory, oldest first; what is not named as one is a stray."""
    files = []
    strays = [] if strays is None else strays
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if path.is_file() and path.name.isascii() and path.name.isdigit():
            files.append(path)
        else:
            strays.append(path)
    return files


def lock_holder(path: Path) -> int | None:
    """The process that holds the lock of a store, None when nobody does; asks without taking it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        kind, _whence, _start, _length, process = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, question))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return process if kind != fcntl.F_UNLCK else None
