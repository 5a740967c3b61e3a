"""The files of a store directory as plain bytes, found by their names alone: no code of ours reads them."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class RawStore:
    """Path below the store directory → content."""

    files: dict[str, bytes]

    def folder(self, path: str) -> list[tuple[str, bytes]]:
        """Names and contents of the files directly in a folder, in order."""
        prefix = path + "/"
        below = ((name.removeprefix(prefix), data) for name, data in self.files.items() if name.startswith(prefix))
        return sorted((name, data) for name, data in below if "/" not in name)

    def commit_log(self) -> list[tuple[int, bytes]]:
        """Start offset and content of each log file."""
        return [(int(name), data) for name, data in self.folder("commitlog")]

    def log_bytes(self, physical_offset: int, size: int) -> bytes:
        """A piece of the log, from within one file."""
        start, data = next((s, d) for s, d in reversed(self.commit_log()) if s <= physical_offset)
        return data[physical_offset - start : physical_offset - start + size]

    def queue_bytes(self, kind: str, topic: str, queue_id: int, begin: int) -> bytes:
        """The content of a queue's files from a byte position of the whole queue on."""
        files = self.folder(f"{kind}/{topic}/{queue_id}")
        first = int(files[0][0]) if files else 0
        return b"".join(data for _, data in files)[begin - first :]

    def queues(self, kind: str) -> Iterator[tuple[str, int]]:
        """Topic and number of each queue of a kind, such as consumequeue."""
        yield from sorted({(t, int(q)) for k, t, q, _ in self._queue_files() if k == kind})

    def _queue_files(self) -> Iterator[tuple[str, str, str, str]]:
        for name in self.files:
            match name.split("/"):
                case [kind, topic, queue_id, file]:
                    yield kind, topic, queue_id, file
