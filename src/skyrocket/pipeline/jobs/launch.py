"""A job's session and its tasks, and its errors as one line instead of the tracebacks of two languages."""

import contextlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.java import cache_directory
from skyrocket.pipeline.report import phase, stage_progress
from skyrocket.pipeline.session import register, session

_logger = logging.getLogger(__name__)

# `skyrocket.client.core.errors.NoRoute: topic Orders …` in a worker's traceback, until the frame or the text ends.
_OUR_ERROR: Final = re.compile(r"^\s*(?:\w+: )?skyrocket\.[\w.]+: (.+)$", re.MULTILINE)
_MOST_CHARACTERS: Final = 600
_KEPT_LOGS: Final = 20  # of sessions that failed

T = TypeVar("T")
R = TypeVar("R")


class JobFailed(SkyrocketError):
    """Spark could not do the work."""


@contextlib.contextmanager
def process_session(
    name: str,
    master: str,
    conf: Mapping[str, str] | None,
    *,
    log: Path | None = None,
    keeps_output: bool = False,
    shows_phases: bool = False,
) -> Iterator[SparkSession]:
    """The session of the process if it has one, else one of its own that ends with the block."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield register(running)
        return
    with phase(name, f"Spark starts on {master}", "Spark is ready") if shows_phases else contextlib.nullcontext():
        spark = session(f"skyrocket {name}", master, conf, log=log, keeps_output=keeps_output)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _log_file(name: str) -> Path:
    folder = cache_directory() / "spark-logs"
    folder.mkdir(exist_ok=True)
    for old in sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)[:-_KEPT_LOGS]:
        old.unlink(missing_ok=True)
    moment = time.strftime("%Y%m%d-%H%M%S")
    return folder / f"{re.sub(r'[^A-Za-z0-9_-]', '_', name)}-{moment}-{os.getpid()}.log"


@contextlib.contextmanager
def job_session(name: str, master: str, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that shows its phases, and on a terminal its stages.

    What Spark itself says goes to a file, which stays where Spark failed; --verbose shows it at once. What it raises
    becomes JobFailed with the cause that our own code named.
    """
    log = None if _logger.isEnabledFor(logging.INFO) else _log_file(name)
    started = process_session(name, master, conf, log=log, shows_phases=True)
    is_needed = False
    try:
        with started as spark, stage_progress(spark, name):
            yield spark
    except (PySparkException, Py4JError) as error:
        is_needed = True
        raise JobFailed(cause_of(error, log)) from error
    finally:
        if log is not None and not is_needed:
            log.unlink(missing_ok=True)


@contextlib.contextmanager
def pipeline_session(
    name: str, master: str, conf: Mapping[str, str], *, shows_phases: bool, told: tuple[type[Exception], ...]
) -> Iterator[SparkSession]:
    """The session of a declared pipeline. What Spark says goes to a file, which stays for errors not in `told`."""
    log = None if _logger.isEnabledFor(logging.INFO) else _log_file(name)
    is_needed = False
    try:
        with process_session(name, master, conf, log=log, keeps_output=True, shows_phases=shows_phases) as spark:
            yield spark
    except told:
        raise
    except Exception:
        is_needed = log is not None and log.exists()
        if is_needed:
            _logger.warning("all that Spark said is in %s", log)
        raise
    finally:
        if log is not None and not is_needed:
            log.unlink(missing_ok=True)


def in_tasks(spark: SparkSession, items: Sequence[T], task: Callable[[T], R], most: int | None = None) -> list[R]:
    """A Spark task for each item, or at most so many; results in order."""
    if not items:
        return []
    return spark.sparkContext.parallelize(items, min(len(items), most or len(items))).map(task).collect()


def cause_of(error: Exception, log: Path | None = None) -> str:
    """The last error of ours in the text of Spark's, else its first line and where the rest is."""
    text = str(error)
    ours = _OUR_ERROR.findall(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = ours[-1] if ours else f"Spark says: {lines[0] if lines else type(error).__name__}"
    more = f"; all that it said is in {log}" if log is not None and log.exists() and not ours else ""
    return found.strip()[:_MOST_CHARACTERS] + more
