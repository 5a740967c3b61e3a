"""Views on the screen: tables for people, JSON lines for programs."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skyrocket.inspector.compare import Comparison
from skyrocket.inspector.findings import Finding, Severity
from skyrocket.inspector.verify import Verification
from skyrocket.inspector.views.view import View, as_bytes

_WIDTH_WITHOUT_TERMINAL = 180
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}


class TableOutput:
    """Rich tables; findings as a list in which each says where it is and what to do."""

    def __init__(self) -> None:
        self._console = Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)

    def show(self, view: View) -> None:
        """Print a view as one table."""
        table = Table(title=view.title, title_justify="left", title_style="bold", header_style="bold", box=None)
        for column in view.columns:
            table.add_column(column.heading, justify="right" if column.is_number else "left", overflow="fold")
        for row in view.rows:
            table.add_row(*(Text(column.show(row.get(column.key))) for column in view.columns))
        if table.row_count:
            self._console.print(table)
        else:
            self._console.print(Text.assemble((view.title, "bold"), f": {view.when_empty}"))
        self._console.print()

    def show_verification(self, result: Verification, *, strict: bool) -> None:
        """Print the findings, worst first, and a last line that says it all."""
        for finding in result.findings:
            self._show_finding(finding)
        counts = ", ".join(f"{result.findings.count(s)} {s.value}s" for s in Severity)
        extent = result.extent
        scope = f"{extent.records} records, log {extent.start} to {extent.end} ({as_bytes(extent.end - extent.start)})"
        bad = result.has_problems(strict=strict)
        verdict = ("PROBLEMS FOUND", "bold red") if bad else ("verified", "bold green")
        self._console.print(Text.assemble(verdict, f": {scope}; {counts}"))

    def show_comparison(self, result: Comparison, places: tuple[Path, Path], *, strict: bool) -> None:
        """Print how far each log reaches, and a last line that says whether they are the same."""
        for place, start, end in zip(places, result.starts, result.ends, strict=True):
            self._console.print(Text(f"{place}: log {start} to {end} ({as_bytes(end - start)})"))
        bad = result.has_problems(strict=strict)
        verdict = ("DIFFERENT", "bold red") if bad else ("identical", "bold green")
        self._console.print(Text.assemble(verdict, f": {comparison_text(result)}"))

    def _show_finding(self, finding: Finding) -> None:
        place = finding.file if finding.position is None else f"{finding.file} @ byte {finding.position}"
        head = Text.assemble(
            (f"{finding.severity.value:8}", _STYLES[finding.severity]), (finding.kind.code, "bold"), f"  {place}"
        )
        self._console.print(head)
        self._console.print(Text(f"        {finding.what}"))
        if finding.severity is not Severity.NOTE:
            self._console.print(Text(f"        → {finding.remedy}", style="dim"))


class JsonOutput:
    """One JSON object per line; `view` says what it is."""

    def show(self, view: View) -> None:
        self._lines({"view": view.name, **row} for row in view.rows)

    def show_verification(self, result: Verification, *, strict: bool) -> None:
        self._lines(_finding_row(finding) for finding in result.findings)
        extent = result.extent
        counts = {severity.value + "s": result.findings.count(severity) for severity in Severity}
        line = {"view": "verification", "ok": not result.has_problems(strict=strict), **counts}
        self._lines([line | {"records": extent.records, "logStart": extent.start, "logEnd": extent.end}])

    def show_comparison(self, result: Comparison, places: tuple[Path, Path], *, strict: bool) -> None:
        logs = zip(places, result.starts, result.ends, strict=True)
        self._lines({"view": "log", "store": str(place), "start": start, "end": end} for place, start, end in logs)
        difference = result.difference
        line = {"view": "comparison", "ok": not result.has_problems(strict=strict), "bytes": len(result.compared)}
        line |= {"what": comparison_text(result), "differsAt": None, "record": None}
        if difference is not None:
            line |= {"differsAt": difference.physical_offset, "record": difference.record_at}
        self._lines([line])

    def _lines(self, rows: Iterable[dict[str, object]]) -> None:
        for row in rows:
            sys.stdout.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")


def comparison_text(result: Comparison) -> str:
    """What a comparison found, in words."""
    compared, difference = result.compared, result.difference
    if not result.has_something_in_common:
        return "the logs have no byte in common, so nothing can be compared"
    text = f"{as_bytes(len(compared))} compared, {compared.start} to {compared.stop}"
    if difference is not None:
        record = "" if difference.record_at is None else f", in the record at {difference.record_at}"
        text = f"at physical offset {difference.physical_offset}{record}: {difference.reason}"
    for word, more in (("first", 0), ("second", 1)):
        if result.ends[more] > result.ends[1 - more]:
            text += f"; the {word} is {as_bytes(result.ends[more] - result.ends[1 - more])} ahead"
        if result.starts[more] < result.starts[1 - more]:
            text += f"; the {word} still has {as_bytes(result.starts[1 - more] - result.starts[more])} that are older"
    return text


def _finding_row(finding: Finding) -> dict[str, object]:
    return {
        "view": "finding",
        "severity": finding.severity.value,
        "kind": finding.kind.code,
        "file": finding.file,
        "position": finding.position,
        "what": finding.what,
        "remedy": finding.remedy,
    }
