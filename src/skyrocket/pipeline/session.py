"""A Spark session that works from one `pip install`: Java found, workers in this interpreter, short micro-batches.

    spark = session("orders", master="local[*]", conf={"spark.ui.enabled": "false"})

Environment variables count only before the JVM starts, so the first session of a process must come from here. What the
caller gives in `conf`, or has set in the environment, wins.
"""

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skyrocket.errors import SkyrocketError
from skyrocket.pipeline.java import cache_directory, find_java, shadow_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_logger = logging.getLogger(__name__)

_CHECKPOINTS: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
CONF: Final[Mapping[str, str]] = {
    # The default manager forks readlink and chmod for every file: 80 to 110 ms of each micro-batch.
    "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
    "spark.ui.showConsoleProgress": "false",
}
LOCAL_CONF: Final[Mapping[str, str]] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_ONE_HOST: Final = ("local[", "local-cluster[")


class SparkMissing(SkyrocketError):
    """The extra `spark` is not installed."""


def session(
    app_name: str,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    *,
    log: Path | None = None,
    keeps_output: bool = False,
) -> "SparkSession":
    """The running session, or a new one; our formats are known in it. Raises SparkMissing or NoJava.

    `log`: what the JVM and its workers say goes there, if this call starts it, instead of to our own output;
    `keeps_output`: but for its standard output, to which Spark's console sink prints rows.
    """
    package = _pyspark_package()
    from pyspark.sql import SparkSession

    local = master == "local" or master.startswith(_ONE_HOST)
    settings = {**CONF, **(LOCAL_CONF if local else {}), **(conf or {})}
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    if SparkSession.getActiveSession() is not None:
        return builder.getOrCreate()
    with launch_environment(package, local=local), _without_warning_of_itself():
        if log is not None:
            named = {**settings, "spark.app.name": app_name, "spark.master": master}
            _start_into(log, named, keeps_output=keeps_output)
        return builder.getOrCreate()


@contextlib.contextmanager
def _without_warning_of_itself() -> Iterator[None]:
    """Spark warns of the pandas that it imports itself while it starts; who calls toPandas still hears it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield


def _start_into(log: Path, settings: Mapping[str, str], *, keeps_output: bool) -> None:
    """Start the JVM, unless there is one: banners, warnings of its modules and workers' tracebacks go to a file."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with log.open("ab") as output:
        said = {"stderr": output} if keeps_output else {"stdout": output, "stderr": output}
        gateway = launch_gateway(conf, said)  # type: ignore[no-untyped-call]
    SparkContext(conf=SparkConf(_jvm=gateway.jvm).setAll(list(settings.items())), gateway=gateway)


def register(spark: "SparkSession") -> "SparkSession":
    """Give a session our formats by hand.

    Not needed where Skyrocket is installed beside Spark's workers: there Spark finds the modules `pyspark_*` by itself.
    """
    from skyrocket.pipeline.commit_log.data_source import CommitLogDataSource
    from skyrocket.pipeline.topic_source.data_source import TopicDataSource

    spark.dataSource.register(TopicDataSource)
    spark.dataSource.register(CommitLogDataSource)
    return spark


def _pyspark_package() -> Path:
    try:
        import pyarrow  # noqa: F401
        import pyspark
    except ImportError as error:
        raise SparkMissing(
            f"pipelines need Spark, and Python says: {error}. Install it: pip install 'skyrocket[spark]'"
        ) from error
    return Path(pyspark.__file__).parent


@contextlib.contextmanager
def launch_environment(package: Path, *, local: bool) -> Iterator[None]:
    """What the JVM and through it every worker inherits; ours again afterwards, but for what later calls need."""
    java = find_java()
    home = os.environ.get("SPARK_HOME") or str(shadow_home(package, cache_directory()))
    _logger.info("Spark starts java=%s because=%s spark_home=%s", java.home, java.reason, home)
    wanted = {
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": home,
        # Otherwise workers run `python3` of the PATH, which knows nothing of a virtual environment.
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable,
        "PYSPARK_DRIVER_PYTHON": os.environ.get("PYSPARK_DRIVER_PYTHON") or sys.executable,
        **({"SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"} if local else {}),
    }
    # Workers that may not write bytecode compile all of PySpark in every new process.
    before = {name: os.environ.get(name) for name in (*wanted, "PYTHONDONTWRITEBYTECODE")}
    os.environ.update(wanted)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        yield
    finally:
        for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYTHONDONTWRITEBYTECODE"):
            if before.get(name) is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = str(before[name])
