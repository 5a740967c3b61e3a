"""The tables: what was measured, and which goals were met."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from bench.replication.backlog import STAYS, Reading
from bench.replication.costs import Cost, kept, median_rate
from bench.replication.following import Following
from bench.replication.servers import ALONE, ASYNC, SETUPS, SYNC

OURS = "Skyrocket"
Costs = dict[str, list[Cost]]


@dataclass
class Results:
    """Of one run; what was left out is empty."""

    costs: dict[str, Costs] = field(default_factory=dict)  # by maker
    following: Following | None = None
    readings: list[Reading] = field(default_factory=list)


@dataclass(frozen=True)
class Goal:
    """One line of the issue's bounds."""

    what: str
    measured: str
    wanted: str
    met: bool


def goals(results: Results) -> list[Goal]:
    """Those that this run can tell about."""
    found: list[Goal] = []
    ours = results.costs.get(OURS)
    if ours is not None:
        lost = 1 - kept(ours, ASYNC, ALONE)
        found.append(Goal("an asynchronous slave costs of the send rate", f"{lost:.0%}", "≤ 15 %", lost <= 0.15))
        share = kept(ours, SYNC, ALONE)
        found.append(Goal("a synchronous slave keeps of it", f"{share:.2f}", "≥ 0.5", share >= 0.5))
    for maker, costs in results.costs.items():
        if ours is not None and maker != OURS:
            ratio = median_rate(ours[SYNC]) / median_rate(costs[SYNC])
            found.append(Goal(f"synchronous pair beside that of {maker}", f"{ratio:.2f} ×", "> 1 ×", ratio > 1))
    if (followed := results.following) is not None:
        rate = followed.followed_mb_s
        measured = f"{rate:.0f} MB/s, {followed.lag_mb:.1f} MB behind"
        found.append(Goal("a slave follows", measured, "≥ 100 MB/s", rate >= 100))
        rate = followed.caught_up_mb_s
        found.append(
            Goal(f"catching up {followed.caught_up_mb:,.0f} MB", f"{rate:.0f} MB/s", "≥ 300 MB/s", rate >= 300)
        )
    for reading in results.readings:
        if reading.name != STAYS:
            what = f"sends kept while a consumer reads its backlog, {reading.name}"
            found.append(Goal(what, f"{reading.kept:.2f}", "≥ 0.9", reading.kept >= 0.9))
    return found


def _cost_rows(results: Results) -> list[list[str]]:
    rows = []
    for maker, costs in results.costs.items():
        for setup in SETUPS:
            found = costs[setup]
            figures = [each.sends for each in found]
            slave = [each.slave_cpu_us for each in found if each.slave_cpu_us is not None]
            rows.append(
                [
                    f"{maker}, {setup}",
                    f"{median_rate(found):,.0f}",
                    f"{kept(costs, setup, ALONE):.2f}",
                    f"{statistics.median(each.p99_ms for each in figures):.1f}",
                    f"{statistics.median(each.server_cpu_us or 0.0 for each in figures):.1f}",
                    f"{statistics.median(slave):.1f}" if slave else "",
                    f"{statistics.median(each.load_cores for each in figures):.2f}",
                ]
            )
    return rows


_COST_HEAD = ["master", "messages/s", "of alone", "99 % ms", "master CPU µs", "slave CPU µs", "load cores"]
_READ_HEAD = [
    "a consumer reads an old backlog",
    "sends before",
    "meanwhile",
    "kept",
    "master CPU µs",
    "meanwhile",
    "read at master",
    "at slave",
]
_GOAL_HEAD = ["goal", "measured", "wanted", "met"]


def _read_rows(results: Results) -> list[list[str]]:
    return [
        [
            reading.name,
            f"{reading.before.rate:,.0f}/s",
            f"{reading.during.rate:,.0f}/s",
            f"{reading.kept:.2f}",
            f"{reading.before.server_cpu_us or 0.0:.1f}",
            f"{reading.during.server_cpu_us or 0.0:.1f}",
            f"{reading.given_by_master:,}",
            f"{reading.given_by_slave:,}",
        ]
        for reading in results.readings
    ]


def tables(results: Results) -> list[tuple[list[str], list[list[str]]]]:
    """Heading and rows of each table that has rows."""
    goal_rows = [[goal.what, goal.measured, goal.wanted, "yes" if goal.met else "no"] for goal in goals(results)]
    every = [(_COST_HEAD, _cost_rows(results)), (_READ_HEAD, _read_rows(results)), (_GOAL_HEAD, goal_rows)]
    return [(head, rows) for head, rows in every if rows]


def remarks(results: Results) -> list[str]:
    """What no table has room for."""
    if results.following is None:
        return []
    master, slave = results.following.cpu_ms_per_mb
    return [f"Catching up takes {master:.2f} ms of the master's CPU and {slave:.2f} ms of the slave's per MB."]


def print_tables(console: Console, results: Results) -> None:
    for head, rows in tables(results):
        table = Table(box=None, header_style="bold")
        for number, heading in enumerate(head):
            table.add_column(heading, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        console.print()
    for remark in remarks(results):
        console.print(remark)


def markdown(results: Results) -> str:
    lines: list[str] = []
    for head, rows in tables(results):
        lines += [_line(head), "|---|" + "--:|" * (len(head) - 1), *map(_line, rows), ""]
    return "\n".join([*lines, *remarks(results)])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
