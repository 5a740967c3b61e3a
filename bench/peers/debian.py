"""Programs of Debian packages, fetched once and unpacked beside the other caches; nothing is installed."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.interop.apache import cache_directory, run_bounded

from bench.peers.other_system import Missing

_DOWNLOAD_TIMEOUT_S = 180
_UNPACK_TIMEOUT_S = 60


@dataclass(frozen=True)
class Unpacked:
    """A directory that looks like `/` with some packages installed."""

    root: Path

    def program(self, path: str) -> str:
        """The whole path of a program, given as usr/bin/name."""
        return str(self.root / path)

    @property
    def environment(self) -> dict[str, str]:
        """Where its programs find its libraries."""
        libraries = [str(path) for path in sorted(self.root.glob("**/lib/x86_64-linux-gnu"))]
        libraries += [str(path) for path in sorted(self.root.glob("**/lib/aarch64-linux-gnu"))]
        return {"LD_LIBRARY_PATH": os.pathsep.join(libraries)}


def unpacked(packages: Sequence[str]) -> Unpacked:
    """The packages' files, fetched once; raises Missing where that cannot be."""
    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    root = cache_directory() / "debian" / f"{packages[0]}-{digest}"
    if root.exists():
        return Unpacked(root)
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise Missing(f"{packages[0]} comes from Debian, and {tool} is not here")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        try:
            fetched = run_bounded(["apt-get", "download", *packages], _DOWNLOAD_TIMEOUT_S, cwd=Path(scratch))
        except subprocess.TimeoutExpired:
            raise Missing(f"apt-get did not fetch {packages[0]} within {_DOWNLOAD_TIMEOUT_S} s") from None
        if fetched.exit_code != 0:
            raise Missing(f"apt-get does not give {packages[0]}: {_last_line(fetched.stderr)}")
        for archive in sorted(Path(scratch).glob("*.deb")):
            done = run_bounded(["dpkg", "-x", str(archive), f"{scratch}/root"], _UNPACK_TIMEOUT_S)
            if done.exit_code != 0:
                raise Missing(f"dpkg cannot unpack {archive.name}: {_last_line(done.stderr)}")
        shutil.move(f"{scratch}/root", root)
    return Unpacked(root)


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if not line.startswith("W:")]
    return lines[-1] if lines else "no word why"
