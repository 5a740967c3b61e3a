"""Delay levels: a list of durations on the broker, told by their number from 1 on."""

import re

DEFAULT_DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile(r"([0-9]{1,9})([smhd])")


def parse_delay_levels(text: str) -> tuple[int, ...]:
    """Milliseconds of level 1, 2, …; raises ValueError naming the part that is not a duration."""
    return tuple(_milliseconds(part) for part in text.split())


def _milliseconds(part: str) -> int:
    match = _LEVEL.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is not a delay level; write it as 30s, 5m, 2h or 1d")
    return int(match[1]) * _UNIT_MS[match[2]]
