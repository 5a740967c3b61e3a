"""Dashboards and alert rules of deploy/: they ask for nothing that the servers do not tell."""

import asyncio
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from skyrocket.cli.broker import BROKER_SECTIONS
from skyrocket.cli.namesrv import NAME_SERVER_SECTIONS
from skyrocket.client import ClientMetrics
from skyrocket.config.sections import BrokerConfig, ControllerConfig, MetricsExporter, NameServerConfig
from skyrocket.config.sources import environment_name, keys_of
from tests import ROOT
from tests.cluster.controller.controller_fixture import running as running_controller
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import CONFIG, running_pair
from tests.dashboards import DASHBOARDS, DEPLOY, RULES, panel_queries, variable_queries
from tests.http_get import get
from tests.ports import free_port

OWN_OF_PROMETHEUS = {"up"}
METRIC = re.compile(r"\b((?:rocketmq|skyrocket)_\w+|up)\b(?!\()")


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
    """What a scrape of a master, its slave, a name server and a controller finds, and what a client tells."""
    names_port, controller_port = free_port(), free_port()
    control = ControllerConfig(store=f"file:{tmp_path}/sets", metrics_port=controller_port)
    observed = replace(CONFIG, metrics_exporter=MetricsExporter.PROM, metrics_port=0)
    async with (
        name_server_fixture.running(tmp_path / "names", NameServerConfig(metrics_port=names_port)),
        running_controller(tmp_path / "control", control),
        running_pair(tmp_path, config=observed) as pair,
    ):
        ports = [*(each.broker.metrics_port for each in (pair.master, pair.slave)), names_port, controller_port]
        served = [await asyncio.to_thread(get, port, "/metrics") for port in ports]
    assert [status for status, _ in served] == [200] * 4
    return [*(page for _, page in served), ClientMetrics().page().decode()]


def labels_asked(texts: list[str]) -> set[tuple[str, str]]:
    """Which labels of which metrics queries choose by: `m{a="x"}` gives (m, a)."""
    return {
        (name, label)
        for text in texts
        for name, chosen in re.findall(r"\b((?:rocketmq|skyrocket)_\w+)\{([^}]*)\}", text)
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', chosen))
    }


def labels_told(page: str) -> dict[str, set[str]]:
    """The labels of each metric that has a sample on the page."""
    found: dict[str, set[str]] = {}
    for name, chosen in re.findall(r"^(\w+)\{(.*)\} \S+$", page, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', chosen))
    return found


async def test_every_metric_that_is_asked_for_is_told_by_somebody(tmp_path: Path) -> None:
    told_pages = await pages(tmp_path)
    known = set().union(*map(told, told_pages)) | OWN_OF_PROMETHEUS
    texts = {name: [*panel_queries(dashboard), *variable_queries(dashboard)] for name, dashboard in DASHBOARDS.items()}
    texts["alerts"] = [rule["expr"] for rule in RULES]
    asked = {name: names_in(each) for name, each in texts.items()}
    assert all(asked.values())
    assert {name: names - known for name, names in asked.items() if names - known} == {}
    labels: dict[str, set[str]] = {}
    for page in told_pages:
        for name, told_labels in labels_told(page).items():
            labels.setdefault(name, set()).update(told_labels)
    wanted = labels_asked([text for each in texts.values() for text in each])
    tried = {(name, label) for name, label in wanted if name in labels}
    assert len(tried) >= 8, "too few metrics have samples to compare labels"
    assert {(name, label) for name, label in tried if label not in labels[name]} == set()


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


def promtool(*arguments: str | Path) -> str:
    """What it says; a test that needs it is skipped where it is not installed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed (Debian's package prometheus): PromQL was not parsed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_takes_settings_and_rules() -> None:
    promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    assert f"{len(RULES)} rules found" in promtool("check", "rules", DEPLOY / "prometheus" / "alerts.yml")


def test_rules_fire_when_they_should_and_not_before() -> None:
    promtool("test", "rules", DEPLOY / "prometheus" / "alerts_test.yml")
    tried = yaml.safe_load((DEPLOY / "prometheus" / "alerts_test.yml").read_text())["tests"]
    fired = {case["alertname"] for each in tried for case in each["alert_rule_test"] if case["exp_alerts"]}
    assert len(fired) >= 8
    assert fired <= {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("name", DASHBOARDS)
def test_prometheus_parses_every_query_of_a_dashboard(name: str, tmp_path: Path) -> None:
    """As rules that record it: promtool has no command for a query alone. Grafana puts values in place of $names."""
    asked = panel_queries(DASHBOARDS[name])
    rules = [{"record": f"query:{number}", "expr": without_variables(each)} for number, each in enumerate(asked)]
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(asked)} rules found" in promtool("check", "rules", file)


def without_variables(query: str) -> str:
    return re.sub(r"\$\w+", "x", query)


def test_a_query_that_prometheus_does_not_take_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "queries.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "q", "rules": [{"record": "q:1", "expr": "sum by (x) (y"}]}]}))
    with pytest.raises(AssertionError, match="parse error"):
        promtool("check", "rules", file)


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
