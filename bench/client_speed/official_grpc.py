"""The official Python client (gRPC) against Apache's proxy; both are fetched on first use, into the interop cache."""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.interop.apache import Unavailable, cache_directory, locked, obtain, run_bounded

from bench.load.own_server import WORK
from bench.peers.processes import NotReady, await_ready, folder, free_ports, listens, process
from bench.peers.rocketmq_client import java_command
from bench.peers.rocketmq_servers import NAME_SERVER_FLAGS, apache_server
from skyrocket.client import Admin, ClientError

CLIENT = "rocketmq-python-client==5.1.2"
PROXY = "5.4.0"
_FETCH_S = 240.0
_RUN_S = 180.0
_TOPIC = "BenchGrpc"
_POM = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>skyrocket</groupId><artifactId>proxy</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-proxy</artifactId><version>{PROXY}</version>
  </dependency></dependencies>
</project>
"""


def figures(seconds: float) -> dict[str, float] | str:
    """Messages per second (send, consume), or why there are none."""
    try:
        python, jars, apache = _python(), _proxy_jars(), obtain(PROXY)
        with apache_server(apache) as server, _proxy(jars, server.name_server) as endpoint:
            asyncio.run(_make_topic(server.name_server))
            return _run(python, endpoint, seconds)
    except (Unavailable, NotReady) as reason:
        return str(reason)


def _run(python: Path, endpoint: str, seconds: float) -> dict[str, float]:
    with folder(WORK, "grpc-") as home:
        program = Path(__file__).with_name("grpc_program.py")
        environment = {**os.environ, "HOME": str(home), "PYTHONPATH": ""}
        command = [str(python), str(program), endpoint, _TOPIC, str(seconds)]
        try:
            done = run_bounded(command, _RUN_S, cwd=home, environment=environment)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"it did not come to its end within {_RUN_S:.0f} s") from None
    if done.exit_code != 0:
        raise Unavailable(f"it failed: {done.stderr.strip()[-300:]}")
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


@contextlib.contextmanager
def _proxy(jars: str, name_server: str) -> Iterator[str]:
    """In cluster mode before a running broker; gives the address for clients."""
    with folder(WORK, "proxy-") as home:
        grpc, remoting = free_ports(2)
        settings = {
            "rocketMQClusterName": "DefaultCluster",
            "namesrvAddr": name_server,
            "grpcServerPort": grpc,
            "remotingListenPort": remoting,
        }
        (home / "rmq-proxy.json").write_text(json.dumps(settings))
        command = java_command(jars, home, NAME_SERVER_FLAGS, "org.apache.rocketmq.proxy.ProxyStartup")
        command += ["-n", name_server, "-pm", "cluster", "-pc", str(home / "rmq-proxy.json")]
        with process(command, home, "proxy") as running:
            await_ready(running, home / "proxy.log", lambda: listens(grpc))
            yield f"127.0.0.1:{grpc}"


async def _make_topic(name_server: str) -> None:
    async with Admin(name_server) as admin:
        await admin.create_topic(_TOPIC, 8)
        for _ in range(100):
            with contextlib.suppress(ClientError):
                if await admin.queues(_TOPIC):
                    return
            await asyncio.sleep(0.1)
    raise Unavailable("the broker does not show its topic")


def _python() -> Path:
    """An interpreter that has the client: its dependencies are not ours."""
    home = cache_directory() / CLIENT.replace("==", "-")
    python = home / "bin" / "python"
    home.parent.mkdir(parents=True, exist_ok=True)
    with locked(home.with_name(f"{home.name}.lock")):
        if not (home / "installed").exists():
            for command in ([sys.executable, "-m", "venv", str(home)], [str(python), "-m", "pip", "install", CLIENT]):
                _fetch(command, CLIENT, home.parent)
            (home / "installed").touch()
    return python


def _proxy_jars() -> str:
    if shutil.which("mvn") is None:
        raise Unavailable("mvn is not on the PATH")
    home = cache_directory() / f"proxy-{PROXY}"
    home.mkdir(parents=True, exist_ok=True)
    listing = home / "classpath.txt"
    with locked(home / "lock"):
        if not listing.exists():
            (home / "pom.xml").write_text(_POM)
            goal = ["dependency:build-classpath", "-DincludeScope=runtime", f"-Dmdep.outputFile={listing}"]
            _fetch(["mvn", "--quiet", "--batch-mode", *goal], f"rocketmq-proxy {PROXY}", home)
    return listing.read_text().strip()


def _fetch(command: list[str], what: str, where: Path) -> None:
    try:
        done = run_bounded(command, _FETCH_S, cwd=where)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} was not fetched within {_FETCH_S:.0f} s") from None
    if done.exit_code != 0:
        raise Unavailable(f"{what} cannot be fetched: {(done.stdout + done.stderr).strip()[-300:]}")
