"""Times as people type them: `30s` and `2h`, `2026-01-31T12:00`, and the places in a topic where reading can begin.

earliest        the first message that is still there          latest   what comes from now on
1200            this offset in every queue                     -10      the last ten of every queue
15m, 2h, 1d     so long ago                                    2026-01-31T12:00   this moment (local unless it says)
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Final

from skyrocket.errors import ConfigError
from skyrocket.model import durations

_NUMBER = re.compile(r"-?\d{1,19}")
_LONGEST_SECONDS: Final = 100 * 365.25 * 86400  # more is no time that clocks or brokers know


def seconds_of(text: str) -> float:
    """`1.5`, `30s`, `10m`, `2h`, `1d`; raises ConfigError."""
    try:
        seconds = durations.seconds_of(text)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if seconds > _LONGEST_SECONDS:
        raise ConfigError(f"{text!r} is longer than a hundred years")
    return seconds


def moment_of(text: str) -> datetime:
    """ISO 8601, local time unless it has a zone; raises ConfigError."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text!r} is not a time: write it as 2026-01-31T12:00 or 2026-01-31T12:00:00+01:00"
        ) from None


def ago_or_at(text: str, now_ms: int) -> datetime:
    """`2h` ago, or a time; raises ConfigError."""
    if text[-1:] in ("s", "m", "h", "d"):
        return datetime.fromtimestamp(max(now_ms / 1000 - seconds_of(text), 0), UTC)
    return moment_of(text)


class StartKind(Enum):
    """How a place in a topic was named."""

    EARLIEST = "earliest"
    LATEST = "latest"
    TIME = "time"
    OFFSET = "offset"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin in every queue; `value` is milliseconds, an offset or a count."""

    kind: StartKind
    value: int = 0

    def in_queue(self, first: int, end: int, at_time: int | None = None) -> int:
        """The offset in a queue that has messages from `first` to before `end`; `at_time` answers for a TIME."""
        if self.kind is StartKind.EARLIEST:
            return first
        if self.kind is StartKind.LATEST:
            return end
        if self.kind is StartKind.TIME:
            assert at_time is not None
            wanted = at_time
        else:
            wanted = self.value if self.kind is StartKind.OFFSET else end - self.value
        return min(max(wanted, first), end)


EARLIEST: Final = Start(StartKind.EARLIEST)
LATEST: Final = Start(StartKind.LATEST)


def start_of(text: str, now_ms: int) -> Start:
    """As the module's heading says; raises ConfigError."""
    text = text.strip()
    if text in ("earliest", "latest"):
        return EARLIEST if text == "earliest" else LATEST
    if _NUMBER.fullmatch(text):
        number = int(text)
        return Start(StartKind.LAST, -number) if text.startswith("-") else Start(StartKind.OFFSET, number)
    if durations.DURATION.fullmatch(text):
        return Start(StartKind.TIME, max(now_ms - round(seconds_of(text) * 1000), 0))
    try:
        return Start(StartKind.TIME, round(moment_of(text).timestamp() * 1000))
    except ConfigError:
        raise ConfigError(
            f"--from {text!r} is not a place to begin: write earliest, latest, an offset (1200), the last ten (-10), "
            "a while ago (15m, 2h) or a time (2026-01-31T12:00)"
        ) from None
