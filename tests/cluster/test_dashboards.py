"""Dashboards and alert rules of deploy/: they ask for nothing that the servers do not tell."""

import asyncio
import json
import re
import shutil
import subprocess
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from skyrocket.cli.broker import BROKER_SECTIONS
from skyrocket.cli.namesrv import NAME_SERVER_SECTIONS
from skyrocket.client import ClientMetrics
from skyrocket.config.sections import BrokerConfig, ControllerConfig, NameServerConfig
from skyrocket.config.sources import environment_name, keys_of
from skyrocket.observability.exposition import render
from tests import ROOT
from tests.cluster.controller.controller_fixture import running as running_controller
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import running_pair
from tests.http_get import get
from tests.ports import free_port

DEPLOY = ROOT / "deploy"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana").glob("*.json"))}
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]
OWN_OF_PROMETHEUS = {"up"}
METRIC = re.compile(r"\b((?:rocketmq|skyrocket)_\w+|up)\b(?!\()")


def queries(dashboard: dict[str, Any]) -> list[str]:
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return asked + [each["definition"] for each in dashboard["templating"]["list"] if each["type"] == "query"]


def names_in(texts: list[str]) -> set[str]:
    """Metrics in queries; what stands in quotes is a value."""
    return {name for text in texts for name in METRIC.findall(re.sub(r'"[^"]*"', "", text))}


def told(page: str) -> set[str]:
    """The names under which Prometheus keeps what a page tells."""
    found = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE):
        found |= {name + ending for ending in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))}
    return found


async def pages(tmp_path: Path) -> list[str]:
    """What a master, its slave, a name server, a controller and a client tell."""
    names_port, controller_port = free_port(), free_port()
    control = ControllerConfig(store=f"file:{tmp_path}/sets", metrics_port=controller_port)
    async with (
        name_server_fixture.running(tmp_path / "names", NameServerConfig(metrics_port=names_port)),
        running_controller(tmp_path / "control", control),
        running_pair(tmp_path) as pair,
    ):
        brokers = [
            render(chain.from_iterable(feature.metrics() for feature in each.broker.parts.features), {}).decode()
            for each in (pair.master, pair.slave)
        ]
        served = [await asyncio.to_thread(get, port, "/metrics") for port in (names_port, controller_port)]
    assert [status for status, _ in served] == [200, 200]
    return [*brokers, *(page for _, page in served), ClientMetrics().page().decode()]


async def test_every_metric_that_is_asked_for_is_told_by_somebody(tmp_path: Path) -> None:
    known = set().union(*map(told, await pages(tmp_path))) | OWN_OF_PROMETHEUS
    asked = {name: names_in(queries(dashboard)) for name, dashboard in DASHBOARDS.items()}
    asked["alerts"] = names_in([rule["expr"] for rule in RULES])
    assert all(asked.values())
    assert {name: names - known for name, names in asked.items() if names - known} == {}


def test_there_is_a_dashboard_for_each_seat() -> None:
    assert set(DASHBOARDS) == {"cluster", "broker", "topics-and-groups", "worker"}
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_numbers_of_their_own_and_do_not_cover_each_other(name: str) -> None:
    panels = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["targets"] for panel in panels)


def test_each_rule_says_how_bad_it_is_and_what_it_means() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")"), rule["alert"]


def test_prometheus_takes_settings_and_rules() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian's package prometheus): PromQL was not parsed")
    settings = DEPLOY / "prometheus" / "prometheus.yml"
    checked = subprocess.run([promtool, "check", "config", settings], capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_compose_file_mounts_what_is_there_and_sets_what_servers_know() -> None:
    services = yaml.safe_load((ROOT / "monitoring-compose.yml").read_text())["services"]
    for service in services.values():
        for volume in service.get("volumes", []):
            if volume.startswith("."):
                assert (ROOT / volume.split(":")[0]).is_dir(), volume
    for name, sections, prefix in (
        ("broker", BROKER_SECTIONS, "SKYROCKET_BROKER_"),
        ("namesrv", NAME_SERVER_SECTIONS, "SKYROCKET_NAMESRV_"),
    ):
        known = {environment_name(key, prefix) for section in sections for key in keys_of(section)}
        assert set(services[name]["environment"]) <= known
    asked = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    targets = {target for job in asked for each in job["static_configs"] for target in each["targets"]}
    told_port = services["namesrv"]["environment"]["SKYROCKET_NAMESRV_METRICS_PROM_EXPORTER_PORT"]
    assert targets == {f"namesrv:{told_port}", f"broker:{BrokerConfig().metrics_port}"}
    assert all(job["job_name"].startswith("skyrocket") for job in asked)
