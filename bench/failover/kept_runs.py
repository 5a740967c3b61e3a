"""Runs that were measured, kept from one start to the next: fifty of every set last longer than one sitting."""

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class KeptRuns:
    """A file per part, a line per run. Only runs of this version count: others would be of another program."""

    folder: Path
    version: str

    def of(self, part: str) -> list[float]:
        """Seconds of each run of a part."""
        path = self._path(part)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        runs = [json.loads(line) for line in lines]
        return [float(run["seconds"]) for run in runs if run["version"] == self.version]

    def add(self, part: str, seconds: float) -> None:
        """Keep one more, at once: what comes next may be stopped."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._path(part).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"version": self.version, "seconds": round(seconds, 3)}) + "\n")

    def forget(self, part: str) -> None:
        self._path(part).unlink(missing_ok=True)

    def _path(self, part: str) -> Path:
        return self.folder / f"{part}.jsonl"
