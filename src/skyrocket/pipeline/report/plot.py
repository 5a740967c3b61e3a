"""One plot, drawn as SVG text that can stand inside a page.

Lines and letters take the page's text colour, so that the same picture is readable on white and on black.
"""

import io
from dataclasses import dataclass
from typing import Any, Final, Literal

_MOST_LABELS: Final = 12
_MOST_LEVEL_LABELS: Final = 4
_LEAST_BARS: Final = 6
_LONGEST_LEVEL_LABEL: Final = 16
_LONGEST_LYING_LABEL: Final = 60
_COLOURS: Final = ("#2f81f7", "#e5702a", "#2da44e", "#bf4b8a", "#8250df", "#9a6700", "#1b9aaa", "#cf222e")
_INKED: Final = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_INK: Final = "#123456"  # nobody's colour: replaced by the page's own


@dataclass(frozen=True)
class Plot:
    """Series over common x values; a value may be NaN where nothing was measured."""

    title: str
    kind: Literal["line", "bar"]
    x: list[Any]
    series: dict[str, list[float]]
    y_label: str

    def __post_init__(self) -> None:
        for name, values in self.series.items():
            if len(values) != len(self.x):
                raise ValueError(f"plot {self.title!r}: series {name!r} has {len(values)} values for {len(self.x)} x")

    def svg(self) -> str:
        """An <svg> element, without XML declaration."""
        # Here, because a job that writes no page needs neither its second nor its memory.
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator, StrMethodFormatter

        # Letters stay letters: smaller, searchable, in the page's own font. The salt keeps ids the same in each run.
        style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": self.title, "font.family": "sans-serif"}
        with rc_context(style | dict.fromkeys(_INKED, _INK)):
            # Long names of bars have their own lines: side by side they would lie over each other.
            lies = self.kind == "bar" and any(len(str(name)) > _LONGEST_LEVEL_LABEL for name in self.x)
            rows = len(self.x) * max(len(self.series), 1)
            figure = Figure(figsize=(8.4, max(1.4, 0.6 + 0.3 * rows) if lies else 3.2), layout="constrained")
            axes = figure.add_subplot()
            if self.kind == "line":
                self._draw_lines(axes)
            elif lies:
                self._draw_lying_bars(axes)
            else:
                self._draw_bars(axes)
            (axes.set_xlabel if lies else axes.set_ylabel)(self.y_label)
            axes.set_xlim(left=0) if lies else axes.set_ylim(bottom=0)
            if self._are_whole():
                measure = axes.xaxis if lies else axes.yaxis
                measure.set_major_locator(MaxNLocator(integer=True))
                measure.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.grid(visible=True, axis="x" if lies else "y", alpha=0.25)
            axes.spines[["top", "right"]].set_visible(False)
            if len(self.series) > 1:
                axes.legend(frameon=False, fontsize="small")
            text = io.StringIO()
            figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        svg = text.getvalue()
        return svg[svg.index("<svg") :].replace(_INK, "currentColor")

    def _are_whole(self) -> bool:
        """Whether all values are whole numbers: nobody has a fifth of a letter."""
        values = [value for series in self.series.values() for value in series if value == value]
        return all(value == round(value) for value in values if abs(value) != float("inf"))

    def _draw_lines(self, axes: Any) -> None:
        for number, (name, values) in enumerate(self.series.items()):
            colour = _COLOURS[number % len(_COLOURS)]
            axes.plot(range(len(self.x)), values, label=_label(name), color=colour, marker="o", markersize=3)
        step = max(1, -(-len(self.x) // _MOST_LABELS))
        places = list(range(0, len(self.x), step))
        axes.set_xticks(places, [_label(self.x[place]) for place in places], rotation=30, ha="right")

    def _draw_bars(self, axes: Any) -> None:
        width = 0.8 / max(len(self.series), 1)
        for number, (name, values) in enumerate(self.series.items()):
            places = [place + number * width for place in range(len(self.x))]
            axes.bar(places, values, width, label=_label(name), color=_COLOURS[number % len(_COLOURS)])
        axes.set_xlim(-0.6, max(len(self.x), _LEAST_BARS) - 0.2)  # one bar alone does not fill the picture
        middle = 0.4 - width / 2
        turned = {"rotation": 30, "ha": "right"} if len(self.x) > _MOST_LEVEL_LABELS else {}
        axes.set_xticks([place + middle for place in range(len(self.x))], [_label(each) for each in self.x], **turned)

    def _draw_lying_bars(self, axes: Any) -> None:
        """The first on top."""
        height = 0.8 / max(len(self.series), 1)
        for number, (name, values) in enumerate(self.series.items()):
            places = [place + number * height for place in range(len(self.x))]
            axes.barh(places, values, height, label=_label(name), color=_COLOURS[number % len(_COLOURS)])
        middle = 0.4 - height / 2
        names = [_label(each, _LONGEST_LYING_LABEL) for each in self.x]
        axes.set_yticks([place + middle for place in range(len(self.x))], names)
        axes.invert_yaxis()


def _label(value: Any, most: int = 28) -> str:
    text = str(value).replace("$", r"\$")  # matplotlib would take it for mathematics
    return text if len(text) <= most else text[: most - 1] + "…"
