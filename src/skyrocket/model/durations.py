"""Lengths of time as people write them: `1.5` and `30s`, `10m`, `2h`, `1d`, `250ms`."""

import re
from typing import Final

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def seconds_of(text: str) -> float:
    """Raises ValueError, with what may be written."""
    match = DURATION.fullmatch(text.strip())
    if match is not None:
        return float(match[1]) * _UNITS[match[2]]
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"{text!r} is not a length of time: write seconds, or 30s, 10m, 2h, 1d")
    return seconds
