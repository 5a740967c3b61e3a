"""One Spark session per test process, tuned to start fast, and clean between tests."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skyrocket.pipeline.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
FAST = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
}
# C1 alone compiles faster, and no test runs long enough to gain from C2.
JVM_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


SPARK_SECONDS = 300  # the first test of a process waits for a JVM and for workers, on a machine that may be busy


@pytest.hookimpl(trylast=True)  # after pytest has put tests together that share fixtures
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """More time for tests with Spark than for others, unless they say otherwise themselves; and their folder first.

    Workers begin with a part of the list each and then take from the end of others' parts. So what begins the list
    stays with one worker and its one JVM, the dearest tests are not the tail, and others run whatever else there is.
    """
    items.sort(key=lambda item: not item.path.is_relative_to(HERE))
    for item in items:
        limit = item.get_closest_marker("timeout")
        if "spark" in getattr(item, "fixturenames", ()) and (limit is None or limit.args < (SPARK_SECONDS,)):
            item.add_marker(pytest.mark.timeout(SPARK_SECONDS), append=False)


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """The session itself; tests take `spark`."""
    before = os.environ.get("SPARK_SUBMIT_OPTS")
    os.environ["SPARK_SUBMIT_OPTS"] = JVM_FLAGS
    folder = tmp_path_factory.mktemp("spark")
    conf = FAST | {"spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.local.dir": str(folder / "local")}
    started = session("tests", "local[2]", conf)
    if before is None:
        del os.environ["SPARK_SUBMIT_OPTS"]
    else:
        os.environ["SPARK_SUBMIT_OPTS"] = before
    started.sparkContext.setLogLevel("ERROR")
    yield started
    started.stop()


@pytest.fixture
def spark(spark_session: "SparkSession") -> Iterator["SparkSession"]:
    """Spark in local mode with two cores; queries that a test leaves behind are stopped, its views dropped."""
    yield spark_session
    for query in spark_session.streams.active:
        query.stop()
    for name in _temporary_views(spark_session):
        spark_session.catalog.dropTempView(name)
    spark_session.catalog.clearCache()


def _temporary_views(spark: Any) -> list[str]:
    """Asked in the JVM itself: `catalog.listTables` runs a query, and the first one takes seconds."""
    views = spark._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return [str(views.apply(number).table()) for number in range(views.size())]


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """Where a test's query keeps its progress."""
    return str(tmp_path / "checkpoint")
