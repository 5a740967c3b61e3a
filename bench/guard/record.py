"""What was measured before, and whether today's costs are worse."""

import json
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

ALLOWED = 0.15  # by so much a cost may grow before it counts


class Verdict(Enum):
    """What became of a row."""

    AS_BEFORE = "as before"
    BETTER = "better"  # worth recording, so that it is not lost again
    WORSE = "worse"
    NEW = "not recorded"
    GONE = "not measured"

    @property
    def fails(self) -> bool:
        """A row that nobody measures guards nothing."""
        return self in (Verdict.WORSE, Verdict.GONE)


@dataclass(frozen=True)
class Record:
    """Costs by row, and where they are from."""

    date: str
    python: str
    rows: Mapping[str, float]


@dataclass(frozen=True)
class Compared:
    """One line of the table."""

    name: str
    before: float | None
    now: float | None

    @property
    def verdict(self) -> Verdict:
        if self.now is None:
            return Verdict.GONE
        if self.before is None:
            return Verdict.NEW
        if self.now > self.before * (1 + ALLOWED):
            return Verdict.WORSE
        return Verdict.BETTER if self.now < self.before / (1 + ALLOWED) else Verdict.AS_BEFORE


def compare(recorded: Mapping[str, float], measured: Mapping[str, float], families: Iterable[str]) -> list[Compared]:
    """Every row of either side that belongs to one of the families, in the order in which it was recorded."""
    names = [name for name in (*recorded, *measured) if name.partition(":")[0] in families]
    return [Compared(name, recorded.get(name), measured.get(name)) for name in dict.fromkeys(names)]


def best_of(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """The smaller cost of each row: what disturbed one run made it dearer, not cheaper."""
    return {name: min(first.get(name, cost), cost) for name, cost in second.items()}


def middle_of(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each row: a lucky run would be a limit that no later one keeps."""
    return {name: statistics.median_high([rows[name] for rows in measured]) for name in measured[0]}


def read(path: Path) -> Record:
    """What is recorded; raises SystemExit with the next step where nothing is."""
    try:
        return Record(**json.loads(path.read_text()))
    except FileNotFoundError:
        raise SystemExit(f"no {path}: record the costs of a good state first, with --record") from None


def write(path: Path, rows: Mapping[str, float]) -> None:
    """Today's costs become what later ones are compared with."""
    record = Record(datetime.now(UTC).strftime("%Y-%m-%d"), platform.python_version(), dict(rows))
    rounded = {**asdict(record), "rows": {name: round(cost, 3) for name, cost in record.rows.items()}}
    path.write_text(json.dumps(rounded, indent=2, ensure_ascii=False) + "\n")
