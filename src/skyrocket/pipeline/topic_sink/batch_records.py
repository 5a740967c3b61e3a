"""What a sink must know after a crash, as small files beside Spark's own progress.

    <location>/rocketmq-sink/<query>/
        <batch>.committed                            all is stored: send nothing of it again
        <batch>.<topic>.<run>.<partition>.fence      where the queues ended before a task's first send
        <batch>.decided, ….staged                    of exactly-once (outbox.py, publishing.py)

A fence is written before anything is sent, so whoever comes to the same batch again reads the topic from the lowest
fence on. Every task writes its own: no two write the same file, and any file system will do.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.durable_files import flush_directory, flush_file
from skyrocket.pipeline.file_systems import file_system

FOLDER: Final = "rocketmq-sink"
_COMMITTED: Final = ".committed"
_FENCE: Final = ".fence"
_STAGED: Final = ".staged"
_DECIDED: Final = ".decided"
_KEPT: Final = 100  # records of committed batches; Spark itself keeps as many


class RecordsError(SkyrocketError):
    """The place of the records cannot be used."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Where queues ended before a task of some run sent its first message."""

    run: str
    partition: int
    ends: Mapping[MessageQueue, int]


@dataclass(slots=True)
class Decision:
    """What a batch of exactly-once consists of, and where queues ended before the first of it was sent."""

    files: list[str]
    messages: int
    ends: dict[MessageQueue, int]
    bytes: int = 0


class BatchRecords:
    """The records of one query; `location` is a path or a URI that all executors see."""

    def __init__(self, location: str, query: str) -> None:
        try:
            self._fs, root = file_system(location)
            self._folder = f"{root.rstrip('/')}/{FOLDER}/{query}"
            self._fs.create_dir(self._folder)
        except Exception as error:
            raise RecordsError(
                f'checkpointLocation "{location}" cannot be used for the records of an idempotent sink: {error}'
            ) from error

    def is_committed(self, batch: str) -> bool:
        """Whether all of a batch is stored."""
        info: Any = self._fs.get_file_info(f"{self._folder}/{batch}{_COMMITTED}")
        return bool(info.type == fs.FileType.File)

    def fences(self, batch: str, topic: str) -> list[Fence]:
        """What tasks of this batch have left, of this run and of earlier ones."""
        found = []
        for name in self._names():
            if name.startswith(f"{batch}.{topic}.") and name.endswith(_FENCE):
                run, partition = name[len(f"{batch}.{topic}.") : -len(_FENCE)].split(".")
                told = json.loads(self._read(name))
                ends = {MessageQueue(topic, broker, int(number)): end for broker, number, end in told["ends"]}
                found.append(Fence(run, int(partition), ends))
        return found

    def add_fence(self, batch: str, topic: str, fence: Fence) -> None:
        """Write down, before the first send, where the queues end."""
        ends = [[queue.broker_name, queue.queue_id, end] for queue, end in sorted(fence.ends.items())]
        self._write(f"{batch}.{topic}.{fence.run}.{fence.partition}{_FENCE}", {"ends": ends})

    def decision(self, batch: str) -> Decision | None:
        """What a run has decided, whichever it was; None: nothing of the batch is in a topic."""
        if self._fs.get_file_info(f"{self._folder}/{batch}{_DECIDED}").type != fs.FileType.File:
            return None
        told = json.loads(self._read(batch + _DECIDED))
        ends = {MessageQueue(topic, broker, number): end for topic, broker, number, end in told["ends"]}
        return Decision(told["files"], told["messages"], ends, told["bytes"])

    def decide(self, batch: str, decision: Decision) -> None:
        """The batch is what these files hold; from now on it is sent, whatever happens."""
        ends = [[*queue, end] for queue, end in sorted(decision.ends.items())]
        told = {"files": decision.files, "messages": decision.messages, "bytes": decision.bytes, "ends": ends}
        self._write(batch + _DECIDED, told)

    @contextmanager
    def written(self, name: str) -> "Iterator[pa.NativeFile]":
        """A file to be written, by one task; it counts only when a decision names it."""
        with self._fs.open_output_stream(f"{self._folder}/{name}") as stream:
            yield stream
        self._flush(name)

    def opened(self, name: str) -> "pa.NativeFile":
        """A file that a task has written; raises RecordsError where it is gone."""
        try:
            return self._fs.open_input_stream(f"{self._folder}/{name}")
        except FileNotFoundError as error:
            raise RecordsError(
                f"{self._folder}/{name} is gone, and its rows with it: it must stay until its batch is committed"
            ) from error

    def commit(self, batch: str, summary: Mapping[str, Any]) -> None:
        """All is stored; fences and what was put aside are needed no more."""
        self._write(batch + _COMMITTED, summary)
        names = self._names()
        # <batch>.<…>.<…>.<…>.<kind>: a batch's name may have dots, what follows has none.
        self._delete(name for name in names if name.endswith((_FENCE, _STAGED)) and name.rsplit(".", 4)[0] == batch)
        self._delete(name for name in names if name == batch + _DECIDED)
        numbers = [int(name[: -len(_COMMITTED)]) for name in names if name[: -len(_COMMITTED)].isdigit()]
        self._delete(f"{number}{_COMMITTED}" for number in sorted(numbers)[:-_KEPT])

    def _names(self) -> list[str]:
        return [info.base_name for info in self._fs.get_file_info(fs.FileSelector(self._folder))]

    def _read(self, name: str) -> bytes:
        with self._fs.open_input_stream(f"{self._folder}/{name}") as stream:
            return bytes(stream.read())

    def _write(self, name: str, value: Mapping[str, Any]) -> None:
        aside = f"{self._folder}/_{name}.part"
        with self._fs.open_output_stream(aside) as stream:
            stream.write(json.dumps(value, indent=1).encode())
        self._fs.move(aside, f"{self._folder}/{name}")  # whole or not at all
        self._flush(name)

    def _flush(self, name: str) -> None:
        """An object store and HDFS have what they have confirmed; files of this machine must come to the disk."""
        if isinstance(self._fs, fs.LocalFileSystem):
            path = Path(self._folder) / name
            flush_file(path)
            flush_directory(path.parent)

    def _delete(self, names: Iterable[str]) -> None:
        for name in list(names):
            self._fs.delete_file(f"{self._folder}/{name}")
