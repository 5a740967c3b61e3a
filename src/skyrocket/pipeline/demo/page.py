"""The demo's page: a plot and a table of the last minutes; it loads itself again every other second."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.pipeline.report.plot import Plot
from skyrocket.pipeline.report.words import counted

_SHOWN: Final = 60
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">{refresh}<title>Revenue per minute</title>
<style>
:root {{ color-scheme: light dark }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem }}
svg {{ width: 100%; height: auto }}
table {{ border-collapse: collapse }} td, th {{ padding: .1rem 1rem; text-align: right }}
</style></head><body>
<h1>Revenue per minute</h1>
<p>{sentence}</p>
{plot}
<table><tr><th>minute</th><th>orders</th><th>revenue</th></tr>
{rows}
</table></body></html>
"""


@dataclass(frozen=True, order=True)
class Minute:
    """One result of the pipeline."""

    minute: str
    orders: int
    revenue: float

    @classmethod
    def of(cls, told: Mapping[str, object]) -> "Minute":
        """From a message of the topic of results."""
        return cls(str(told["minute"])[:16], int(str(told["orders"])), float(str(told["revenue"])))


def page(minutes: Sequence[Minute], sent: int, *, loads_again: bool = True) -> str:
    """The whole page; it loads itself again while there may be more."""
    shown = minutes[-_SHOWN:]
    labels = [each.minute[11:] for each in shown]
    plot = Plot("revenue", "line", labels, {"revenue": [each.revenue for each in shown]}, "revenue")
    rows = "\n".join(
        f"<tr><td>{html.escape(each.minute)}</td><td>{each.orders}</td><td>{each.revenue:.2f}</td></tr>"
        for each in reversed(shown[-10:])
    )
    finished = f"{counted(sent, 'order')} sent, {counted(len(minutes), 'minute')} finished"
    sentence = f"{finished}; the watermark keeps the last ones open."
    refresh = '<meta http-equiv="refresh" content="2">' if loads_again else ""
    return _PAGE.format(refresh=refresh, sentence=sentence, plot=plot.svg() if shown else "", rows=rows)
