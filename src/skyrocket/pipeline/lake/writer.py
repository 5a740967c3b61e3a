"""One writer of a lake: stages files, then publishes them all or none.

Publishing is a small write-ahead log. First the whole change goes into `pending/<broker>.json`; from then on it will
happen: staged files are renamed to their places, the version is created, replaced files are deleted, the pending file
goes. A crash in between is rolled forward by the next writer. Before the pending file exists nothing was published, and
the staging directory is swept.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass

from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.pipeline.lake.files import BOOKS
from skyrocket.pipeline.lake.manifest import Change, LakeState
from skyrocket.pipeline.lake.versions import Lake


@dataclass(frozen=True)
class LakeWriter:
    """The only writer for one broker's records while its lock is held; `check_lock` raises when it is not."""

    lake: Lake
    name: str
    check_lock: Callable[[], None]

    @property
    def staging(self) -> str:
        """Where tasks put files, relative to the lake."""
        return f"{BOOKS}/staging/{self.name}"

    @property
    def _pending(self) -> str:
        return f"{BOOKS}/pending/{self.name}.json"

    def publish(self, change: Change) -> LakeState:
        """Publish what was staged under the same relative paths as `change.added` names."""
        self.check_lock()
        self.lake.files.replace(self._pending, json.dumps(asdict(change)).encode())
        return self._roll_forward(change)

    def finish_pending(self) -> bool:
        """Complete what a killed writer had begun to publish; True if there was something."""
        if not self.lake.files.exists(self._pending):
            return False
        self._roll_forward(Change.from_json(json.loads(self.lake.files.read(self._pending))))
        return True

    def sweep(self) -> None:
        """Forget staged files that were never published."""
        self.lake.files.empty(self.staging)

    def _roll_forward(self, change: Change) -> LakeState:
        state = self.lake.state()
        if not _is_published(change, state):
            self._move_into_place(change)
            self.check_lock()
            while not self.lake.publish(change, state):
                state = self.lake.state()
        self.lake.files.delete(*change.removed)
        self.lake.files.delete(self._pending)
        return state

    def _move_into_place(self, change: Change) -> None:
        moves = []
        for each in change.added:
            staged = f"{self.staging}/{each.path}"
            if self.lake.files.exists(staged):
                moves.append((staged, each.path))
            elif not self.lake.files.exists(each.path):
                raise SkyrocketError(
                    f"{self.lake}/{each.path} was to be published, but neither it nor {self.lake}/{staged} exists"
                )
        self.lake.files.move(moves)


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
    with _locked(lake, name) as check_lock:
        writer = LakeWriter(lake, name, check_lock)
        writer.finish_pending()
        writer.sweep()
        yield writer


def check_writable(lake: Lake, name: str) -> None:
    """Raises ConfigError for a place that cannot be written, LakeBusy where another writes."""
    with _locked(lake, name):
        pass


@contextmanager
def _locked(lake: Lake, name: str) -> Iterator[Callable[[], None]]:
    with ExitStack() as stack:
        try:
            check_lock = stack.enter_context(lake.files.locked(name))
        except SkyrocketError:
            raise
        except Exception as error:  # whatever pyarrow and file systems raise
            said = " ".join(str(error).split())
            raise ConfigError(
                f"the lake {lake} cannot be written: {said}; check the path, its rights and accounts"
            ) from error
        yield check_lock
