"""A store with its timer, a producer, and ways to end both."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.timer.rules import TimerRules
from skyrocket.broker.timer.service import TimerService
from skyrocket.broker.timer.timer_counts import TimerCountTable
from skyrocket.config.sections import StoreConfig
from skyrocket.format.config_files import TIMERS
from skyrocket.format.properties import encode_properties
from skyrocket.format.recall_handle import decode_handle, recall_handle
from skyrocket.format.record import decode_records
from skyrocket.format.timer_checkpoint import decode_timer_checkpoint
from skyrocket.model.message import StoredMessage
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult
from skyrocket.store.timer.timer_files import TimerFiles
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import UnforcedDisk, dispatch, small_config

TIMER = "rmq_sys_wheel_timer"
TOPIC = "Orders"
QUEUE = 1


class Timed:
    """Opened when made; messages are put as a sender's are."""

    def __init__(
        self,
        root: Path,
        clock: FakeClock,
        disk: Disk | None = None,
        config: StoreConfig | None = None,
        **changes: Any,
    ) -> None:
        self.root, self.clock = root, clock
        small: dict[str, Any] = {"dispatch_thread": False, "timer_log_file_size": 1040}
        self.config = config or small_config(**(small | changes))
        disk = disk or UnforcedDisk()
        self.store = MessageStore(root, self.config, clock=clock, disk=disk)
        self.store.open()
        self.store.intake.after_put = self.dispatch
        self.files = TimerFiles(disk, self.store.paths, self.config.timer_precision_ms, self.config.timer_log_file_size)
        path = str(root / "config" / "timermetrics")
        self.counts = TimerCountTable(ConfigFile(disk, path, TIMERS.decode, TIMERS.encode), clock)
        self.service = TimerService(self.store, self.files, self.counts, clock, self.config)
        self.service.load()
        service = self.service if self.config.timer_wheel else None
        self.timer_rules = TimerRules(self.config, clock, service)
        self.rules = PutRules((1000,))
        self.rules.timers = self.timer_rules

    def dispatch(self) -> None:
        dispatch(self.store)

    def put(self, body: bytes, *, topic: str = TOPIC, **properties: str) -> PutResult:
        message = PutMessage(topic, QUEUE, body, encode_properties(properties), born_timestamp=7)
        self.rules.apply(message)
        result = self.store.put(message)
        self.dispatch()
        return result

    def put_at(self, body: bytes, deliver_ms: int, key: str = "") -> PutResult:
        return self.put(body, TIMER_DELIVER_MS=str(deliver_ms), UNIQ_KEY=key or body.decode())

    def recall(self, key: str, deliver_ms: int) -> None:
        """As the recall request does; the step of the message must not be over."""
        parked = PutMessage(TOPIC, 0, b"", encode_properties({"TIMER_DELIVER_MS": str(deliver_ms)}))
        self.timer_rules.park(parked)
        handle = decode_handle(recall_handle(parked.properties, "broker-a", key))
        assert int(handle.time) > self.clock.now_ms()
        self.put(b"0", TIMER_DELIVER_MS=handle.time, TIMER_DEL_UNIQKEY=handle.unique_key, UNIQ_KEY=handle.unique_key)

    def fire(self) -> int:
        """Do all that there is to do."""
        passed = 0
        while step := self.service.fire_due(self.clock.now_ms()):
            passed += step
        return passed

    def delivered(self, topic: str = TOPIC, queue_id: int = QUEUE) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        first = max(self.store.min_offset(topic, queue_id), 0)
        while (got := self.store.get(topic, queue_id, first + len(found), 32)).count:
            found += decode_records(got.join())
        return found

    def bodies(self) -> list[bytes]:
        return [each.body for each in self.delivered()]

    def stop(self) -> None:
        self.service.close()
        self.store.close()

    def killed(self, to: Path) -> None:
        """Leave at another place what a killed process leaves: all that the page cache has."""
        copy_of(self, to)
        self.files.close()
        self.store.close()


def copy_of(given: Timed, to: Path) -> None:
    """The store as it is on disk."""
    # Threads of the store go on: what one of them is writing beside a file will have its name in a moment.
    shutil.copytree(given.root, to, copy_function=copy_with_holes, ignore=shutil.ignore_patterns("*.tmp"))


def copy_with_holes(source: str, target: str) -> None:
    """The wheel is large and almost empty."""
    disk, size = Disk(), Path(source).stat().st_size
    with open(source, "rb") as read, open(target, "wb") as written:
        written.truncate(size)
        for start, end in disk.data_extents(read.fileno(), 0, size):
            os.pwrite(written.fileno(), os.pread(read.fileno(), end - start, start), start)


def lose_timer_tail(root: Path, file_size: int = 1040) -> None:
    """As after a power cut: of the timer log only what the checkpoint vouches for."""
    path = root / "config" / "timercheck"
    flushed = decode_timer_checkpoint(path.read_bytes()).log_flushed_position if path.exists() else 0
    for file in files_of(root / "timerlog"):
        keep = min(max(flushed - int(file.name), 0), file_size)
        if keep == 0:
            file.unlink()
        else:
            file.write_bytes(file.read_bytes()[:keep].ljust(file_size, b"\0"))


def files_of(folder: Path) -> Sequence[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


def reopened(given: Timed, **changes: Any) -> Timed:
    given.stop()
    return Timed(given.root, given.clock, **changes)
