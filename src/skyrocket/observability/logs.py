"""How servers log: lines for people, for the journal, or JSON; to standard error or to files that are rotated.

Whatever repeats is folded, so that no failing client and no full disk can fill a disk with lines:

    the same line again within a minute        left out; also when only the number of tries has moved on
    more than twenty of one kind in a minute   left out
    the next one that is shown                 says how many were left out
"""

import contextlib
import fcntl
import json
import logging
import logging.handlers
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from skyrocket.errors import ConfigError

FORMATS: Final = ("text", "json", "journal")
_LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR")
_LINE: Final = "%(asctime)s %(levelname)s %(name)s %(message)s"
_CONTEXT: Final = ("topic", "group", "message_id", "queue", "reconsume_times")
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", *_CONTEXT}
_MINUTE: Final = 60.0
_SAME_KIND: Final = 20
_MOST_KNOWN: Final = 2000
# What all who wait for a server say every second: only how often they have tried is new in it.
_TRIES: Final = re.compile(r" \d+ times, next attempt in \d+ ms")


_VARIABLES: Final = {
    "format": "SKYROCKET_LOG_FORMAT",
    "level": "SKYROCKET_LOG_LEVEL",
    "file": "SKYROCKET_LOG_FILE",
    "fileBytes": "SKYROCKET_LOG_FILE_BYTES",
    "fileCount": "SKYROCKET_LOG_FILE_COUNT",
}


@dataclass(frozen=True, slots=True)
class _Said:
    """A value, and how it was said: for complaints."""

    value: str
    how: str


@dataclass(frozen=True, slots=True)
class LogSettings:
    """From variables of the environment, which reach a program in a container, a unit and a shell alike; or options."""

    format: str = "text"
    level: str = "WARNING"
    file: Path | None = None
    file_bytes: int = 64 << 20
    file_count: int = 10

    @classmethod
    def of(cls, environment: Mapping[str, str], options: Sequence[str] = ()) -> "LogSettings":
        """Of SKYROCKET_LOG_FORMAT and the like, then of `format=json` and the like; raises ConfigError."""
        said = {
            key: _Said(environment[name], f"{name}={environment[name]}")
            for key, name in _VARIABLES.items()
            if name in environment
        }
        for option in options:
            key, equals, value = option.partition("=")
            if not equals or key not in _VARIABLES:
                raise ConfigError(f"--log {option}: write one of {', '.join(f'{each}=…' for each in _VARIABLES)}")
            said[key] = _Said(value, f"--log {option}")
        own = cls()
        return cls(
            _choice(said.get("format"), own.format, FORMATS),
            _choice(said.get("level"), own.level, _LEVELS),
            Path(said["file"].value).expanduser() if "file" in said and said["file"].value else None,
            _positive(said.get("fileBytes"), own.file_bytes),
            _positive(said.get("fileCount"), own.file_count),
        )

    def handler(self) -> logging.Handler:
        """Writes as it was asked for; raises ConfigError."""
        made: logging.Handler
        if self.file is None:
            made = logging.StreamHandler(sys.stderr)
        else:
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                made = _OwnFile(
                    self.file,
                    maxBytes=self.file_bytes,
                    backupCount=self.file_count - 1,
                    encoding="utf-8",
                    errors="backslashreplace",  # half a character pair, as of a file name that is no UTF-8
                )
            except BlockingIOError as error:
                raise ConfigError(
                    f"the log file {self.file} belongs to another process, and two would rotate it away from each "
                    "other: give each its own (--log file=…, SKYROCKET_LOG_FILE)"
                ) from error
            except OSError as error:
                raise ConfigError(f"the log file {self.file} cannot be written: {error.strerror}") from error
        made.addFilter(Folding())
        made.setFormatter({"json": JsonLines(), "journal": JournalLines(), "text": TextLines(_LINE)}[self.format])
        return made


