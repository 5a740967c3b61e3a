"""The nouns of a lake's bookkeeping, and how changes add up to a state. No file is touched here."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from skyrocket.errors import DataError


class LakeDamaged(DataError):
    """The lake's bookkeeping contradicts itself or cannot be read."""


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A Parquet file: where it lies and which records of which log are in it."""

    path: str  # relative to the lake
    topic: str
    date: str  # UTC day of the store time, as in dt=
    broker: str
    rows: int
    size: int
    first_offset: int  # physical offset of its first record
    last_offset: int  # and of its last
    first_store_ms: int
    last_store_ms: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A range of the log that was gone before it could be archived, or damaged."""

    broker: str
    begin: int
    end: int
    cause: str


@dataclass(frozen=True, slots=True)
class Change:
    """What one published version did."""

    kind: str  # archive, compact
    broker: str
    begin: int = 0  # the range of the log that it covers, end exclusive; empty for a compaction
    end: int = 0
    added: tuple[LakeFile, ...] = ()
    removed: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    topics: str | None = None  # the lake's choice of topics, said by the first change
    last_record: tuple[int, int] | None = None  # physical offset and CRC-32 of the last record covered

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        known = {each.name for each in fields(cls)}
        if not known.issuperset(given):
            raise LakeDamaged(
                f"a version of the lake has unknown fields {sorted(set(given) - known)}: written by a newer release?"
            )
        return cls(
            **{
                **given,
                "added": tuple(LakeFile(**each) for each in given.get("added", ())),
                "removed": tuple(given.get("removed", ())),
                "gaps": tuple(Gap(**each) for each in given.get("gaps", ())),
                "last_record": tuple(given["last_record"]) if given.get("last_record") else None,
            }
        )


@dataclass(slots=True)
class LakeState:
    """The sum of all changes up to a version."""

    version: int = 0
    files: dict[str, LakeFile] = field(default_factory=dict)
    begins_at: dict[str, int] = field(default_factory=dict)  # broker → first offset that the lake answers for
    archived_to: dict[str, int] = field(default_factory=dict)  # broker → next offset to archive
    gaps: list[Gap] = field(default_factory=list)
    topics: str | None = None
    last_records: dict[str, tuple[int, int]] = field(default_factory=dict)  # broker → to know its log again by

    def apply(self, change: Change) -> None:
        """Add one change; it must go on exactly where the lake ended, or a record would be missing or doubled."""
        if change.kind == "archive":
            expected = self.archived_to.get(change.broker)
            if expected is not None and change.begin != expected:
                raise LakeDamaged(
                    f"version {self.version + 1} archives {change.broker} from offset {change.begin}, "
                    f"but the lake ends at {expected}"
                )
            if change.end < change.begin:
                raise LakeDamaged(f"version {self.version + 1} ends at {change.end}, before its begin {change.begin}")
            self.begins_at.setdefault(change.broker, change.begin)
            self.archived_to[change.broker] = change.end
        for path in change.removed:
            if self.files.pop(path, None) is None:
                raise LakeDamaged(f"version {self.version + 1} removes {path}, which the lake does not hold")
        for each in change.added:
            if each.path in self.files:
                raise LakeDamaged(f"version {self.version + 1} adds {each.path} a second time")
            self.files[each.path] = each
        self.gaps.extend(change.gaps)
        if change.last_record is not None:
            self.last_records[change.broker] = change.last_record
        if self.topics is None:
            self.topics = change.topics
        self.version += 1

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.files.values())

    def of_topics(self, topics: Iterable[str] | None) -> list[LakeFile]:
        """The files of these topics, or all, in the order of their paths."""
        wanted = None if topics is None else set(topics)
        return [self.files[path] for path in sorted(self.files) if wanted is None or self.files[path].topic in wanted]

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"files": [asdict(each) for each in self.files.values()]}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        return cls(
            **{
                **given,
                "files": {each["path"]: LakeFile(**each) for each in given["files"]},
                "gaps": [Gap(**each) for each in given["gaps"]],
                "last_records": {broker: (offset, crc) for broker, (offset, crc) in given["last_records"].items()},
            }
        )
