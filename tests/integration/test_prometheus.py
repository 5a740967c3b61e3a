"""A real Prometheus asks name server, controller, brokers and clients: every panel of every dashboard has something."""

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from skyrocket import Message, Producer
from skyrocket.client import ClientError, ClientMetrics
from skyrocket.observability.exposition import CONTENT_TYPE
from skyrocket.observability.http_endpoint import HttpEndpoint, Page
from tests.dashboards import DASHBOARDS, DEPLOY, RULES, panel_queries, variable_queries
from tests.http_get import get
from tests.integration.program import SMALL_FILES, Program
from tests.ports import free_port
from tests.waiting import until

PROMETHEUS = shutil.which("prometheus")
WORKER = """
from skyrocket import ConsumeFromWhere, PushConsumer, PushConsumerSettings, RetryPolicy

settings = PushConsumerSettings(consume_from=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET)
consumer = PushConsumer("Billing", settings=settings)


@consumer.on("Orders", retry=RetryPolicy(retries=0))
def order(body: str) -> None:
    if body == "bad":
        raise ValueError(body)
"""


class Prometheus:
    """The program, asked over HTTP."""

    def __init__(self, port: int) -> None:
        self._port = port

    def _data(self, path: str) -> Any:
        status, text = get(self._port, path)
        assert status == 200, text
        return json.loads(text)["data"]

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return get(self._port, "/-/ready")[0] == 200
        return False

    def up(self) -> set[str]:
        """The jobs all of whose targets answer."""
        return {row["metric"]["job"] for row in self.rows("min by (job) (up) == 1")}

    def rules(self) -> dict[str, str]:
        """The name of each rule and its health."""
        groups = self._data("/api/v1/rules")["groups"]
        return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

    def rows(self, query: str) -> list[Any]:
        return list(self._data(f"/api/v1/query?query={quote(query)}")["result"])

    def values(self, query: str) -> list[str]:
        """As Grafana reads `label_values(selector, label)`."""
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert found is not None, query
        return list(self._data(f"/api/v1/label/{found[2]}/values?match[]={quote(found[1])}"))


@contextlib.contextmanager
def prometheus(folder: Path, targets: dict[str, list[int]]) -> Iterator[Prometheus]:
    """With the rules of deploy/, asking each second."""
    assert PROMETHEUS is not None
    config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(DEPLOY / "prometheus" / "alerts.yml")]
    config["scrape_configs"] = [
        {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}
        for job, ports in targets.items()
    ]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [PROMETHEUS, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}"]
    with (
        open(folder / "prometheus.log", "w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as process,
    ):
        try:
            yield Prometheus(port)
        finally:
            process.kill()


class Cluster:
    """A name server, a controller, a master and its slave, a worker: programs, each with a port for Prometheus."""

    def __init__(self, folder: Path, opened: contextlib.ExitStack) -> None:
        self._folder = folder
        self._opened = opened
        self.name_server = f"127.0.0.1:{free_port()}"
        self.targets: dict[str, list[int]] = {}

    def start(self) -> None:
        metrics = "metricsPromExporterPort={}"
        listen_port = self.name_server.rpartition(":")[2]
        self._program("skyrocket-namesrv", "namesrv", "--listen-port", listen_port, settings=(metrics,))
        controller = f"127.0.0.1:{free_port()}"
        chosen = ("--peers", f"n0-{controller}", "--store", f"file:{self._folder / 'sets'}")
        self._program(
            "skyrocket-controller", "controller", *chosen, settings=("bindAddress=127.0.0.1", metrics)
        ).await_line("boot success")
        brokers = []
        for name in ("one", "other"):
            given = ("-n", self.name_server, "--listen-port", str(free_port()), "--broker-ip", "127.0.0.1")
            settings = ("enableControllerMode=true", f"controllerAddr={controller}", "metricsExporterType=PROM")
            store = ("--store", str(self._folder / name))
            brokers.append(
                self._program("skyrocket-broker", "broker", *given, *store, settings=(*SMALL_FILES, *settings, metrics))
            )
        for broker in brokers:
            broker.await_line("boot success")
        (self._folder / "shop.py").write_text(WORKER)
        application = ("worker", "shop:consumer", "--app-dir", str(self._folder), "-n", self.name_server, "--port")
        self._program("skyrocket-worker", *application, "{}")

    def _program(self, job: str, *arguments: str, settings: tuple[str, ...] = ()) -> Program:
        port = free_port()
        self.targets.setdefault(job, []).append(port)
        given = [word.format(port) for word in arguments]
        for each in settings:
            given += ["--set", each.format(port)]
        return self._opened.enter_context(Program(*given, home=self._folder))


@contextlib.asynccontextmanager
async def served(metrics: ClientMetrics) -> AsyncIterator[int]:
    """A client's page at a port, as an application offers it."""
    endpoint = HttpEndpoint({"/metrics": lambda: Page(200, CONTENT_TYPE, metrics.page())})
    yield await endpoint.listen("127.0.0.1", 0)
    await endpoint.stop()


async def send_on(name_server: str, metrics: ClientMetrics) -> None:
    """Orders without end, each fifth of them bad."""
    producer = Producer("Shop", name_server)
    producer.use(metrics)
    async with producer:
        for number in range(1_000_000):
            with contextlib.suppress(ClientError):  # the set may have no master yet
                await producer.send(Message("Orders", b"bad" if number % 5 == 0 else b"good"))
            await asyncio.sleep(0.05)


# Only a broker with a bug has errors that it did not expect; that it would tell them is in tests/cluster.
OF_BUGS = "skyrocket_requests_failed_total"


def empty_panels(found: Prometheus) -> list[str]:
    """Each query of a panel that has no row; variables of Grafana stand for everything, as they do at first."""
    asked = [query for dashboard in DASHBOARDS.values() for query in panel_queries(dashboard)]
    return [query for query in asked if OF_BUGS not in query and not found.rows(re.sub(r"\$\w+", ".*", query))]


@pytest.mark.timeout(600)
@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (Debian's package prometheus)")
async def test_every_panel_and_variable_has_something_to_show(tmp_path: Path) -> None:
    metrics = ClientMetrics()
    with contextlib.ExitStack() as opened:
        cluster = Cluster(tmp_path, opened)
        await asyncio.to_thread(cluster.start)
        async with served(metrics) as port, asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(send_on(cluster.name_server, metrics))
            found = opened.enter_context(prometheus(tmp_path, {**cluster.targets, "skyrocket-client": [port]}))
            await until(found.is_ready, seconds=120)
            await until(lambda: found.up() == {*cluster.targets, "skyrocket-client"}, "all are asked", seconds=120)
            missing: list[str] = []  # is shown when it stays so

            def all_have_rows() -> bool:
                missing[:] = empty_panels(found)
                return missing == []

            await until(all_have_rows, seconds=120)
            for dashboard in DASHBOARDS.values():
                for query in variable_queries(dashboard):
                    assert found.values(query), query
            health = found.rules()
            assert health == dict.fromkeys((rule["alert"] for rule in RULES), "ok")
            sending.cancel()
