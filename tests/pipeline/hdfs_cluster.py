"""HDFS as Hadoop's own tests run it (Maven's hadoop-client-minicluster), and the package that reads it from Python."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.peers.maven import classpath
from bench.peers.other_system import Missing

from tests import ROOT

_HADOOP = "3.5.0"  # as Spark's own
_PACKAGE = ROOT / "var" / "hdfs-native"


def hdfs_package() -> Path:
    """The folder for sys.path that has hdfs-native, fetched if it is not there; skips where it cannot be."""
    if not (_PACKAGE / "hdfs_native").exists():
        options = ["--quiet", "--no-deps", "--constraint", str(ROOT / "constraints.txt"), "--target", str(_PACKAGE)]
        install = [sys.executable, "-m", "pip", "install", *options, "hdfs-native"]
        if subprocess.run(install, check=False, timeout=600).returncode:
            pytest.skip("hdfs-native cannot be installed here")
    return _PACKAGE


@contextlib.contextmanager
def running_hdfs(home: Path) -> Iterator[str]:
    """The address, as hdfs://127.0.0.1:12345; skips where Maven does not give Hadoop."""
    artifacts = [f"org.apache.hadoop:hadoop-client-minicluster:{_HADOOP}", "org.slf4j:slf4j-nop:1.7.36"]
    try:
        jars = classpath(f"hadoop-minicluster-{_HADOOP}", *artifacts)
    except Missing as reason:
        pytest.skip(f"no HDFS: {reason}")
    command = ["java", "-cp", jars, str(Path(__file__).with_name("MiniHdfs.java")), str(home / "dfs")]
    with (
        (home / "hdfs.log").open("w") as log,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=home
        ) as server,
    ):
        assert server.stdout is not None
        said = next((line for line in server.stdout if line.startswith("port ")), None)  # None: it has ended
        assert said is not None, (home / "hdfs.log").read_text()[-2000:]
        yield f"hdfs://127.0.0.1:{said.split()[1]}"
        server.communicate(timeout=60)
