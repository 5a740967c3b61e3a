"""A job's session and its tasks, and its errors as one line instead of the tracebacks of two languages."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.report import stage_progress
from skyrocket.pipeline.session import register, session

# `skyrocket.client.core.errors.NoRoute: topic Orders …` in a worker's traceback, until the frame or the text ends.
_OUR_ERROR: Final = re.compile(r"^\s*(?:\w+: )?skyrocket\.[\w.]+: (.+)$", re.MULTILINE)
_MOST_CHARACTERS: Final = 600

T = TypeVar("T")
R = TypeVar("R")


class JobFailed(SkyrocketError):
    """Spark could not do the work."""


@contextlib.contextmanager
def process_session(name: str, master: str, conf: Mapping[str, str] | None) -> Iterator[SparkSession]:
    """The session of the process if it has one, else one of its own that ends with the block."""
    running = SparkSession.getActiveSession()
    if running is not None:
        yield register(running)
        return
    spark = session(f"skyrocket {name}", master, conf)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


@contextlib.contextmanager
def job_session(name: str, master: str, conf: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session that shows its stages on a terminal.

    What Spark raises becomes JobFailed with the cause that our own code named.
    """
    try:
        with process_session(name, master, conf) as spark, stage_progress(spark, name):
            yield spark
    except (PySparkException, Py4JError) as error:
        raise JobFailed(cause_of(error)) from error


def in_tasks(spark: SparkSession, items: Sequence[T], task: Callable[[T], R], most: int | None = None) -> list[R]:
    """A Spark task for each item, or at most so many; results in order."""
    if not items:
        return []
    return spark.sparkContext.parallelize(items, min(len(items), most or len(items))).map(task).collect()


def cause_of(error: Exception) -> str:
    """The last error of ours in the text of Spark's, else its first line."""
    text = str(error)
    ours = _OUR_ERROR.findall(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = ours[-1] if ours else f"Spark says: {lines[0] if lines else type(error).__name__}"
    return found.strip()[:_MOST_CHARACTERS]
