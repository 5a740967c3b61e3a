"""A finding: one thing about a store that someone should know, where it is, and what to do about it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """Error: data are wrong or missing. Warning: the next start repairs it. Note: unusual, but in order."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


_REBUILD_QUEUES = (
    "Stop the broker, create an empty `abort`, delete `consumequeue` and `checkpoint`; the start rebuilds."
)
_REBUILD_INDEX = "Stop the broker, create an empty `abort`, delete `index` and `checkpoint`; the start rebuilds."
_START = "Start the broker: its recovery repairs this."
REBUILT = "Start the broker: the next start rebuilds it, because the last process did not stop in order."
_RESTORE = "Restore the file from a replica or a backup."
_NOTHING = "Nothing to do."


class FindingKind(Enum):
    """What was found; the second word of each is the usual remedy."""

    # the directory
    UNCLEAN_STOP = "unclean-stop", _START
    LOCK_HELD = "lock-held", "Stop the broker for a consistent view; what is shown may change under the reader."
    STRAY_FILE = "stray-file", "Move it out of the store: RocketMQ refuses to start with files that it does not know."
    FILE_SIZE = "file-size", _RESTORE
    FILE_GAP = "file-gap", _RESTORE
    FILE_SHRANK = "file-shrank", "Run the inspection again; if it stays, restore the file from a replica or a backup."

    # the commit log
    RECORD_DAMAGED = "record-damaged", "Restore the file from a replica; recovery would drop everything behind it."
    BODY_UNREADABLE = "body-unreadable", "Skip the message when consuming: no consumer can inflate it."
    PROPERTIES_ODD = "properties-odd", "Nothing to do: readers leave out what is not a name with a value."
    BLANK_WRONG = "blank-wrong", _RESTORE
    STORE_TIME_STANDS_OUT = "store-time-stands-out", "Restore the file from a replica; queries by time miss it."
    STORE_TIME_STEPS_BACK = "store-time-steps-back", "Check the machine's clock; queries by time may miss messages."
    LOG_TAIL_TORN = "log-tail-torn", _START
    LOG_TAIL_LOST = "log-tail-lost", _RESTORE
    STALE_BYTES = "stale-bytes", "Nothing to do: the next messages overwrite them."
    EMPTY_LAST_FILE = "empty-last-file", "Nothing to do: it was prepared for the next messages."

    # consume queues
    ENTRY_MISSING = "entry-missing", _REBUILD_QUEUES
    ENTRY_WRONG = "entry-wrong", _REBUILD_QUEUES
    ENTRY_ORPHAN = "entry-orphan", _REBUILD_QUEUES
    ENTRY_STALE = "entry-stale", "Nothing to do: the next start drops them."
    ENTRY_EXPIRED = "entry-expired", _NOTHING
    ENTRY_FILLED = "entry-filled", _NOTHING
    EXT_UNIT_MISSING = "ext-unit-missing", _REBUILD_QUEUES
    QUEUES_BEHIND = "queues-behind", _START
    TOPIC_DELETED = "topic-deleted", _NOTHING
    RECORD_SUPERSEDED = "record-superseded", _NOTHING

    # index files
    INDEX_SHAPE = "index-shape", "Give the broker's settings: --conf broker.conf or --set maxHashSlotNum=…."
    INDEX_HEADER = "index-header", _REBUILD_INDEX
    INDEX_CHAIN = "index-chain", _REBUILD_INDEX
    INDEX_ENTRY_WRONG = "index-entry-wrong", _REBUILD_INDEX
    INDEX_KEY_MISSING = "index-key-missing", _REBUILD_INDEX
    INDEX_KEY_TWICE = "index-key-twice", "Nothing to do: a recovery indexed the record again; queries show it twice."
    INDEX_ENTRY_EXPIRED = "index-entry-expired", _NOTHING
    INDEX_ENTRY_STALE = "index-entry-stale", "Nothing to do: queries skip entries without a record."
    INDEX_BEHIND = "index-behind", _START
    INDEX_ABSENT = "index-absent", "Set messageIndexEnable=true if messages should be found by key."

    # checkpoint, configuration, timers
    CHECKPOINT_WRONG = "checkpoint-wrong", "Delete the file: a missing checkpoint is always safe, recovery scans more."
    CHECKPOINT_MISSING = "checkpoint-missing", "Nothing to do: recovery scans more."
    CONFIG_UNREADABLE = "config-unreadable", "Restore it; the broker falls back to the .bak file, which is older."
    OFFSET_OUT_OF_RANGE = "offset-out-of-range", "Reset the group's offset (mqadmin resetOffsetByTime)."
    TOPIC_UNLISTED = "topic-unlisted", "Create the topic again (mqadmin updateTopic), or its messages cannot be read."
    TIMER_LOG_WRONG = "timer-log-wrong", "Delete `timerwheel`, `timerlog` and `config/timercheck`; the start rebuilds."
    TIMER_WHEEL_WRONG = (
        "timer-wheel-wrong",
        "Delete `timerwheel`, `timerlog` and `config/timercheck`; the start rebuilds.",
    )

    def __init__(self, code: str, remedy: str) -> None:
        self.code = code
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Finding:
    """`file` is relative to the store; `position` is the byte in that file."""

    kind: FindingKind
    severity: Severity
    file: str
    position: int | None
    what: str
    remedy: str


class Findings:
    """Collects findings; of many alike in one file it keeps the first and counts the rest."""

    def __init__(self, alike: int = 20) -> None:
        self._alike = alike
        self._kept: list[Finding] = []
        self._seen: Counter[tuple[FindingKind, Severity, str]] = Counter()

    def add(
        self,
        kind: FindingKind,
        severity: Severity,
        file: str,
        what: str,
        *,
        position: int | None = None,
        remedy: str | None = None,
    ) -> None:
        """Remember one finding."""
        same = (kind, severity, file)
        self._seen[same] += 1
        if self._seen[same] <= self._alike:
            self._kept.append(Finding(kind, severity, file, position, what, remedy or kind.remedy))

    def __iter__(self) -> Iterator[Finding]:
        order = list(Severity)
        yield from sorted(self._kept + self._omitted(), key=lambda finding: order.index(finding.severity))

    def count(self, severity: Severity) -> int:
        """How many there are, with those that were only counted."""
        return sum(number for (_, same, _), number in self._seen.items() if same is severity)

    def _omitted(self) -> list[Finding]:
        return [
            Finding(kind, severity, file, None, f"… and {number - self._alike} more like these", kind.remedy)
            for (kind, severity, file), number in self._seen.items()
            if number > self._alike
        ]
