"""Options that jobs share, each said once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from skyrocket.cli.terminal.moments import moment_of, seconds_of
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError

_WHENCE: Final = "Where messages come from"
_WHICH: Final = "Which messages"
LIMITS: Final = "What is a finding"
_SPARK: Final = "Spark and results"

DEFAULT_MASTER: Final = "local[*]"

MasterOption = Annotated[
    str, typer.Option("--master", help="Spark's master: local[4], spark://host:7077, yarn, …", rich_help_panel=_SPARK)
]
SparkConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        help="A setting of Spark, as spark.driver.memory=4g; may be repeated.",
        show_default=False,
        rich_help_panel=_SPARK,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Directory for the results: Parquet per table, report.html, report.json.",
        show_default=False,
        file_okay=False,
        rich_help_panel=_SPARK,
    ),
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        help="A broker's store directory, live or copied, instead of the cluster.",
        show_default=False,
        rich_help_panel=_WHENCE,
    ),
]
ArchiveOption = Annotated[
    Path | None,
    typer.Option(
        "--archive",
        help="A lake of `pipeline archive`, or Parquet with the same columns, instead of the cluster.",
        show_default=False,
        rich_help_panel=_WHENCE,
    ),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        "--since",
        help="Stored since 2h ago, or a time (2026-01-31T12:00:00.250).",
        show_default=False,
        rich_help_panel=_WHICH,
    ),
]
UntilOption = Annotated[
    str | None, typer.Option("--until", help="Stored before that.", show_default=False, rich_help_panel=_WHICH)
]

StoreArgument = Annotated[Path, typer.Argument(help="The broker's store directory, live or copied.")]
SplitMbOption = Annotated[int, typer.Option(help="Megabytes of log per task.", min=1)]
QueueSkewOption = Annotated[float, typer.Option(help="A queue against the mean.", rich_help_panel=LIMITS)]
AtLeastOption = Annotated[int, typer.Option(help="And at least so many.", rich_help_panel=LIMITS)]


def spark_settings(given: list[str] | None) -> dict[str, str]:
    """`--spark-conf name=value …`; raises ConfigError."""
    settings = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise ConfigError(f"--spark-conf {text!r} is no setting: write it as spark.driver.memory=4g")
        settings[name] = value
    return settings


def moment_ms(text: str | None) -> int | None:
    """`2h` (ago) or a time, in milliseconds since 1970; raises ConfigError."""
    if text is None:
        return None
    if text[-1:] in ("s", "m", "h", "d"):
        now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
        return round((now - timedelta(seconds=seconds_of(text))).timestamp() * 1000)
    return round(moment_of(text).timestamp() * 1000)
