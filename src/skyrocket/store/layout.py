"""Where the files of a store stand."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StorePaths:
    """Names under the root of a store directory, as RocketMQ has them."""

    root: str

    @property
    def commit_log(self) -> str:
        return os.path.join(self.root, "commitlog")

    @property
    def consume_queue(self) -> str:
        return os.path.join(self.root, "consumequeue")

    @property
    def batch_consume_queue(self) -> str:
        return os.path.join(self.root, "batchconsumequeue")

    @property
    def consume_queue_ext(self) -> str:
        return os.path.join(self.root, "consumequeue_ext")

    @property
    def index(self) -> str:
        return os.path.join(self.root, "index")

    @property
    def config(self) -> str:
        return os.path.join(self.root, "config")

    @property
    def checkpoint(self) -> str:
        return os.path.join(self.root, "checkpoint")

    @property
    def abort(self) -> str:
        return os.path.join(self.root, "abort")

    @property
    def lock(self) -> str:
        return os.path.join(self.root, "lock")

    @property
    def timer_log(self) -> str:
        return os.path.join(self.root, "timerlog")

    @property
    def timer_wheel(self) -> str:
        return os.path.join(self.root, "timerwheel")

    @property
    def timer_checkpoint(self) -> str:
        return os.path.join(self.config, "timercheck")

    @property
    def manifest(self) -> str:
        """Ours; RocketMQ leaves it alone."""
        return os.path.join(self.root, "skyrocket.manifest")


def is_directory_name(name: str) -> bool:
    """Whether a topic can have a directory of its own."""
    return name not in ("", ".", "..") and "/" not in name and "\0" not in name


def offset_name(offset: int) -> str:
    """The name of a file that begins at an offset: 20 digits."""
    return f"{offset:020d}"


def parse_offset_name(name: str) -> int | None:
    """The offset that a file name means; None for any other name."""
    return int(name) if len(name) == 20 and name.isascii() and name.isdigit() else None
