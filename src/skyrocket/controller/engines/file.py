"""One durable file for one controller: nothing is replicated, and who loses the disk loses the decisions.

    crc32 of the rest, 8 hexadecimal digits, newline
    {"format":1,"leadership":7,"documents":{"broker-a":{"version":12,"content":{…}}}}

It is replaced as a whole by every write. Whoever starts on it locks it and counts the leadership up. There is no backup
that is fallen back on: an older state would give an epoch twice.
"""

import asyncio
import base64
import fcntl
import logging
import os
import threading
import zlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

import orjson

from skyrocket.controller.engines.engine import (
    Document,
    EngineError,
    EngineUnavailable,
    Member,
    Overtaken,
    Standing,
    Told,
)
from skyrocket.errors import CorruptFile

_logger = logging.getLogger(__name__)

_FORMAT: Final = 1
_SUM_LENGTH: Final = 8


class FileInUse(EngineError):
    """Another controller has the file."""


class FileDisk(Protocol):
    """What this needs of `store.disk.Disk`."""

    def make_directory(self, path: str) -> None: ...

    def read_file(self, path: str) -> bytes: ...

    def replace_file(self, path: str, data: bytes) -> None: ...


class FileEngine:
    """Leads from the moment it joins until it is closed."""

    def __init__(self, disk: FileDisk, path: str) -> None:
        self._disk = disk
        self._path = os.path.abspath(path)
        self._lock_fd: int | None = None
        self._leadership = 0
        self._documents: dict[str, Document] = {}
        self._is_known = False  # whether `_documents` is what the file holds
        self._file_turn = threading.Lock()  # who reads after a write that took too long waits for its end
        self.description = f"the file {self._path}, which is not replicated"

    async def join(self, me: Member, told: Told) -> None:
        """Raises FileInUse, CorruptFile or EngineUnavailable: there is nothing to wait for."""
        try:
            await asyncio.to_thread(self._open)
        except OSError as error:
            raise EngineUnavailable(
                f"{self._path} cannot be used: {error.strerror}. Choose another place with controllerStore=file:PATH"
            ) from error
        told(Standing(self._leadership, me, (me,)))

    async def documents(self) -> Mapping[str, Document]:
        if not self._is_known:
            try:
                await asyncio.to_thread(self._load)
            except OSError as error:
                raise EngineUnavailable(f"{self._path} cannot be read: {error.strerror}") from error
        return dict(self._documents)

    async def write(self, leadership: int, name: str, content: bytes | None, version: int | None) -> int | None:
        held = self._documents.get(name)
        if leadership != self._leadership or version != (None if held is None else held.version):
            raise Overtaken(f"{name} has another version than {version}, or {leadership} is over")
        after = dict(self._documents)
        if content is None:
            after.pop(name, None)
        else:
            after[name] = Document(content, 1 if version is None else version + 1)
        self._is_known = False
        try:
            await asyncio.to_thread(self._save, after)
        except OSError as error:
            raise EngineUnavailable(f"{self._path} cannot be written: {error.strerror}") from error
        self._documents = after
        self._is_known = True
        return None if content is None else after[name].version

    async def close(self) -> None:
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    # ── the file; in a thread, because a disk may be slow ────────────────────────────────────────────────────────────

    def _open(self) -> None:
        self._disk.make_directory(os.path.dirname(self._path))
        lock_fd = os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock_fd)
            raise FileInUse(
                f"{self._path} is used by another controller. One file serves one controller; "
                "several keep their state in ZooKeeper or etcd (controllerStore)"
            ) from None
        self._lock_fd = lock_fd
        self._load()
        self._leadership += 1
        self._save(self._documents)

    def _load(self) -> None:
        try:
            with self._file_turn:
                data = self._disk.read_file(self._path)
        except FileNotFoundError:
            data = b""
            _logger.warning("a controller begins without replica sets path=%s", self._path)
        leadership, self._documents = self._decoded(data) if data else (0, {})
        self._leadership = max(self._leadership, leadership)
        self._is_known = True

    def _save(self, documents: Mapping[str, Document]) -> None:
        content = orjson.dumps(
            {
                "format": _FORMAT,
                "leadership": self._leadership,
                "documents": {
                    name: {"version": each.version, "content": base64.b64encode(each.content).decode()}
                    for name, each in documents.items()
                },
            }
        )
        with self._file_turn:
            self._disk.replace_file(self._path, b"%08x\n" % zlib.crc32(content) + content)

    def _decoded(self, data: bytes) -> tuple[int, dict[str, Document]]:
        given, _, content = data.partition(b"\n")
        if len(given) != _SUM_LENGTH or given != b"%08x" % zlib.crc32(content):
            raise self._corrupt("its checksum is wrong")
        try:
            found: dict[str, Any] = orjson.loads(content)
            if found["format"] != _FORMAT:
                raise self._corrupt(f"its format is {found['format']!r}, not {_FORMAT}")
            documents = {
                name: Document(base64.b64decode(each["content"], validate=True), int(each["version"]))
                for name, each in found["documents"].items()
            }
            return int(found["leadership"]), documents
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._corrupt(f"it is not what a controller writes: {error!r}") from error

    def _corrupt(self, reason: str) -> CorruptFile:
        return CorruptFile(
            self._path,
            reason,
            "Put a copy of its last state there. To begin anew, move it away while all brokers are stopped and remove "
            "the brokerIdentity files of their stores: epochs that brokers know must not be given again",
        )
