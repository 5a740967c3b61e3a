"""Skyrocket's manifest as readers need it: which queues were deleted while their records are still in the log."""

import json
from pathlib import Path
from typing import Any

from skyrocket.format.crc import checked_text
from skyrocket.format.store_names import MANIFEST


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
