"""Grafana itself loads what lies in deploy/grafana: the data source, and every dashboard as it is written."""

import base64
import contextlib
import http.client
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards import DASHBOARDS, DEPLOY
from tests.grafana import built_grafana
from tests.interop.apache import Unavailable
from tests.interop.deploy.test_grafana_schema import lost
from tests.ports import free_port
from tests.waiting import wait_until

PASSWORD = "shown to nobody"
# As monitoring-compose.yml has them.
DASHBOARDS_IN_IMAGE = "/var/lib/grafana/dashboards"
PROMETHEUS_IN_COMPOSE = "http://prometheus:9090"
UP = {"refId": "A", "datasource": {"uid": "prometheus"}, "expr": 'up{job="skyrocket-self"}', "instant": True}

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(3600)]


class Grafana:
    """The program, asked as its admin."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._who = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()

    def ask(self, path: str, body: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Authorization": f"Basic {self._who}", "Content-Type": "application/json"}
        with contextlib.closing(connection):
            given = None if body is None else json.dumps(body)
            connection.request("GET" if given is None else "POST", path, given, headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            assert answer.status == 200, text
            return json.loads(text)

    def dashboards(self) -> dict[str, str]:
        """Their folders, by uid."""
        return {each["uid"]: each["folderTitle"] for each in self.ask("/api/search?type=dash-db")}

    def wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        """Until it has ended, or has read the files, which it does while it already answers."""

        def is_ready() -> bool:
            with contextlib.suppress(OSError):
                return len(self.dashboards()) == len(DASHBOARDS)
            return process.poll() is not None

        wait_until(is_ready, "Grafana has a dashboard for each file")


@pytest.fixture(scope="module")
def prometheus_port() -> int:
    """Where the data source looks; nothing listens there but in the test that wants it."""
    return free_port()


@pytest.fixture(scope="module")
def grafana(prometheus_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grafana]:
    """A new one with the provisioning files of deploy/, in which two places are others here."""
    try:
        home = built_grafana()
    except Unavailable as reason:
        pytest.skip(str(reason))
    folder = tmp_path_factory.mktemp("grafana")
    provisioning = folder / "provisioning"
    shutil.copytree(DEPLOY / "grafana" / "provisioning", provisioning)
    for file in provisioning.rglob("*.yml"):
        text = file.read_text().replace(DASHBOARDS_IN_IMAGE, str(DEPLOY / "grafana"))
        file.write_text(text.replace(PROMETHEUS_IN_COMPOSE, f"http://127.0.0.1:{prometheus_port}"))
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GF_")},
        "GF_SERVER_HTTP_ADDR": "127.0.0.1",
        "GF_SERVER_HTTP_PORT": str(port),
        "GF_SECURITY_ADMIN_PASSWORD": PASSWORD,
        "GF_PATHS_DATA": str(folder / "data"),
        "GF_PATHS_LOGS": str(folder / "logs"),
        "GF_PATHS_PROVISIONING": str(provisioning),
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
    }
    command = [str(home / "grafana"), "server", "--homepath", str(home)]
    found = Grafana(port)
    with contextlib.ExitStack() as opened:
        for _ in range(3):  # a first start may end: two of its services make the default organization at once
            process = opened.enter_context(running(command, folder / "grafana.log", environment))
            found.wait_ready(process)
            if "failed to create default organization" not in (folder / "grafana.log").read_text()[-500:]:
                break
        assert process.poll() is None, (folder / "grafana.log").read_text()[-2000:]
        yield found


@contextlib.contextmanager
def running(
    command: list[str], log: Path, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with open(log, "w") as file, subprocess.Popen(command, env=environment, stdout=file, stderr=file) as process:
        try:
            yield process
        finally:
            process.kill()


def test_grafana_finds_every_dashboard_in_its_folder(grafana: Grafana) -> None:
    assert grafana.dashboards() == {dashboard["uid"]: "Skyrocket" for dashboard in DASHBOARDS.values()}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafana_has_a_dashboard_as_the_file_has_it(name: str, grafana: Grafana) -> None:
    answer = grafana.ask(f"/api/dashboards/uid/{DASHBOARDS[name]['uid']}")
    assert answer["meta"]["provisioned"] is True
    assert answer["meta"]["provisionedExternalId"] == f"{name}.json"
    assert lost(DASHBOARDS[name], answer["dashboard"]) == []


def test_grafana_has_the_data_source_that_dashboards_choose_by_default(grafana: Grafana) -> None:
    (source,) = grafana.ask("/api/datasources")
    assert (source["uid"], source["type"], source["isDefault"]) == ("prometheus", "prometheus", True)


def test_grafana_asks_prometheus_through_the_data_source(
    grafana: Grafana, prometheus_port: int, tmp_path: Path
) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed (Debian's package prometheus)")
    config = tmp_path / "prometheus.yml"
    own = f"{{job_name: skyrocket-self, static_configs: [{{targets: ['127.0.0.1:{prometheus_port}']}}]}}"
    config.write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs: [{own}]\n")
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}"]
    command += [f"--web.listen-address=127.0.0.1:{prometheus_port}"]

    def is_shown() -> bool:
        with contextlib.suppress(AssertionError, OSError):  # it has nobody to ask yet
            frames = grafana.ask("/api/ds/query", {"queries": [UP], "from": "now-5m", "to": "now"})["results"]["A"]
            return any(values[-1:] == [1] for frame in frames["frames"] for values in frame["data"]["values"][1:])
        return False

    with running(command, tmp_path / "prometheus.log"):
        wait_until(is_shown, "Prometheus' own job is up")
