"""The results of a run: as a table, as Markdown, as JSON lines."""

import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy
from rich.console import Console
from rich.table import Table

from bench.store.figures import Figure, Kind, Target

_COLUMNS = ("what", "measured", "ratio", "target", "met", "spread")


@dataclass(frozen=True, slots=True)
class Run:
    """When and where the figures were taken."""

    date: str
    scale: str
    machine: str
    cores: int
    core: int | None
    python: str
    numpy: str
    load: float

    @property
    def title(self) -> str:
        where = f"{self.machine}, {self.cores} cores (one used), Python {self.python}, numpy {self.numpy}"
        return f"{self.scale} run of {self.date} on {where}; load before {self.load:.2f}"


def this_run(scale: str, core: int | None) -> Run:
    return Run(
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        scale=scale,
        machine=_processor(),
        cores=os.cpu_count() or 1,
        core=core,
        python=platform.python_version(),
        numpy=numpy.__version__,
        load=os.getloadavg()[0],
    )


def _processor() -> str:
    """The processor's name where Linux tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


# -- cells -----------------------------------------------------------------------------------------------


def cells(figure: Figure) -> tuple[str, ...]:
    """One line of the table."""
    ratio = "" if figure.ratio is None else f"{_ratio(figure.ratio, figure.target)} {figure.ratio_to}"
    target = ""
    if figure.target is not None:
        bound = figure.target.bound
        text = _ratio(bound, figure.target) if figure.ratio is not None else f"{_number(bound)} {figure.unit}"
        target = f"{figure.target.kind.value} {text}"
    met = {None: "", True: "yes", False: "no"}[figure.met]
    spread = "" if figure.spread is None else f"+{figure.spread:.0%}"
    return figure.name, f"{_number(figure.value)} {figure.unit}", ratio, target, met, spread


def _ratio(value: float, target: Target | None) -> str:
    if target is not None and target.kind is Kind.AT_MOST:
        return f"{value:.0%}"
    return f"{value:.0f} ×" if value >= 10 else f"{value:.2f} ×"


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.3g}"


# -- output ----------------------------------------------------------------------------------------------


def print_table(console: Console, run: Run, figures: Iterable[Figure]) -> None:
    table = Table(
        title=run.title,
        title_justify="left",
        caption="measured: best round; ratio: median of neighbouring rounds; spread: median round against the best",
    )
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("what", "met") else "right", no_wrap=column != "what")
    section = ""
    for figure in figures:
        if section and figure.section != section:
            table.add_section()
        section = figure.section
        style = {None: "dim" if figure.name.startswith("  ") else "", True: "green", False: "red"}[figure.met]
        table.add_row(*cells(figure), style=style)
    console.print(table)


def markdown(run: Run, figures: Iterable[Figure]) -> str:
    lines = [run.title, "", f"| {' | '.join(_COLUMNS)} |", "|---|--:|--:|--:|---|--:|"]
    for figure in figures:
        name, *rest = cells(figure)
        shown = f"– {name.strip()}" if name.startswith("  ") else name
        lines.append(f"| {shown} | {' | '.join(rest)} |")
    return "\n".join(lines)


def save(path: Path, run: Run, figures: Sequence[Figure]) -> None:
    """One JSON line for the run, then one per figure."""
    lines = [{"run": asdict(run)}, *({"figure": _as_json(figure)} for figure in figures)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def load(path: Path) -> tuple[Run, list[Figure]]:
    """What `save` wrote."""
    first, *rest = (json.loads(line) for line in path.read_text().splitlines())
    return Run(**first["run"]), [_from_json(line["figure"]) for line in rest]


def _as_json(figure: Figure) -> dict[str, object]:
    target = figure.target
    bound = None if target is None else {"kind": target.kind.value, "bound": target.bound}
    fields = {name: getattr(figure, name) for name in Figure.__dataclass_fields__}
    return {**fields, "target": bound, "met": figure.met}


def _from_json(fields: dict[str, object]) -> Figure:
    known = {name: value for name, value in fields.items() if name in Figure.__dataclass_fields__}
    target = known.pop("target")
    if isinstance(target, dict):
        known["target"] = Target(Kind(target["kind"]), float(target["bound"]))
    return Figure(**known)  # type: ignore[arg-type]
