"""What the dashboards and rules of deploy/ ask for."""

import json
from typing import Any

import yaml

from tests import ROOT

DEPLOY = ROOT / "deploy"
DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted((DEPLOY / "grafana").glob("*.json"))
}
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text())["groups"][0]["rules"]


def panel_queries(dashboard: dict[str, Any]) -> list[str]:
    """What its panels show, in PromQL with Grafana's $names."""
    return [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


def variable_queries(dashboard: dict[str, Any]) -> list[str]:
    """What its variables take their values from: `label_values(metric, label)`."""
    return [each["query"]["query"] for each in dashboard["templating"]["list"] if each["type"] == "query"]
