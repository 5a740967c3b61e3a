"""The staging tree of a rebuild, and its exchange for what the store has: by rename, under the store's lock.

<target>/rebuild.staging/plan.json        which rebuild this is; another one starts anew
                         done/            splits that are finished
                         keys/            index keys by split
                         consumequeue/ batchconsumequeue/ index/     what is published
                         replaced/        what it replaces, until all is done
"""

import fcntl
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skyrocket.errors import SkyrocketError, StoreLocked
from skyrocket.format.crc import with_checksum
from skyrocket.format.store_names import LOCK, MANIFEST
from skyrocket.offline.config_files import read_manifest
from skyrocket.pipeline.durable_files import flush_directory, replace_file

STAGING = "rebuild.staging"
_PUBLISHING = "publishing"


class WouldOverwrite(SkyrocketError):
    """There are queues or index files already."""


@contextmanager
def store_locked(target: Path) -> Iterator[None]:
    """Keep brokers out, and refuse while one runs."""
    path = target / LOCK
    if not path.exists():
        yield
        return
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
        except OSError as error:
            raise StoreLocked(
                f"a broker runs on {target}: stop it first, or rebuild into another directory with --target"
            ) from error
        yield


def check_target(target: Path, directories: Sequence[str], *, force: bool) -> None:
    """Refuse to replace what is there, unless forced."""
    there = [name for name in directories if any((target / name).glob("**/*"))]
    if there and not force:
        raise WouldOverwrite(
            f"{target} has {' and '.join(there)} already; --force replaces them when the new ones are complete, "
            "--target names another directory"
        )


def open_staging(staging: Path, plan: dict[str, Any]) -> bool:
    """Make the staging tree; true when it has work of an earlier run of the same plan."""
    text = json.dumps(plan, sort_keys=True)
    known = staging / "plan.json"
    # A run that died while it published has lost part of the tree: the log has everything, so begin again.
    if known.exists() and known.read_text() == text and not (staging / _PUBLISHING).exists():
        return True
    if staging.exists():
        shutil.rmtree(staging)
    staging.mkdir(parents=True)
    known.write_text(text)
    return False


def publish(target: Path, staging: Path, directories: Sequence[str]) -> None:
    """Exchange directories, each by two renames; then the old ones and the tree go."""
    (staging / _PUBLISHING).touch()
    replaced = staging / "replaced"
    replaced.mkdir(exist_ok=True)
    for name in directories:
        new, old = staging / name, target / name
        if old.exists():
            old.rename(replaced / name)
        if new.exists():
            new.rename(old)
    flush_directory(target)
    drop_staging(staging)


def drop_staging(staging: Path) -> None:
    """Leave nothing behind."""
    shutil.rmtree(staging)


def tell_manifest(target: Path, index_files: Sequence[str]) -> None:
    """Let the manifest know the new index files: those that it misses would be built once more."""
    content = read_manifest(target)
    if content is None:
        return
    content |= {"indexFiles": list(index_files), "seal": None}
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
    replace_file(target / MANIFEST, with_checksum(text))
