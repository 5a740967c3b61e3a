"""The lake's versions in order, and what they add up to."""

import json
import urllib.parse
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from skyrocket.pipeline.file_systems import is_remote
from skyrocket.pipeline.lake.files import BOOKS, LakeFiles, shown
from skyrocket.pipeline.lake.local_files import LocalFiles
from skyrocket.pipeline.lake.manifest import Change, LakeDamaged, LakeState
from skyrocket.pipeline.lake.remote_files import RemoteFiles

SNAPSHOT_EVERY = 50  # versions


@dataclass(frozen=True)
class Lake:
    """Parquet files and their bookkeeping, in a directory or at a URI; making one touches nothing."""

    location: str | Path

    def __str__(self) -> str:
        return shown(str(self.location))

    @property
    def is_remote(self) -> bool:
        return is_remote(str(self.location))

    @property
    def root(self) -> Path:
        """Of a lake on this machine."""
        assert not self.is_remote, "there is no path to it"
        text = str(self.location)
        return Path(urllib.parse.unquote(urllib.parse.urlsplit(text).path) if text.startswith("file:") else text)

    @property
    def books(self) -> Path:
        """Of a lake on this machine."""
        return self.root / BOOKS

    @cached_property
    def files(self) -> LakeFiles:
        return RemoteFiles(str(self.location)) if self.is_remote else LocalFiles(self.root)

    @property
    def is_begun(self) -> bool:
        return self.files.exists(BOOKS)

    def state(self) -> LakeState:
        """What the lake holds now: the newest snapshot and the versions behind it."""
        snapshots = _numbers(self.files.names(f"{BOOKS}/snapshots"))
        state = LakeState.from_json(self._loaded(_snapshot(snapshots[-1]))) if snapshots else LakeState()
        versions = _numbers(self.files.names(f"{BOOKS}/versions"))
        there = set(versions)
        while state.version + 1 in there:
            state.apply(Change.from_json(self._loaded(_version(state.version + 1))))
        if stray := [number for number in versions if number > state.version]:
            raise LakeDamaged(
                f"{self}: version {state.version + 1} is missing but {min(stray):020d}.json exists; "
                "restore the missing file from a backup, or begin a new lake"
            )
        return state

    def publish(self, change: Change, state: LakeState) -> bool:
        """Make a change the next version after `state`; False when another writer was faster (look again)."""
        state.apply(change)
        if not self.files.create(_version(state.version), _dumped(asdict(change))):
            return False
        if state.version % SNAPSHOT_EVERY == 0:
            self.files.replace(_snapshot(state.version), _dumped(state.to_json()))
        return True

    def _loaded(self, path: str) -> dict[str, Any]:
        place = f"{self}/{path}"
        try:
            value = json.loads(self.files.read(path))
        except ValueError as error:
            raise LakeDamaged(
                f"{place} is not JSON ({error}); restore it from a backup, or begin a new lake"
            ) from error
        if not isinstance(value, dict):
            raise LakeDamaged(f"{place} holds no JSON object; restore it from a backup, or begin a new lake")
        return value


def _version(number: int) -> str:
    return f"{BOOKS}/versions/{number:020d}.json"


def _snapshot(number: int) -> str:
    return f"{BOOKS}/snapshots/{number:020d}.json"


def _numbers(names: list[str]) -> list[int]:
    """Of files that are whole: what is being written has another name."""
    return sorted(int(stem) for name in names if (stem := name.removesuffix(".json")) != name and stem.isdigit())


def _dumped(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()
