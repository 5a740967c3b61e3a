"""How a job runs as a command: Spark is there or the right advice is, errors are a line, the report decides the end."""

import contextlib
import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import typer

from skyrocket.cli.cluster_options import client_settings
from skyrocket.cli.lifetime import EXIT_PROBLEMS
from skyrocket.errors import ConfigError, SkyrocketError

if TYPE_CHECKING:
    from skyrocket.client import ClientSettings
    from skyrocket.pipeline.jobs.inputs import Input
    from skyrocket.pipeline.report import Report

EXIT_FINDINGS: Final = 2
_NEEDED: Final = ("pyspark", "pyarrow", "matplotlib")


@contextlib.contextmanager
def job_failures_shown(job: str, verbose: bool) -> Iterator[None]:
    """Before anything of Spark is imported: say what is missing; afterwards: what went wrong, with exit code 1."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    missing = [library for library in _NEEDED if importlib.util.find_spec(library) is None]
    if missing:
        _leave(job, f"{', '.join(missing)} is not installed; run: pip install 'skyrocket[spark]'")
    try:
        yield
    except SkyrocketError as error:
        if verbose:
            logging.getLogger(__name__).info("the whole error", exc_info=error)
        _leave(job, str(error))


def _leave(job: str, why: str) -> NoReturn:
    typer.echo(f"skyrocket pipeline {job}: {why}", err=True)
    raise typer.Exit(EXIT_PROBLEMS)


def finish(report: "Report", out: Path | None) -> None:
    """Print it, write it, and leave with 2 when there are findings."""
    report.print()
    if out is not None:
        report.write(out)
        typer.echo(f"written to {out / 'report.html'}", err=True)
    if report.findings:
        raise typer.Exit(EXIT_FINDINGS)


class Target(NamedTuple):
    """The cluster of a command: for our client, and as options of format("rocketmq")."""

    settings: "ClientSettings"
    options: dict[str, str]


def target_of(
    namesrv: str,
    access_key: str | None,
    secret_key: str | None,
    namespace: str,
    tls: bool,
    tls_ca: Path | None,
) -> Target:
    """From the options of the command line; raises ConfigError or WrongUse."""
    settings = client_settings(namesrv, access_key, secret_key, None, namespace, tls, tls_ca)
    given = {
        "namesrvAddr": ";".join(settings.addresses()),
        "accessKey": access_key,
        "secretKey": secret_key,
        "namespace": namespace,
        "tls": "true" if tls else "",
        "tlsTrustCertPath": "" if tls_ca is None else str(tls_ca),
    }
    return Target(settings, {name: value for name, value in given.items() if value})


def input_of(target: Target, store: Path | None, archive: Path | None) -> "Input":
    """Where messages come from; raises ConfigError when two places are named."""
    from skyrocket.pipeline.jobs.inputs import Archive, Store, Topics

    if store is not None and archive is not None:
        raise ConfigError("--store and --archive exclude each other: messages come from one place")
    refuse_namespace(target, "--store" if archive is None else "--archive", store or archive)
    if store is not None:
        return Store(store)
    return Topics(target.options) if archive is None else Archive(archive)


def refuse_namespace(target: Target, option: str, directory: Path | None) -> None:
    """Files have the names that brokers know: raises ConfigError for names that would not be found there."""
    namespace = target.settings.namespace
    if directory is not None and namespace:
        raise ConfigError(
            f"--namespace is for a cluster; {option} has full names: leave it out and write {namespace}%orders for "
            f"topics and {namespace}%group for groups, also for --to"
        )
