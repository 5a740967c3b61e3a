"""The dashboards through Grafana's own schema, of the release that monitoring-compose.yml starts."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT
from tests.dashboards import DASHBOARDS

PROGRAM = Path(__file__).with_name("grafana_reads.py")
# Grafana generates this package from its schema, one for each of its releases.
PACKAGES = {"11.1.0": "grafana-foundation-sdk==1769699681!11.1.0"}

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

ReadBack = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def read_back(python_with: Callable[[str], Path]) -> ReadBack:
    """What Grafana's types make of a dashboard: what they do not know is lost."""
    services = yaml.safe_load((ROOT / "monitoring-compose.yml").read_text())["services"]
    release = services["grafana"]["image"].partition(":")[2]
    python = python_with(PACKAGES[release])

    def read(dashboard: dict[str, Any]) -> dict[str, Any]:
        done = subprocess.run(
            [str(python), str(PROGRAM)],
            input=json.dumps(dashboard),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return read


def lost(written: Any, read: Any, place: str = "") -> list[str]:
    """The places whose value is not what was written; Grafana may add what is its default."""
    if isinstance(written, dict) and isinstance(read, dict):
        return [
            each
            for key, value in written.items()
            for each in (lost(value, read[key], f"{place}.{key}") if key in read else [f"{place}.{key}"])
        ]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        pairs = zip(written, read, strict=True)
        return [each for number, (one, other) in enumerate(pairs) for each in lost(one, other, f"{place}[{number}]")]
    return [] if written == read else [place]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafana_knows_every_field_of_a_dashboard(name: str, read_back: ReadBack) -> None:
    assert lost(DASHBOARDS[name], read_back(DASHBOARDS[name])) == []


def test_a_field_that_grafana_does_not_know_is_seen(read_back: ReadBack) -> None:
    wrong = json.loads(json.dumps(DASHBOARDS["broker"]))
    wrong["panels"][0]["targets"][0]["legend"] = "x"
    wrong["panels"][1]["fieldConfig"]["defaults"]["units"] = "s"
    assert lost(wrong, read_back(wrong)) == [
        ".panels[0].targets[0].legend",
        ".panels[1].fieldConfig.defaults.units",
    ]
