"""Options that jobs share: the cluster, where messages come from, which of them, and Spark."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skyrocket.cli.program.cluster import (
    DEFAULT_NAMESRV,
    AccessKeyOption,
    ClusterOptions,
    NamespaceOption,
    NamesrvOption,
    SecretKeyOption,
    TlsCaOption,
    TlsCertOption,
    TlsInsecureOption,
    TlsKeyOption,
    TlsOption,
)
from skyrocket.cli.program.moments import ago_or_at
from skyrocket.cli.program.options import panel
from skyrocket.clock import SystemClock
from skyrocket.errors import ConfigError

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings
    from skyrocket.pipeline.jobs.inputs import Input, Window
    from skyrocket.pipeline.jobs.local.reading import Amount
    from skyrocket.pipeline.report import Report

_whence = panel("Where messages come from")
_which = panel("Which messages")
limits_panel = panel("What is a finding")
_spark = panel("Spark and results")

OutOption = Annotated[
    Path | None,
    _spark(
        "--out",
        help="Directory for the results: Parquet per table, report.html, report.json.",
        show_default=False,
        file_okay=False,
    ),
]
StoreOption = Annotated[
    Path | None,
    _whence("--store", help="A broker's store directory, live or copied, instead of the cluster.", show_default=False),
]
StoreArgument = Annotated[Path, typer.Argument(help="The broker's store directory, live or copied.")]
SplitMbOption = Annotated[int, typer.Option(help="Megabytes of log per task.", min=1)]
QueueSkewOption = Annotated[float, limits_panel(help="A queue against the mean.")]
AtLeastOption = Annotated[int, limits_panel(help="And at least this many.")]


class Engine(StrEnum):
    """Who computes."""

    AUTO = "auto"
    SPARK = "spark"
    LOCAL = "local"


@dataclass(frozen=True)
class EngineOptions:
    """Whether Spark is needed at all."""

    engine: Annotated[
        Engine,
        _spark(
            "--engine",
            help="spark; local: in this process, by pyarrow; auto: local where there is little to read "
            "(512 MB of log, 500,000 messages of a cluster, 64 MB of Parquet).",
        ),
    ] = Engine.AUTO

    def is_local(self, spark: "SparkOptions", amount: "Callable[[], Amount]") -> bool:
        """Whether this process does the work; how much it is, is asked only where that decides. Raises ConfigError."""
        spark.settings()  # a mistake there is one, whoever computes
        return self.engine is Engine.LOCAL or (self.engine is Engine.AUTO and amount().is_small)

    def said(self, report: "Report", amount: "Amount") -> "Report":
        """With a note that tells where it was computed."""
        note = f"computed in this process from {amount}, without Spark; --engine spark computes on Spark"
        return replace(report, notes=[*report.notes, note])


@dataclass(frozen=True)
class SparkOptions:
    """Where Spark runs, and how."""

    master: Annotated[str, _spark("--master", help="Spark's master: local[4], spark://host:7077, yarn, …")] = "local[*]"
    spark_conf: Annotated[
        list[str] | None, _spark("--spark-conf", help="A setting of Spark, as spark.driver.memory=4g; may be repeated.")
    ] = None

    def session(self, job: str) -> AbstractContextManager[Any]:
        """The session of a job; raises ConfigError."""
        from skyrocket.pipeline.jobs.launch import job_session

        return job_session(job, self.master, self.settings())

    def settings(self) -> dict[str, str]:
        """What --spark-conf says; raises ConfigError."""
        settings = {}
        for text in self.spark_conf or ():
            name, equals, value = text.partition("=")
            if not equals or not name.startswith("spark."):
                raise ConfigError(f"--spark-conf {text!r} is not a setting: write it as spark.driver.memory=4g")
            settings[name] = value
        return settings


@dataclass(frozen=True)
class WindowOptions:
    """From when to when."""

    since: Annotated[
        str | None, _which("--since", help="Stored since 2h ago, or a time (2026-01-31T12:00:00.250).")
    ] = None
    until: Annotated[str | None, _which("--until", help="Stored before that.")] = None

    def window(self) -> "Window":
        """As jobs take it; raises ConfigError."""
        from skyrocket.pipeline.jobs.inputs import Window

        return Window(_moment_ms(self.since), _moment_ms(self.until))


def _moment_ms(text: str | None) -> int | None:
    if text is None:
        return None
    return round(ago_or_at(text, SystemClock().now_ms()).timestamp() * 1000)


def _path(path: Path | None) -> str:
    return "" if path is None else str(path)


@dataclass(frozen=True)
class JobClusterOptions:
    """The cluster of a job: for our client, and as options of format("rocketmq")."""

    namesrv: NamesrvOption = DEFAULT_NAMESRV
    access_key: AccessKeyOption = None
    secret_key: SecretKeyOption = None
    namespace: NamespaceOption = ""
    tls: TlsOption = False
    tls_ca: TlsCaOption = None
    tls_cert: TlsCertOption = None
    tls_key: TlsKeyOption = None
    tls_insecure: TlsInsecureOption = False

    def settings(self) -> "ClientSettings":
        """For our client; raises ConfigError or WrongUse."""
        return ClusterOptions(**vars(self)).settings()

    def spark_options(self) -> dict[str, str]:
        """For format("rocketmq"); raises ConfigError or WrongUse."""
        given = {
            "namesrvAddr": ";".join(self.settings().addresses()),
            "accessKey": self.access_key,
            "secretKey": self.secret_key,
            "namespace": self.namespace,
            "tls": "true" if self.tls else "",
            "tlsTrustCertPath": _path(self.tls_ca),
            "tlsCertPath": _path(self.tls_cert),
            "tlsKeyPath": _path(self.tls_key),
            "tlsInsecureTrustAnyServer": "true" if self.tls_insecure else "",
        }
        return {name: value for name, value in given.items() if value}

    def refuse_namespace(self, option: str, directory: Path | str | None) -> None:
        """Files have the names that brokers know: raises ConfigError for names that would not be found there."""
        if directory is not None and self.namespace:
            raise ConfigError(
                f"--namespace is for a cluster; {option} has full names: leave it out and write "
                f"{self.namespace}%orders for topics and {self.namespace}%group for groups, also for --to"
            )


@dataclass(frozen=True)
class InputOptions:
    """Files to read messages from, instead of the cluster."""

    store: StoreOption = None
    archive: Annotated[
        str | None,
        _whence(
            "--archive",
            help="A lake of `pipeline archive`, also by its URI, or Parquet with the same columns, instead of the "
            "cluster.",
        ),
    ] = None

    def input(self, cluster: JobClusterOptions) -> "Input":
        """These, or else the cluster; raises ConfigError when two places are named."""
        from skyrocket.pipeline.jobs.inputs import Archive, Store, Topics

        options = cluster.spark_options()
        if self.store is not None and self.archive is not None:
            raise ConfigError("--store and --archive exclude each other: messages come from one place")
        cluster.refuse_namespace("--store" if self.archive is None else "--archive", self.store or self.archive)
        if self.store is not None:
            return Store(self.store)
        return Topics(options) if self.archive is None else Archive(self.archive)
