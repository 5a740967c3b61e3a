"""Offsets that a member keeps in a file of its own machine, for broadcasting: loaded where they are used."""

import asyncio
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from skyrocket.client.consumer.offset_store import OffsetStore
from skyrocket.errors import DataError, SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ResetOffsets

_logger = logging.getLogger(__name__)


def default_directory() -> Path:
    """RocketMQ's place for such files."""
    return Path(os.environ.get("ROCKETMQ_CLIENT_OFFSETS", "~/.rocketmq_offsets")).expanduser()


class LocalOffsets(OffsetStore):
    """A JSON file that Java clients can read as well."""

    def __init__(self, directory: str | os.PathLike[str] | None, client_id: str, group: str) -> None:
        super().__init__()
        chosen = default_directory() if directory is None else Path(directory).expanduser()
        self._path = chosen / client_id / group / "offsets.json"
        self._saved = self._load()

    async def stored(self, queue: MessageQueue) -> int | None:
        return self._saved.get(queue)

    async def persist(self, queues: Iterable[MessageQueue], *, confirmed: bool = False) -> None:
        news = self.of_queues(queues)
        if all(self._saved.get(queue) == offset for queue, offset in news.items()):
            return
        merged = {**self._saved, **news}
        try:
            await asyncio.to_thread(self._write, merged)
        except OSError as error:
            _logger.error("offsets were not saved path=%s reason=%s", self._path, error)
            return
        self._saved = merged

    def _write(self, offsets: dict[MessageQueue, int]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".json.tmp")
        with open(fresh, "wb") as file:
            file.write(ResetOffsets(offsets).encode())
            file.flush()
            os.fsync(file.fileno())
        if self._path.exists():
            self._path.replace(self._path.with_suffix(".json.bak"))
        fresh.replace(self._path)

    def _load(self) -> dict[MessageQueue, int]:
        """The file, or what was saved before it; raises DataError when both are broken."""
        failures = []
        for path in (self._path, self._path.with_suffix(".json.bak")):
            try:
                data = path.read_bytes()
                if data.strip():
                    return dict(ResetOffsets.decode(data).offsets)
            except FileNotFoundError:
                continue
            except (OSError, SkyrocketError) as error:
                failures.append(f"{path}: {error}")
        if failures:
            raise DataError(f"offsets cannot be read ({'; '.join(failures)}): repair or remove the files")
        return {}
