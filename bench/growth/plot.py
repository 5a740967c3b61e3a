"""The lines as a picture: processor time of a message and memory over the number, and what linear would be."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.growth.points import Line


def plot(path: Path, title: str, lines: Sequence[Line]) -> None:
    """Write a PNG."""
    import matplotlib  # here: a second of loading that must not disturb the measurement

    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawing, (left, right) = pyplot.subplots(1, 2, figsize=(13, 5), layout="constrained")
    drawing.suptitle(title, fontsize=9)
    for line in lines:
        counts = [point.count for point in line.points]
        name = f"{line.of}: {line.doing}"
        left.plot(counts, [point.cpu_us for point in line.points], marker="o", label=name)
        right.plot(counts, [point.memory_mb for point in line.points], marker="o", label=name)
    _finish(left, "µs of the server per message")
    _finish(right, "memory of the server itself, MB")
    path.parent.mkdir(parents=True, exist_ok=True)
    drawing.savefig(path, dpi=110)
    pyplot.close(drawing)


def _finish(axes: Any, what: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    bottom, top = axes.get_ylim()
    low, high = axes.get_xlim()
    axes.plot([low, high], [bottom, bottom * high / low], color="#bbbbbb", linestyle="--", label="linear")
    axes.set_xlim(low, high)
    axes.set_ylim(bottom, top * 2)
    axes.set_xlabel("how many")
    axes.set_title(what, fontsize=9)
    axes.legend(fontsize=8)
