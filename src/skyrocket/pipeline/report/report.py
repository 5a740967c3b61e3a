"""The report of one run of a job."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError
from skyrocket.pipeline.durable_files import replace_file, replaced_file
from skyrocket.pipeline.report.cells import cell_text, is_number
from skyrocket.pipeline.report.page import html_page
from skyrocket.pipeline.report.past_runs import remember
from skyrocket.pipeline.report.plot import Plot
from skyrocket.pipeline.report.words import counted

_ROWS_ON_SCREEN: Final = 20
_WIDTH_WITHOUT_TERMINAL: Final = 180
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass
class Report:
    """Tables by name (each becomes a Parquet file), plots, notes, and how much somebody should look at."""

    title: str
    tables: dict[str, pa.Table]
    plots: Sequence[Plot] = ()
    findings: int = 0
    notes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)  # more for report.json alone

    def __post_init__(self) -> None:
        for name in self.tables:
            if not _FILE_NAME.fullmatch(name):
                raise ValueError(f"a table cannot be called {name!r}: its name is the name of a file")

    def print(self, console: Console | None = None) -> None:
        """Show it: tables of at most twenty rows, then notes and the verdict."""
        console = console or _console()
        console.print(Text(self.title, style="bold underline"))
        for name, table in self.tables.items():
            console.print()
            _print_table(console, name, table)
        console.print()
        for note in self.notes:
            console.print(Text(f"· {note}", style="dim"))
        style = "bold red" if self.findings else "bold green"
        console.print(Text(counted(self.findings, "finding"), style=style))

    def write(self, directory: Path) -> None:
        """Every table as Parquet, `report.html` and, last, `report.json`; files of an earlier run are replaced.

        Pages of earlier runs stay in `runs`, and `runs.html` lists them.
        """
        made = datetime.fromtimestamp(SystemClock().now_ms() / 1000).astimezone()
        try:
            for name, table in self.tables.items():
                with replaced_file(directory / f"{name}.parquet") as file:
                    pq.write_table(table, file)
            page = html_page(
                self.title, self.tables, self.plots, self.findings, self.notes, made.isoformat(" ", "seconds")
            )
            replace_file(directory / "report.html", page.encode())
            remember(directory, page, self.title, self.findings, made)
            text = json.dumps(self._summary(made), ensure_ascii=False, indent=1, default=_plain)
            replace_file(directory / "report.json", f"{text}\n".encode())
        except OSError as error:
            raise ConfigError(f"the report cannot be written to {directory}: {error}; choose another --out") from error

    def _summary(self, made: datetime) -> dict[str, Any]:
        return {
            "title": self.title,
            "made": made,
            "findings": self.findings,
            "notes": list(self.notes),
            **self.facts,
            "tables": {
                name: {"file": f"{name}.parquet", "rows": table.num_rows, "columns": table.column_names}
                for name, table in self.tables.items()
            },
            "rows": {name: table.slice(0, _ROWS_ON_SCREEN).to_pylist() for name, table in self.tables.items()},
        }


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_WIDTH_WITHOUT_TERMINAL)


def _print_table(console: Console, name: str, table: pa.Table) -> None:
    heading = name.replace("_", " ")
    if table.num_rows == 0:
        console.print(Text.assemble((heading, "bold"), ": none"))
        return
    rows = table.slice(0, _ROWS_ON_SCREEN).to_pylist()
    shown = Table(title=heading, title_justify="left", title_style="bold", header_style="bold", box=None)
    for column in table.column_names:
        on_the_right = any(is_number(row[column]) for row in rows)
        shown.add_column(column, justify="right" if on_the_right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell_text(row[column])) for column in table.column_names))
    console.print(shown)
    if table.num_rows > len(rows):
        more = counted(table.num_rows - len(rows), "more row")
        console.print(Text(f"  … {more}: --out writes all", style="dim"))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)
