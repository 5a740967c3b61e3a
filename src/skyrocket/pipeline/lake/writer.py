"""One writer of a lake: stages files, then publishes them all or none.

Publishing is a small write-ahead log. First the whole change goes into `pending/<broker>.json`; from then on it will
happen: staged files are renamed to their places, the version is created, replaced files are deleted, the pending file
goes. A crash in between is rolled forward by the next writer. Before the pending file exists nothing was published, and
the staging directory is swept.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.durable_files import flush_directory, replace_file
from skyrocket.pipeline.lake.manifest import Change, LakeState
from skyrocket.pipeline.lake.versions import Lake


class LakeBusy(SkyrocketError):
    """Another process writes this broker's part of the lake."""


@dataclass(frozen=True, slots=True)
class LakeWriter:
    """The only writer for one broker's records while its lock is held."""

    lake: Lake
    name: str

    @property
    def staging(self) -> Path:
        return self.lake.books / "staging" / self.name

    @property
    def _pending(self) -> Path:
        return self.lake.books / "pending" / f"{self.name}.json"

    def publish(self, change: Change) -> LakeState:
        """Publish what was staged under the same relative paths as `change.added` names."""
        replace_file(self._pending, json.dumps(asdict(change)).encode())
        return self._roll_forward(change)

    def finish_pending(self) -> bool:
        """Complete what a killed writer had begun to publish; True if there was something."""
        if not self._pending.exists():
            return False
        self._roll_forward(Change.from_json(json.loads(self._pending.read_bytes())))
        return True

    def sweep(self) -> None:
        """Forget staged files that were never published."""
        shutil.rmtree(self.staging, ignore_errors=True)
        self.staging.mkdir(parents=True)

    def _roll_forward(self, change: Change) -> LakeState:
        state = self.lake.state()
        if not _is_published(change, state):
            self._move_into_place(change)
            while not self.lake.publish(change, state):
                state = self.lake.state()
        for path in change.removed:
            (self.lake.root / path).unlink(missing_ok=True)
        self._pending.unlink()
        flush_directory(self._pending.parent)
        return state

    def _move_into_place(self, change: Change) -> None:
        touched = set()
        for each in change.added:
            staged, place = self.staging / each.path, self.lake.root / each.path
            if staged.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                staged.replace(place)
                touched.add(place.parent)
            elif not place.exists():
                raise SkyrocketError(f"{place} was to be published, but neither it nor {staged} exists")
        for directory in touched:
            flush_directory(directory)


def _is_published(change: Change, state: LakeState) -> bool:
    """A killed writer may have created the version and not yet removed its pending file."""
    if change.kind == "archive":
        assert change.end > change.begin, "an archive run that covers nothing publishes nothing"
        return state.archived_to.get(change.broker, -1) >= change.end
    return all(each.path in state.files for each in change.added) and not any(
        path in state.files for path in change.removed
    )


@contextmanager
def lake_writer(lake: Lake, name: str) -> Iterator[LakeWriter]:
    """Hold the lock of one broker's part, with pending changes finished and staging empty."""
    lock = lake.books / "locks" / f"{name}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LakeBusy(
                f"another process writes the records of {name} into {lake.root}; "
                f"wait for it, or stop it (its lock: {lock})"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        writer = LakeWriter(lake, name)
        writer.finish_pending()
        writer.sweep()
        yield writer
