"""The files under `config/`, read; Skyrocket's manifest, as readers need it."""

import json
from pathlib import Path
from typing import Any

from skyrocket.errors import DataError
from skyrocket.format.config_files import CONFIG_FILES
from skyrocket.format.crc import checked_text
from skyrocket.format.store_names import MANIFEST
from skyrocket.offline.offset_files import read_at
from skyrocket.offline.store_files import StoreFiles

_MAX_BYTES = 1 << 30


def load_config(store: StoreFiles, name: str) -> Any:
    """The content of a file as the broker would get it: from the file, else from its backup; None without both."""
    for path in (store.config / name, store.config / f"{name}.bak"):
        content, problem = decode_config(path, name)
        if content is not None and problem is None:
            return content
    return None


def decode_config(path: Path, name: str) -> tuple[Any, str | None]:
    """The content of one file, or what is wrong with it; neither when it does not exist."""
    if not path.exists():
        return None, None
    data = read_at(path, 0, _MAX_BYTES)
    if not data.strip():
        return None, "the file is empty"
    try:
        return CONFIG_FILES[name].decode(data), None
    except (DataError, ValueError) as error:
        return None, str(error)


def read_manifest(root: Path) -> dict[str, Any] | None:
    """The content; None when there is none or it is damaged: the broker does not believe it either."""
    path = root / MANIFEST
    if not path.exists():
        return None
    text = checked_text(path.read_bytes())
    return None if text is None else json.loads(text)


def removed_queues(root: Path) -> dict[str, int]:
    """`topic/queue id` of deleted queues → records before this physical offset are not theirs any more."""
    content = read_manifest(root)
    removed: dict[str, int] = content.get("removed", {}) if content is not None else {}
    return removed
