"""Where a copy of messages stands, in a file: what was stopped goes on there, with nothing lost.

Written each second and at the end, behind what is confirmed. Copied twice is what lies between that and the end of the
process: the message that was on its way; after kill -9 or a power cut also those of the last second.
"""

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from skyrocket.errors import ConfigError
from skyrocket.model.message_queue import MessageQueue

if TYPE_CHECKING:
    from skyrocket.client import CopyProgress

_SECONDS: Final = 1.0
_MOST: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """What is copied, and where to."""

    source: str
    target: str
    since_ms: int
    until_ms: int
    tags: str
    key: str | None


class CopyPlace:
    """The file of one copy; `path` None: nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._written_at = float("-inf")

    def read(self) -> "tuple[CopyOrder, CopyProgress] | None":
        """What stands there; None when there is no file yet. Raises ConfigError."""
        from skyrocket.client import CopyProgress

        if self.path is None or not self.path.exists():
            return None
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            order = CopyOrder(**content["order"])
            left = {
                MessageQueue(order.source, str(each["broker"]), _number(each["queueId"])): (
                    _number(each["next"]),
                    _number(each["end"]),
                )
                for each in content["queues"]
            }
            return order, CopyProgress(left, _number(content["copied"]))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{self.path} cannot be read: {error}") from None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ConfigError(f"{self.path} is not the place of a copy ({error!r}): give another --resume") from None

    def keep(self, order: CopyOrder, progress: "CopyProgress", *, now: bool = False) -> None:
        """Write it down, if that was long ago or must be now; raises ConfigError."""
        if self.path is None or (not now and time.monotonic() - self._written_at < _SECONDS):
            return
        content: dict[str, Any] = {
            "order": {name: getattr(order, name) for name in order.__slots__},
            "copied": progress.copied,
            "queues": [
                {"broker": queue.broker_name, "queueId": queue.queue_id, "next": begin, "end": end}
                for queue, (begin, end) in progress.left.items()
            ],
        }
        fresh = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with fresh.open("w", encoding="utf-8") as file:
                json.dump(content, file)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error}") from None
        self._written_at = time.monotonic()


def _number(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= _MOST:
        raise ValueError(f"{value!r:.40} is no offset and no count")
    return value
