"""Draws the lake: revenue per minute as a table on the terminal, and as a page with its plot."""

import os
from pathlib import Path

from skyrocket.pipeline import session
from skyrocket.pipeline.report import Plot, Report


def main(lake: Path = Path(os.environ.get("LAKE", "lake"))) -> Report:
    spark = session("orders plot", "local[1]")
    minutes = spark.read.parquet(str(lake / "revenue")).orderBy("minute").toArrow()
    labels = [f"{minute:%H:%M}" for minute in minutes["minute"].to_pylist()]
    revenue = [float(amount) for amount in minutes["revenue"].to_pylist()]
    report = Report(
        "Revenue per minute",
        tables={"minutes": minutes},
        plots=[Plot("Revenue per minute", "bar", labels, {"revenue": revenue}, "revenue")],
    )
    report.write(lake / "report")
    return report


if __name__ == "__main__":
    main().print()
