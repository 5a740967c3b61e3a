"""The lake on disk: its versions in order, and what they add up to."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from skyrocket.pipeline.durable_files import create_file, replace_file
from skyrocket.pipeline.lake.manifest import Change, LakeDamaged, LakeState

SNAPSHOT_EVERY = 50  # versions


@dataclass(frozen=True, slots=True)
class Lake:
    """A directory of Parquet files and their bookkeeping; making one touches nothing."""

    root: Path

    @property
    def books(self) -> Path:
        return self.root / "_skyrocket"

    def state(self) -> LakeState:
        """What the lake holds now: the newest snapshot and the versions behind it."""
        snapshots = sorted((self.books / "snapshots").glob("*.json"))
        state = LakeState.from_json(_loaded(snapshots[-1])) if snapshots else LakeState()
        while (path := self._version(state.version + 1)).exists():
            state.apply(Change.from_json(_loaded(path)))
        stray = [each.name for each in (self.books / "versions").glob("*.json") if int(each.stem) > state.version]
        if stray:
            raise LakeDamaged(
                f"{self.root}: version {state.version + 1} is missing but {min(stray)} exists; "
                "restore the missing file from a backup, or begin a new lake"
            )
        return state

    def publish(self, change: Change, state: LakeState) -> bool:
        """Make a change the next version after `state`; False when another writer was faster (look again)."""
        state.apply(change)
        if not create_file(self._version(state.version), _dumped(asdict(change))):
            return False
        if state.version % SNAPSHOT_EVERY == 0:
            replace_file(self.books / "snapshots" / f"{state.version:020d}.json", _dumped(state.to_json()))
        return True

    def _version(self, number: int) -> Path:
        return self.books / "versions" / f"{number:020d}.json"


def _dumped(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()


def _loaded(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise LakeDamaged(f"{path} is not JSON ({error}); restore it from a backup, or begin a new lake") from error
    if not isinstance(value, dict):
        raise LakeDamaged(f"{path} holds no JSON object; restore it from a backup, or begin a new lake")
    return value
