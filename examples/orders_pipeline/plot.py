"""Draws the lake: revenue per minute as a table on the terminal, and as a page with its plot."""

import os
from pathlib import Path

from skyrocket.pipeline import session
from skyrocket.pipeline.report import Plot, Report


def report_of(lake: Path) -> Report:
    spark = session("orders plot", "local[1]")
    minutes = spark.read.parquet(str(lake / "revenue")).orderBy("minute").toArrow()
    labels = [f"{minute:%H:%M}" for minute in minutes["minute"].to_pylist()]
    revenue = [float(amount) for amount in minutes["revenue"].to_pylist()]
    plot = Plot("Revenue per minute", "bar", labels, {"revenue": revenue}, "revenue")
    return Report("Revenue per minute", tables={"minutes": minutes}, plots=[plot])


if __name__ == "__main__":
    lake = Path(os.environ.get("LAKE", "lake"))
    report = report_of(lake)
    report.print()
    report.write(lake / "report")
