"""One table: the distribution of each set, what is wanted of it, and whether it is met."""

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from bench.failover.settings import DEFAULT, TUNED

OURS = "Skyrocket"
LONGEST_TUNED_SECONDS = 3.0
KILLED, FROZEN = "kill -9", "SIGSTOP"
_MOST_LINES, _BAR_LENGTH = 20, 40
_HEAD = ["set of three", "settings", "master ends by", "runs", "fastest", "median", "90 %", "slowest", "wanted", "met"]


@dataclass(frozen=True)
class Distribution:
    """Seconds without a writable master, one for each run."""

    maker: str
    setting: str
    seconds: Sequence[float]
    ending: str = KILLED

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def share(self, part: float) -> float:
        """The time that this part of the runs did not exceed."""
        return sorted(self.seconds)[math.ceil(part * len(self.seconds)) - 1]


def _wanted(found: Distribution, all_found: Sequence[Distribution]) -> tuple[str, bool | None]:
    """Of ours: at default settings not longer than Apache's, tuned never longer than 3 s."""
    if found.maker != OURS:
        return "", None
    if found.setting == TUNED.name:
        return f"slowest ≤ {LONGEST_TUNED_SECONDS:g} s", max(found.seconds) <= LONGEST_TUNED_SECONDS
    theirs = [
        each for each in all_found if each.maker != OURS and (each.setting, each.ending) == (DEFAULT.name, found.ending)
    ]
    if not theirs:
        return "", None
    return f"median ≤ {theirs[0].median:.2f} s", found.median <= theirs[0].median


def rows(results: Sequence[Distribution]) -> list[list[str]]:
    """The cells of the table."""
    found = []
    for each in results:
        wanted, met = _wanted(each, results)
        figures = (min(each.seconds), each.median, each.share(0.9), max(each.seconds))
        seconds = [f"{figure:.2f} s" for figure in figures]
        verdict = {None: "", True: "yes", False: "no"}[met]
        found.append([each.maker, each.setting, each.ending, str(len(each.seconds)), *seconds, wanted, verdict])
    return found


def histogram(found: Distribution) -> list[str]:
    """How many runs fell into each step of half a second, or longer steps where that makes too many lines."""
    first, last = min(found.seconds), max(found.seconds)
    step = 0.5
    while (last - first) / step > _MOST_LINES:
        step *= 2
    counts = Counter(int(each / step) for each in found.seconds)
    most = max(counts.values())
    lines = [f"{found.maker}, {found.setting}, {found.ending}"]
    for place in range(min(counts), max(counts) + 1):
        count = counts[place]
        bar = "█" * math.ceil(count * _BAR_LENGTH / most)
        lines.append(f"{place * step:5.1f} to {(place + 1) * step:5.1f} s  {count:3d}  {bar}".rstrip())
    return lines


def histograms(results: Sequence[Distribution]) -> str:
    """One below the other."""
    return "\n\n".join("\n".join(histogram(each)) for each in results)


def print_table(console: Console, results: Sequence[Distribution]) -> None:
    table = Table(title="Time without a writable master")
    for title in _HEAD:
        table.add_column(title, justify="right" if title in _HEAD[3:8] else "left")
    for cells in rows(results):
        table.add_row(*cells)
    console.print(table)
    console.print("\n" + histograms(results), markup=False)


def markdown(results: Sequence[Distribution]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (_HEAD, *rows(results))]
    lines.insert(1, "|" + "|".join("--:" if title in _HEAD[3:8] else "---" for title in _HEAD) + "|")
    return "\n".join([*lines, "", "```", histograms(results), "```"])
