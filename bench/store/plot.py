"""The results as a picture: how far each figure is from its target, and where the time of an append goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.store.figures import Figure
from bench.store.report import Run

_PARTS = ("put in groups of 32", "dispatch to queues", "dispatch to index")
_COLOURS = ("#4477aa", "#ccbb44", "#ee6677")


def plot(path: Path, run: Run, figures: Sequence[Figure]) -> None:
    """Write a PNG."""
    import matplotlib  # here: a second of loading that must not disturb the measurement

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, (left, right) = pyplot.subplots(1, 2, figsize=(15, 6), width_ratios=(3, 2), layout="constrained")
    drawing.suptitle(run.title, fontsize=9)
    _draw_scores(left, [figure for figure in figures if figure.score is not None])
    _draw_costs(right, figures)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=110)
    pyplot.close(drawing)


def _draw_scores(axes: Any, judged: Sequence[Figure]) -> None:
    names = [figure.name for figure in judged]
    scores = [max(figure.score or 0.0, 0.01) for figure in judged]
    axes.barh(names, scores, color=["#228833" if figure.met else "#cc3311" for figure in judged])
    axes.axvline(1.0, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel("measured ÷ target (1 = exactly on target, right is better)")
    axes.tick_params(axis="y", labelsize=8)
    axes.invert_yaxis()


def _draw_costs(axes: Any, figures: Sequence[Figure]) -> None:
    by_name = {figure.name: figure for figure in figures}
    for size in ("128-byte", "1 KiB"):
        floor = by_name.get(f"floor, {size} bodies: pack the head, copy the body")
        if floor is None:
            continue
        axes.bar(f"floor\n{size}", 1e6 / floor.value, color="#bbbbbb")
        bottom = 0.0
        for part, colour in zip(_PARTS, _COLOURS, strict=True):
            cost = by_name[f"  of it {part}, {size}"].value
            label = part if size == "1 KiB" else None
            axes.bar(f"store\n{size}", cost, bottom=bottom, color=colour, label=label)
            bottom += cost
    if axes.patches:
        axes.legend(fontsize=8)
    axes.set_ylabel("µs per message (processor time)")
    axes.set_title("where the time of an append goes", fontsize=9)
