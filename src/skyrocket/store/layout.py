"""Where the files of a store stand."""

import os
from dataclasses import dataclass

from skyrocket.format import store_names as names


@dataclass(frozen=True, slots=True)
class StorePaths:
    """Names under the root of a store directory, as RocketMQ has them."""

    root: str

    @property
    def commit_log(self) -> str:
        return os.path.join(self.root, names.COMMIT_LOG)

    @property
    def consume_queue(self) -> str:
        return os.path.join(self.root, names.QUEUES)

    @property
    def batch_consume_queue(self) -> str:
        return os.path.join(self.root, names.BATCH_QUEUES)

    @property
    def index(self) -> str:
        return os.path.join(self.root, names.INDEX)

    @property
    def config(self) -> str:
        return os.path.join(self.root, names.CONFIG)

    @property
    def checkpoint(self) -> str:
        return os.path.join(self.root, names.CHECKPOINT)

    @property
    def abort(self) -> str:
        return os.path.join(self.root, names.ABORT)

    @property
    def lock(self) -> str:
        return os.path.join(self.root, names.LOCK)

    @property
    def timer_log(self) -> str:
        return os.path.join(self.root, names.TIMER_LOG)

    @property
    def timer_wheel(self) -> str:
        return os.path.join(self.root, names.TIMER_WHEEL)

    @property
    def timer_checkpoint(self) -> str:
        return os.path.join(self.config, names.TIMER_CHECKPOINT)

    @property
    def manifest(self) -> str:
        """Ours; RocketMQ leaves it alone."""
        return os.path.join(self.root, names.MANIFEST)

    @property
    def cut_log(self) -> str:
        """Ours: what recovery cut off the log, kept for whoever may want it."""
        return os.path.join(self.root, names.CUT_LOG)
