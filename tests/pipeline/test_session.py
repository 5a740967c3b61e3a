"""A session from one call: which Java, which interpreter, and what is told when something is missing."""

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skyrocket.pipeline.session import (
    SparkMissing,
    _without_warning_of_itself,
    launch_environment,
    register,
    session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_run_in_the_interpreter_of_the_driver_and_import_pyspark_with_bytecode(spark: "SparkSession") -> None:
    def told(_: int) -> tuple[str, str]:
        import pyspark

        return sys.executable, pyspark.__file__

    ((executable, package),) = spark.sparkContext.parallelize([0], 1).map(told).collect()
    assert executable == sys.executable
    assert ".zip" not in package


def test_a_second_call_gives_the_running_session(spark: "SparkSession") -> None:
    assert session("another name") is spark
    assert register(spark) is spark


def test_views_that_a_test_made(spark: "SparkSession") -> None:
    spark.range(1).createOrReplaceTempView("left_behind")
    assert spark.sql("SELECT * FROM left_behind").count() == 1


def test_are_gone_in_the_next(spark: "SparkSession") -> None:
    assert not spark.catalog.tableExists("left_behind")


def test_the_log_says_which_java_runs_spark_and_why(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho java.base@21\necho jdk.incubator.vector@21\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with caplog.at_level(logging.INFO), launch_environment(tmp_path, local=True):
        pass
    assert f"java={tmp_path} because=JAVA_HOME names it" in caplog.text


def test_the_environment_is_set_for_the_jvm_and_the_users_own_wins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with launch_environment(tmp_path, local=True):
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
        assert os.environ["SPARK_HOME"].startswith(str(tmp_path))
        assert "PYTHONDONTWRITEBYTECODE" not in os.environ
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"
    assert "SPARK_LOCAL_IP" not in os.environ
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with launch_environment(tmp_path, local=False):
        assert os.environ["SPARK_HOME"] == "/opt/spark"
        assert "SPARK_LOCAL_IP" not in os.environ


def test_sparks_warning_of_the_pandas_that_it_imports_is_silenced_and_no_other() -> None:
    from pyspark.sql.pandas.utils import require_minimum_pandas_version

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        require_minimum_pandas_version()
        if not heard:
            pytest.skip("Spark is content with this pandas")
        with _without_warning_of_itself():
            require_minimum_pandas_version()
            warnings.warn("something else", FutureWarning, stacklevel=1)
        require_minimum_pandas_version()
    assert [str(each.message).partition(" >=")[0] for each in heard] == [
        "PySpark does not yet fully support pandas",
        "something else",
        "PySpark does not yet fully support pandas",
    ]


@pytest.mark.parametrize("package", ["pyspark", "pyarrow"])
def test_a_missing_extra_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SparkMissing, match=r"pip install 'skyrocket\[spark\]'"):
        session("nothing")


def test_the_package_is_imported_without_spark_and_arrow() -> None:
    code = "import sys, skyrocket.pipeline; sys.exit(str({'pyspark', 'pyarrow'} & set(sys.modules) or ''))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert told.stderr.strip() == ""
