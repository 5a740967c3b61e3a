"""One random harm to a store directory, told by a seed: which file, where, what."""

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
AREAS = (
    "commitlog",
    "commitlog",
    "consumequeue",
    "consumequeue",
    "batchconsumequeue",
    "index",
    "checkpoint",
    "config",
    "skyrocket.manifest",
)


@dataclass(frozen=True)
class Harm:
    """What was done; `begin` and `end` are bytes of the file, and of the log when it is one of the log's."""

    seed: int
    kind: str
    file: str
    begin: int = 0
    end: int = 0
    other: str = ""

    @property
    def log_range(self) -> tuple[int, int] | None:
        """The part of the log that is not as it was; None when the log is whole."""
        if not self.file.startswith("commitlog/"):
            return None
        starts = [int(name.rpartition("/")[2]) for name in (self.file, self.other) if name.startswith("commitlog/")]
        whole_file = self.end == 0
        return min(starts) + self.begin, 1 << 62 if whole_file or len(starts) > 1 else starts[0] + self.end


def harm(root: Path, seed: int, *, live: bool = False) -> Harm:
    """Harm a store. A live store keeps the lengths of its files."""
    choose = random.Random(seed)
    files = choose.choice([files for files in map(_files, (root / area for area in AREAS)) if files])
    kinds: dict[str, Callable[[random.Random, int, Path, list[Path], Path], Harm]] = {
        "flip": _flip,
        "zero": _zero,
        "rubbish": _rubbish,
    }
    if not live:
        kinds |= {"truncate": _truncate, "delete": _delete, "swap": _swap, "duplicate": _duplicate}
    kind = choose.choice([*sorted(kinds), "flip"])
    return kinds[kind](choose, seed, root, files, choose.choice(files))


def _files(area: Path) -> list[Path]:
    """What can be harmed there."""
    files = [area] if area.is_file() else sorted(file for file in area.rglob("*") if file.is_file())
    return [file for file in files if file.stat().st_size]


def _written(file: Path) -> int:
    """Behind the last byte that is not zero; at least 1."""
    return max(len(file.read_bytes().rstrip(b"\0")), 1)


def _put(file: Path, position: int, data: bytes) -> None:
    """In place: a broker may have the file mapped."""
    fd = os.open(file, os.O_RDWR)
    try:
        os.pwrite(fd, data, position)
    finally:
        os.close(fd)


def _name(root: Path, file: Path) -> str:
    return str(file.relative_to(root))


def _flip(choose: random.Random, seed: int, root: Path, _: list[Path], file: Path) -> Harm:
    position = choose.randrange(_written(file))
    byte = file.read_bytes()[position] ^ 1 << choose.randrange(8)
    _put(file, position, bytes([byte]))
    return Harm(seed, "flip", _name(root, file), position, position + 1)


def _overwrite(choose: random.Random, seed: int, root: Path, file: Path, kind: str) -> Harm:
    length = choose.choice([1, 20, 512, PAGE])
    position = choose.randrange(_written(file)) // length * length
    length = min(length, file.stat().st_size - position)
    _put(file, position, bytes(length) if kind == "zero" else choose.randbytes(length))
    return Harm(seed, kind, _name(root, file), position, position + length)


def _zero(choose: random.Random, seed: int, root: Path, _: list[Path], file: Path) -> Harm:
    return _overwrite(choose, seed, root, file, "zero")


def _rubbish(choose: random.Random, seed: int, root: Path, _: list[Path], file: Path) -> Harm:
    return _overwrite(choose, seed, root, file, "rubbish")


def _truncate(choose: random.Random, seed: int, root: Path, _: list[Path], file: Path) -> Harm:
    length = choose.randrange(file.stat().st_size)
    os.truncate(file, length)
    return Harm(seed, "truncate", _name(root, file), length)


def _delete(_: random.Random, seed: int, root: Path, __: list[Path], file: Path) -> Harm:
    file.unlink()
    return Harm(seed, "delete", _name(root, file))


def _swap(choose: random.Random, seed: int, root: Path, files: list[Path], file: Path) -> Harm:
    other = choose.choice(files)
    if other != file:
        aside = file.with_name("aside")
        file.rename(aside)
        other.rename(file)
        aside.rename(other)
    return Harm(seed, "swap", _name(root, file), other=_name(root, other))


def _duplicate(choose: random.Random, seed: int, root: Path, files: list[Path], file: Path) -> Harm:
    other = choose.choice(files)
    if other != file:
        shutil.copyfile(other, file)
    return Harm(seed, "duplicate", _name(root, file))
