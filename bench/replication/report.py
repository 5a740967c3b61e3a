"""One table: what was measured, what is wanted of it, and whether it is met."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from bench.replication.backlog import HALF_LOAD, TWO_MACHINES, Backlogs, Meanwhile, Reading
from bench.replication.costs import Cost, kept, median_rate
from bench.replication.following import Following
from bench.replication.servers import ALONE, ASYNC, SETUPS, SYNC

OURS = "Skyrocket"
OTHER = "another program on the slave's cores"
Costs = dict[str, list[Cost]]
_HEAD = ["what", "rate", "kept", "of", "99 % ms", "master CPU µs", "slave CPU µs"]
_HEAD += ["master cores", "load cores", "wanted", "met"]
_KEPT_OF_ALONE = {ASYNC: 0.85, SYNC: 0.5}
_KEPT_OF_BEFORE = 0.9
_FOLLOWED_MB_S, _CAUGHT_UP_MB_S = 100, 300


@dataclass
class Results:
    """Of one run; what was left out is empty."""

    costs: dict[str, Costs] = field(default_factory=dict)  # by maker
    following: Following | None = None
    backlogs: Backlogs | None = None


@dataclass(frozen=True)
class Row:
    """One line; what does not belong to it is empty."""

    what: str
    rate: str
    share: float | None = None  # of what `of` names
    of: str = ""
    p99_ms: float | None = None
    master_cpu_us: float | None = None  # per message
    slave_cpu_us: float | None = None
    master_cores: float | None = None  # that were kept busy
    load_cores: float | None = None
    wanted: str = ""
    met: bool | None = None

    def cells(self) -> list[str]:
        return [
            self.what,
            self.rate,
            _fixed(self.share, 2),
            self.of,
            _fixed(self.p99_ms, 1),
            _fixed(self.master_cpu_us, 1),
            _fixed(self.slave_cpu_us, 1),
            _fixed(self.master_cores, 2),
            _fixed(self.load_cores, 2),
            self.wanted,
            {None: "", True: "yes", False: "no"}[self.met],
        ]


def _fixed(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def rows(results: Results) -> list[Row]:
    """All of the table."""
    found = list(_cost_rows(results.costs))
    if results.following is not None:
        found += _following_rows(results.following)
    if results.backlogs is not None:
        found += _backlog_rows(results.backlogs)
    return found


def _cost_rows(costs: dict[str, Costs]) -> Iterator[Row]:
    ours = costs.get(OURS)
    for maker, found in costs.items():
        for setup in SETUPS:
            least = _KEPT_OF_ALONE.get(setup) if maker == OURS else None
            yield _sends_row(f"{maker}, {setup}", found[setup], kept(found[setup], found[ALONE]), "alone", least)
        if ours is not None and maker != OURS:
            rate = median_rate(ours[SYNC])
            share, of = rate / median_rate(found[SYNC]), f"{maker}, {SYNC}"
            yield Row(f"{OURS}, {SYNC}", f"{rate:,.0f}/s", share, of, wanted="> 1", met=share > 1)


def _sends_row(
    what: str, found: Sequence[Cost], share: float | None = None, of: str = "", least: float | None = None
) -> Row:
    figures = [each.sends for each in found]
    slave = [each.slave_cpu_us for each in found if each.slave_cpu_us is not None]
    return Row(
        what,
        f"{median_rate(found):,.0f}/s",
        share,
        of,
        statistics.median(each.p99_ms for each in figures),
        _master_cpu_us(found),
        statistics.median(slave) if slave else None,
        statistics.median(each.server_cores or 0.0 for each in figures),
        statistics.median(each.load_cores for each in figures),
        f"≥ {least:g}" if least is not None else "",
        share >= least if least is not None and share is not None else None,
    )


def _master_cpu_us(found: Sequence[Cost]) -> float:
    return statistics.median(each.sends.server_cpu_us or 0.0 for each in found)


def _busy_cores(found: Sequence[Cost]) -> float:
    """Of master and load together."""
    return statistics.median((each.sends.server_cores or 0.0) + each.sends.load_cores for each in found)


def _following_rows(following: Following) -> Iterator[Row]:
    rate = following.followed_mb_s
    what = f"a slave follows, {following.lag_mb:.1f} MB behind"
    yield Row(what, f"{rate:.0f} MB/s", wanted=f"≥ {_FOLLOWED_MB_S} MB/s", met=rate >= _FOLLOWED_MB_S)
    rate = following.caught_up_mb_s
    what = f"an empty slave catches up with {following.caught_up_mb:,.0f} MB"
    yield Row(what, f"{rate:.0f} MB/s", wanted=f"≥ {_CAUGHT_UP_MB_S} MB/s", met=rate >= _CAUGHT_UP_MB_S)


def _backlog_rows(backlogs: Backlogs) -> Iterator[Row]:
    if backlogs.alone:
        yield _sends_row(f"{TWO_MACHINES}: the master alone", backlogs.alone)
    for reading in backlogs.readings:
        name, is_judged = reading.setting.name, reading.meanwhile is Meanwhile.AT_SLAVE
        before, other, during = reading.before, reading.beside_other, reading.during
        yield _sends_row(f"{name}: a slave, nobody reads", before)
        if other:
            yield _sends_row(f"{name}: {OTHER}", other, kept(other, before), "nobody reads")
        least = _KEPT_OF_BEFORE if is_judged and name in (TWO_MACHINES, HALF_LOAD) else None
        yield _sends_row(f"{name}: {reading.meanwhile.value}", during, kept(during, before), "nobody reads", least)
        if other:
            share, rate = kept(during, other), f"{median_rate(during):,.0f}/s"
            wanted, met = ("", None) if least is None else (f"≥ {least:g}", share >= least)
            yield Row("– the same", rate, share, OTHER, wanted=wanted, met=met)


def remarks(results: Results) -> list[str]:
    """What the table has no room for."""
    found = []
    if results.following is not None:
        master, slave = results.following.cpu_ms_per_mb
        found.append(f"Catching up takes {master:.2f} ms of the master's CPU and {slave:.2f} ms of the slave's per MB.")
    if results.backlogs is not None:
        if not results.backlogs.alone:
            found.append("There is one core: the pair as on two machines was not measured.")
        else:
            found.append(
                "Two machines: master and senders have one half of the cores, slave and reader the other, before as "
                "well as during; what is lost is what the reading costs the master, and what any other program on "
                "those cores would cost it: that is measured in the same rounds, and compared with in a row of its own."
            )
        found.append(
            "One machine: all four share all cores; what is lost is mostly the time that slave and reader run instead "
            "of the senders. Half load: senders ask for half of what the master took there, so that there is room."
        )
        found += [_read_remark(reading) for reading in results.backlogs.readings if reading.read.seconds]
    return found


def _read_remark(reading: Reading) -> str:
    read, place = reading.read, "slave" if reading.meanwhile is Meanwhile.AT_SLAVE else "master"
    rate = sum(read.read_bytes) / read.seconds / 1e6
    before, during = reading.before, reading.during
    other = f" ({OTHER}: {_master_cpu_us(reading.beside_other):.1f})" if reading.beside_other else ""
    return (
        f"{reading.setting.name.capitalize()}, read at the {place}: {read.pulls[0]:,} pulls at the master, "
        f"{read.pulls[1]:,} at the slave, {rate:.0f} MB/s read; the slave was at most "
        f"{reading.lag_bytes / 1e6:.1f} MB behind in the middle of the sends. A message cost the master "
        f"{_master_cpu_us(before):.1f} µs before and {_master_cpu_us(during):.1f} µs during{other}; master and load "
        f"together had {_busy_cores(before):.2f} cores before and {_busy_cores(during):.2f} during."
    )


def print_table(console: Console, results: Results) -> None:
    table = Table(box=None, header_style="bold")
    for number, heading in enumerate(_HEAD):
        table.add_column(heading, justify="right" if number else "left")
    for row in rows(results):
        table.add_row(*row.cells())
    console.print(table)
    for remark in remarks(results):
        console.print(remark)


def markdown(results: Results) -> str:
    lines = [_HEAD, *(row.cells() for row in rows(results))]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    table.insert(1, "|---|" + "--:|" * (len(_HEAD) - 1))
    return "\n".join([*table, "", *(f"- {remark}" for remark in remarks(results))])
