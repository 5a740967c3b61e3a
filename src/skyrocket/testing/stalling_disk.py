"""A real disk that stands still on demand: for tests and benchmarks that run as root on Linux.

    outer file system (an image on a loop device)      freezing it lets the device below the inner one stand still
      └─ image ─▶ loop device ─▶ inner file system     reads of cached pages go on; whatever waits for the device waits

Freezing the inner one itself is harder: then every first touch of a page waits, too, as during a snapshot of a volume.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_FREEZE: Final = 0xC0045877  # FIFREEZE and FITHAW of linux/fs.h
_THAW: Final = 0xC0045878
_OUTER_MIB: Final = 3072  # sparse: what is written is what it takes
_INNER_MIB: Final = 2560


class NoStallingDisk(Exception):
    """This machine cannot make one; says why."""


class StallingDisk:
    """A directory on a disk of its own."""

    def __init__(self, outer: Path, inner: Path) -> None:
        self.folder = inner
        self._outer = outer

    @contextlib.contextmanager
    def stalled(self, *, frozen: bool = False) -> Iterator[None]:
        """Let the device stand still; or freeze the file system itself."""
        fd = os.open(self.folder if frozen else self._outer, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _FREEZE, 0)
            try:
                yield
            finally:
                fcntl.ioctl(fd, _THAW, 0)
        finally:
            os.close(fd)

    def stall(self, seconds: float, *, frozen: bool = False) -> tuple[float, float]:
        """The same for some seconds; returns from when to when, by time.perf_counter."""
        began = time.perf_counter()
        with self.stalled(frozen=frozen):
            threading.Event().wait(seconds)
        return began, time.perf_counter()


@contextlib.contextmanager
def stalling_disk(work: Path) -> Iterator[StallingDisk]:
    """Make one below a directory, and remove it; raises NoStallingDisk where that is not possible."""
    if os.geteuid() != 0:
        raise NoStallingDisk("only root can mount an image")
    missing = [tool for tool in ("mkfs.ext4", "mount", "umount") if shutil.which(tool) is None]
    if missing:
        raise NoStallingDisk(f"{', '.join(missing)} not found")
    work.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=work, prefix="stalling-")))
        outer = _mounted(stack, base / "outer.img", _OUTER_MIB, base / "outer")
        inner = _mounted(stack, outer / "inner.img", _INNER_MIB, base / "inner")
        yield StallingDisk(outer, inner)


def _mounted(stack: contextlib.ExitStack, image: Path, mib: int, folder: Path) -> Path:
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(mib << 20)
    _run("mkfs.ext4", "-q", "-F", "-m", "0", str(image))
    _run("mount", "-o", "loop", str(image), str(folder))
    stack.callback(_run, "umount", str(folder))
    return folder


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise NoStallingDisk(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
