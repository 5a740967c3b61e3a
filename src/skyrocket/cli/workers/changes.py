"""Which Python files of a folder have changed since the last look; for --reload."""

import os
from pathlib import Path
from typing import Final

_MOST_FILES: Final = 20_000
_PASSED_OVER: Final = frozenset({"__pycache__", "node_modules", "site-packages"})


class Changes:
    """Looks at times of modification: costs nothing between two looks, and needs no library."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known = self._times()

    def found(self) -> list[Path]:
        """What is new, gone or different since the last call."""
        now = self._times()
        changed = sorted(path for path in now.keys() | self._known.keys() if now.get(path) != self._known.get(path))
        self._known = now
        return changed

    def _times(self) -> dict[Path, int]:
        times: dict[Path, int] = {}
        for folder, below, files in os.walk(self._folder):
            below[:] = [name for name in below if name not in _PASSED_OVER and not name.startswith(".")]
            for name in files:
                if name.endswith(".py") and len(times) < _MOST_FILES:
                    path = Path(folder, name)
                    try:
                        times[path] = path.stat().st_mtime_ns
                    except OSError:  # an editor has just replaced it
                        continue
        return times
