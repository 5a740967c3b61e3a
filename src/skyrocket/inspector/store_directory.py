"""What lies in a store directory: found by name only, nothing is read yet."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from skyrocket.errors import SkyrocketError
from skyrocket.inspector.offset_files import OffsetFiles

COMMIT_LOG = "commitlog"
QUEUES = "consumequeue"
BATCH_QUEUES = "batchconsumequeue"
QUEUE_EXTENSIONS = "consumequeue_ext"
INDEX = "index"
CONFIG = "config"


class NotAStore(SkyrocketError):
    """The path is not a store directory."""


class QueueName(NamedTuple):
    """A queue of a topic; light queues have a topic of their own."""

    topic: str
    queue_id: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.queue_id}"


@dataclass(frozen=True)
class StoreDirectory:
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
        return (self.root / "abort").exists()

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def timer_wheel(self) -> Path:
        return self.root / "timerwheel"

    @property
    def timer_checkpoint(self) -> Path:
        return self.config / "timercheck"

    def name_of(self, path: Path) -> str:
        """A path as findings show it."""
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)


def open_directory(root: Path) -> StoreDirectory:
    """Look around in a store; raises NotAStore with what to try instead."""
    if not root.exists():
        raise NotAStore(f"{root} does not exist. Give the directory that holds `commitlog`: storePathRootDir.")
    if not root.is_dir():
        raise NotAStore(f"{root} is a file. Give the directory that holds `commitlog`: storePathRootDir.")
    if not (root / COMMIT_LOG).is_dir():
        inner = [path.parent for path in sorted(root.glob(f"*/{COMMIT_LOG}"))]
        outer = [root.parent] if root.name == COMMIT_LOG else []
        hint = f" Did you mean {(inner + outer)[0]}?" if inner + outer else " Give the directory that holds it."
        raise NotAStore(f"{root} is no store: it has no directory `{COMMIT_LOG}`.{hint}")
    strays: list[Path] = []
    queues = _queues(root / QUEUES, strays)
    batch_queues = _queues(root / BATCH_QUEUES, strays)
    extensions = _queues(root / QUEUE_EXTENSIONS, strays)
    return StoreDirectory(
        root=root,
        commit_log=OffsetFiles(root / COMMIT_LOG),
        queues=queues,
        batch_queues=batch_queues,
        extensions=extensions,
        index_files=_index_files(root / INDEX, strays),
        timer_log=OffsetFiles(root / "timerlog"),
        strays=strays,
    )


def _queues(directory: Path, strays: list[Path]) -> dict[QueueName, OffsetFiles]:
    found = {}
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


def _index_files(directory: Path, strays: list[Path]) -> list[Path]:
    files = []
    for path in sorted(directory.iterdir()) if directory.is_dir() else []:
        if path.is_file() and path.name.isascii() and path.name.isdigit():
            files.append(path)
        else:
            strays.append(path)
    return files
