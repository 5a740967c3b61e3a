"""Figures as a table or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bench.load.measure import Figures

_COLUMNS = (
    "messages/s",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "server CPU µs/msg",
    "cores",
    "heap MB",
    "private MB",
)


def as_json(figures: Sequence[Figures]) -> str:
    """One line per scenario."""
    return "\n".join(json.dumps(asdict(one), ensure_ascii=False) for one in figures)


def print_table(console: Console, figures: Sequence[Figures]) -> None:
    """One line per scenario, and below it what went wrong."""
    table = Table(
        caption="heap: anonymous memory; private: with pages of mapped files, which are page cache; "
        "load: cores that the generator took, near 1 per process it was the limit itself",
        caption_justify="left",
    )
    table.add_column("scenario")
    for column in (*_COLUMNS, "load"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in figures:
        table.add_row(
            one.name,
            f"{one.rate:,.0f}",
            *(f"{value:.2f}" for value in (one.p50_ms, one.p99_ms, one.p999_ms, one.largest_ms)),
            _or_unknown(one.server_cpu_us, ".2f"),
            _or_unknown(one.server_cores, ".2f"),
            _or_unknown(one.anonymous_mb, ".0f"),
            _or_unknown(one.private_mb, ".0f"),
            f"{one.load_cores:.2f}",
        )
    console.print(table)
    for one in figures:
        for complaint in complaints(one):
            console.print(f"[red]{one.name}: {complaint}", highlight=False)


def complaints(one: Figures) -> list[str]:
    """What makes the figures doubtful."""
    found = [f"{count} × {what}" for what, count in one.errors.items()]
    if one.unanswered:
        found.append(f"{one.unanswered} requests without an answer")
    if one.overdue:
        found.append(f"{one.overdue} requests were due and could not be sent: the server (or the load) is too slow")
    return found


def _or_unknown(value: float | None, form: str) -> str:
    return "?" if value is None else format(value, form)
