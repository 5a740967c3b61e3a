"""A Spark standalone cluster for tests: a master and workers, each a process of its own, started from the wheel.

The wheel has no start scripts, but `spark-class` runs the classes behind them. Ports are free ones; everything is
stopped by its own process id when the block ends.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from skyrocket.pipeline.java import cache_directory, find_java, shadow_home

PATIENCE_SECONDS = 240.0
_HOST = "127.0.0.1"


@dataclass(frozen=True)
class SparkCluster:
    master: str  # spark://…
    workers: tuple[Path, ...]  # a directory each; what its executors write lies below

    def executors(self) -> list[int]:
        """How many executors each worker has run."""
        return [len(list(worker.glob("app-*/*/stderr"))) for worker in self.workers]

    @property
    def conf(self) -> dict[str, str]:
        """For a small driver and small executors on one machine."""
        return {
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            # No task before both workers have an executor: otherwise one of them might do it all.
            "spark.cores.max": str(len(self.workers)),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{PATIENCE_SECONDS:.0f}s",
        }


@contextlib.contextmanager
def spark_cluster(directory: Path, workers: int = 2) -> Iterator[SparkCluster]:
    home = shadow_home(Path(pyspark.__file__).parent, cache_directory())
    environment = _environment(home)
    starter = str(home / "bin" / "spark-class")
    with contextlib.ExitStack() as stack:
        main = "org.apache.spark.deploy.master.Master"
        log = directory / "master.log"
        stack.enter_context(
            _process([starter, main, "--host", _HOST, "--port", "0", "--webui-port", "0"], log, environment)
        )
        master = _said(log, r"Starting Spark master at (spark://\S+)")
        folders = []
        for number in range(workers):
            folder = directory / f"worker-{number}"
            folder.mkdir()
            main = "org.apache.spark.deploy.worker.Worker"
            command = [starter, main, "--host", _HOST, "--webui-port", "0", "--cores", "1", "--memory", "1g"]
            log = directory / f"worker-{number}.log"
            stack.enter_context(_process([*command, "--work-dir", str(folder), master], log, environment))
            folders.append((folder, log))
        for _, log in folders:
            _said(log, r"(Successfully registered) with master")
        yield SparkCluster(master, tuple(folder for folder, _ in folders))


def _environment(home: Path) -> Mapping[str, str]:
    changed = {
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_PYTHON": sys.executable,
    }
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | changed


@contextlib.contextmanager
def _process(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        yield
    finally:
        process.terminate()  # spark-class gives way to Java: this is the JVM
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} did not say {pattern!r}:\n{log.read_text(errors='replace')[-3000:]}")
