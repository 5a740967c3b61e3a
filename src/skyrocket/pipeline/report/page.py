"""The report as one HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import Any, Final

import pyarrow as pa

from skyrocket.pipeline.report.cells import cell_text, is_number
from skyrocket.pipeline.report.plot import Plot
from skyrocket.pipeline.report.words import counted

MOST_ROWS: Final = 500  # a browser is not a database: the Parquet files have all of them

STYLE: Final = """
:root { color-scheme: light dark; --line: #d0d7de; --soft: #f6f8fa; --dim: #59636e; --good: #1a7f37; --bad: #cf222e; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3d444d; --soft: #151b23; --dim: #9198a1; --good: #3fb950; --bad: #f85149; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.verdict { font-weight: 600; } .verdict.good { color: var(--good); } .verdict.bad { color: var(--bad); }
.dim { color: var(--dim); } ul { padding-left: 1.2rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .4rem .7rem; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); position: sticky; top: 0; white-space: nowrap; } tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; } td.number, td.time { white-space: nowrap; } td { overflow-wrap: anywhere; }
td details summary { cursor: pointer; } td pre { margin: .4rem 0 0; font-size: .8rem; white-space: pre-wrap; }
svg { max-width: 100%; height: auto; } svg text { font-family: system-ui, sans-serif !important; }
"""


def html_page(
    title: str, tables: dict[str, pa.Table], plots: Sequence[Plot], findings: int, notes: Sequence[str], made: str
) -> str:
    """The whole page; every text that comes from messages is escaped."""
    kind, verdict = "bad" if findings else "good", counted(findings, "finding")
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f'<h1>{escape(title)}</h1><p><span class="verdict {kind}">{verdict}</span>',
        f' <span class="dim">· {escape(made)}</span></p>',
        "<ul>" + "".join(f"<li>{escape(note)}</li>" for note in notes) + "</ul>" if notes else "",
        *(f"<h2>{escape(plot.title)}</h2>\n<figure>{plot.svg()}</figure>" for plot in plots if plot.x),
        *(_section(name, table) for name, table in tables.items()),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _section(name: str, table: pa.Table) -> str:
    heading = f"<h2>{escape(name.replace('_', ' '))}</h2>"
    if table.num_rows == 0:
        return f'{heading}<p class="dim">none</p>'
    rows = table.slice(0, MOST_ROWS).to_pylist()
    numbers = {column for column in table.column_names if any(is_number(row[column]) for row in rows)}
    head = "".join(_cell("th", column, is_right=column in numbers) for column in table.column_names)
    body = "\n".join(_row(row, numbers) for row in rows)
    more = table.num_rows - len(rows)
    are = "row is" if more == 1 else "rows are"
    rest = f'<p class="dim">{more:,} more {are} in {escape(name)}.parquet</p>' if more else ""
    return f'{heading}<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>{rest}'


def _row(row: dict[str, Any], numbers: set[str]) -> str:
    return f"<tr>{''.join(_value(value, is_right=column in numbers) for column, value in row.items())}</tr>"


def _value(value: Any, *, is_right: bool) -> str:
    """What has several lines, as a traceback, is there as a whole: its last line says what it is, a click shows all."""
    lines = value.strip().splitlines() if isinstance(value, str) else []
    if isinstance(value, datetime):
        return f'<td class="time">{escape(cell_text(value))}</td>'
    if len(lines) < 2:
        return _cell("td", cell_text(value), is_right=is_right)
    return f"<td><details><summary>{escape(cell_text(lines[-1]))}</summary><pre>{escape(value)}</pre></details></td>"


def _cell(kind: str, text: str, *, is_right: bool) -> str:
    side = ' class="number"' if is_right else ""
    return f"<{kind}{side}>{escape(text)}</{kind}>"
