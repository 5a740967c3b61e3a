"""The results of a run: on the terminal, in the documentation, as a file."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.peers.comparison import Compared, Pair, ServerResult, WithSlave, compare, compare_pairs
from bench.peers.other_system import OtherResult

BEGIN, END = "<!-- python -m bench.peers --last --write-docs -->", "<!-- end of bench.peers -->"
_COLUMNS = ("what", "Apache RocketMQ", "Skyrocket", "ratio", "of each round", "target", "met")
_OTHER_COLUMNS = (
    *("system", "an acknowledged message", "publish msg/s", "CPU µs", "p50 / p99 ms", "consume msg/s", "CPU µs"),
    *("private MB idle / loaded", "ready s", "load by"),
)


@dataclass
class Run:
    """Everything that one run has measured."""

    date: str
    machine: str
    cores: int
    load_before: float
    settings: str
    apache: list[ServerResult] = field(default_factory=list)  # one for each round
    ours: list[ServerResult] = field(default_factory=list)
    apache_pair: Pair = field(default_factory=dict)
    our_pair: Pair = field(default_factory=dict)
    others: list[OtherResult] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # name → reason
    python: str = ""  # that of our server; runs of former days do not say

    @property
    def title(self) -> str:
        """When, where, how."""
        where = f"{self.machine}, {self.cores} cores; load before {self.load_before:.2f}"
        ours = f"; Skyrocket on {self.python}" if self.python else ""
        return f"Run of {self.date} on {where}{ours}; {self.settings}"

    def save(self, path: Path) -> None:
        """As one JSON object."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Run":
        """What `save` wrote."""
        fields: dict[str, Any] = json.loads(path.read_text())
        for name in ("apache", "ours"):
            fields[name] = [ServerResult.from_json(result) for result in fields[name]]
        for name in ("apache_pair", "our_pair"):  # runs of former days have none
            fields[name] = {setup: WithSlave(**figures) for setup, figures in fields.get(name, {}).items()}
        fields["others"] = [OtherResult(**other) for other in fields["others"]]
        return cls(**fields)


def this_run(settings: str) -> Run:
    """A run that begins now, here."""
    return Run(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=_processor(),
        cores=os.cpu_count() or 1,
        load_before=os.getloadavg()[0],
        settings=settings,
        python=f"Python {platform.python_version()}",
    )


def print_tables(console: Console, run: Run) -> None:
    """Side by side, targets beside the ratios."""
    console.print(run.title, highlight=False)
    if lines := _lines(run):
        console.print(_comparison(lines))
    for result in (*run.apache, *run.ours):
        for phase, measured in result.measured.phases.items():
            if measured.errors:
                console.print(f"[red]{result.name}, {phase}: {measured.errors} errors; {measured.first_error}")
    if run.others:
        others = Table(title="Other systems, each with its own load tool: compare with care", title_justify="left")
        for column in _OTHER_COLUMNS:
            others.add_column(column, justify="left" if column in ("system", "load by") else "right")
        for other in run.others:
            others.add_row(*_other_cells(other))
        console.print(others)
    for name, reason in run.left_out.items():
        console.print(f"{name} left out: {reason}", highlight=False)


def _lines(run: Run) -> list[Compared]:
    lines = compare(run.apache, run.ours) if run.apache or run.ours else []
    return lines + (compare_pairs(run.apache_pair, run.our_pair) if run.apache_pair or run.our_pair else [])


def _comparison(lines: Sequence[Compared]) -> Table:
    table = Table()
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("what", "met") else "right")
    for line in lines:
        table.add_row(*_cells(line), style={None: "", True: "green", False: "red"}[line.met])
    return table


def markdown(run: Run) -> str:
    """The same for docs/internals/performance.md."""
    lines = [run.title, "", f"| {' | '.join(_COLUMNS)} |", "|---|--:|--:|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(_cells(line))} |" for line in _lines(run)]
    if run.others:
        lines += ["", f"| {' | '.join(_OTHER_COLUMNS)} |", "|---|---|" + "--:|" * 7 + "---|"]
        lines += [f"| {' | '.join(_other_cells(other))} |" for other in run.others]
    lines += [line for name, reason in run.left_out.items() for line in ("", f"{name} left out: {reason}")]
    return "\n".join(lines)


def write_docs(path: Path, run: Run) -> None:
    """Put the tables between their two marks."""
    put_between(path, BEGIN, markdown(run), END)


def put_between(path: Path, begin: str, text: str, end: str) -> None:
    """Replace what stands between two marks of a page; the rest stays. Raises ValueError without them."""
    before, found_begin, rest = path.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path} has no {begin} … {end}")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def _cells(line: Compared) -> tuple[str, ...]:
    unit = line.measure.unit
    return (
        line.measure.name,
        *(f"{_number(value)} {unit}" if value is not None else "–" for value in (line.apache, line.ours)),
        f"{line.ratio:.2f} ×" if line.ratio is not None else "",
        ", ".join(f"{ratio:.2f}" for ratio in line.ratios) if len(line.ratios) > 1 else "",
        str(line.measure.wanted or ""),
        {None: "", True: "yes", False: "no"}[line.met],
    )


def _other_cells(other: OtherResult) -> tuple[str, ...]:
    latency = [_number(value) for value in (other.publish_p50_ms, other.publish_p99_ms) if value is not None]
    return (
        other.name,
        other.durability,
        _number(other.publish_rate),
        _number(other.publish_cpu_us),
        " / ".join(latency) or "–",
        "–" if other.consume_rate is None else _number(other.consume_rate),
        "–" if other.consume_cpu_us is None else _number(other.consume_cpu_us),
        f"{_number(other.idle_mb)} / {_number(other.loaded_mb)}",
        _number(other.seconds_to_ready),
        other.tool,
    )


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _processor() -> str:
    """The processor's name where Linux tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()