class _OwnFile(logging.handlers.RotatingFileHandler):
    """Locked while it is open: the lock goes with the process, however that ends.

    Who renames or deletes it (logrotate) gets a new one under the name. A line that it does not take is not lost in
    silence: standard error has it.
    """

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802
        self._leave_what_was_renamed()
        return bool(super().shouldRollover(record))

    def _leave_what_was_renamed(self) -> None:
        if self.stream is not None and not _is_at(self.stream, self.baseFilename):
            stream, self.stream = self.stream, None
            stream.close()

    def doRollover(self) -> None:  # noqa: N802
        if self.backupCount or self.stream is None:
            super().doRollover()
        else:  # one file is kept, so it begins anew
            self.stream.truncate(0)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        error = sys.exception()
        if not isinstance(error, OSError) or sys.stderr is None:
            super().handleError(record)
            return
        with contextlib.suppress(OSError, ValueError):  # nobody reads standard error either
            why = f"the log file {self.baseFilename} takes no lines ({error.strerror})"
            sys.stderr.write(f"{why}: {self.format(record)}\n")
            sys.stderr.flush()

    def _open(self) -> TextIOWrapper:
        stream = super()._open()
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.close()
            raise
        return stream


def _is_at(stream: TextIOWrapper, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(stream.fileno()), Path(path).stat())
    except FileNotFoundError:
        return False


def _choice(said: _Said | None, own: str, known: tuple[str, ...]) -> str:
    if said is None:
        return own
    found = next((each for each in known if each.lower() == said.value.lower()), None)
    if found is None:
        raise ConfigError(f"{said.how}: choose one of {', '.join(known)}")
    return found


def _positive(said: _Said | None, own: int) -> int:
    if said is None:
        return own
    if not said.value.isdecimal() or int(said.value) < 1:
        raise ConfigError(f"{said.how}: a number from 1 on")
    return int(said.value)


class JsonLines(logging.Formatter):
    """One object per record: time, level, logger, message, what it is about, what was given as `extra`, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        known: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        given = vars(record)
        known |= {name: given[name] for name in _CONTEXT if given.get(name) not in (None, "")}
        known |= {name: value for name, value in given.items() if name not in _OWN}
        if record.exc_info:
            known["traceback"] = self.formatException(record.exc_info)
        return json.dumps(known, default=str, ensure_ascii=False)


class TextLines(logging.Formatter):
    """For people; what was left out stands at the end of the first line."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        left_out: int = getattr(record, "left_out", 0)
        if not left_out:
            return text
        head, *rest = text.split("\n")
        return "\n".join([f"{head} ({left_out} more of these were left out)", *rest])


class JournalLines(TextLines):
    """For systemd's journal, which knows the time; each line says its level as sd-daemon(3) wants it."""

    def __init__(self) -> None:
        super().__init__("%(name)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        level = next((number for least, number in ((40, 3), (30, 4), (20, 6)) if record.levelno >= least), 7)
        return "\n".join(f"<{level}>{line}" for line in super().format(record).split("\n"))


@dataclass(slots=True)
class _Repeated:
    since: float
    shown: int = 0
    left_out: int = 0


class Folding(logging.Filter):
    """Leaves out what repeats; belongs to a handler. The record that is shown next has the number as `left_out`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._known: dict[tuple[str, ...], _Repeated] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is shown."""
        kind = (record.name, record.levelname, str(record.msg))
        with self._lock:
            now = self._monotonic()
            of_kind = self._of(kind, now)
            # What a full kind says is not looked at: a flood of lines that differ would push out how full it is.
            if of_kind.shown >= _SAME_KIND or (same := self._same(kind, record, now)).shown:
                of_kind.left_out += 1
                return False
            same.shown += 1
            of_kind.shown += 1
            if of_kind.left_out:
                record.left_out = of_kind.left_out
                of_kind.left_out = 0
            return True

    def _same(self, kind: tuple[str, ...], record: logging.LogRecord, now: float) -> _Repeated:
        return self._of((*kind, _TRIES.sub("", record.getMessage())), now)

    def _of(self, key: tuple[str, ...], now: float) -> _Repeated:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known = {known: each for known, each in self._known.items() if now - each.since < _MINUTE}
                if len(self._known) >= _MOST_KNOWN:
                    self._known.clear()
            found = self._known[key] = _Repeated(now)
        elif now - found.since >= _MINUTE:
            found.since, found.shown = now, 0
        return found
