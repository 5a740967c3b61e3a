"""Where jobs remember what they have done, and short names for what they were asked."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_DIGEST_LETTERS: Final = 16


def state_directory(environment: Mapping[str, str]) -> Path:
    """The user's state directory: the same from wherever a command is run."""
    home = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "skyrocket"


def digest(values: Mapping[str, str]) -> str:
    """A short name for some values, whatever their order."""
    text = json.dumps(sorted(values.items()), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LETTERS]
