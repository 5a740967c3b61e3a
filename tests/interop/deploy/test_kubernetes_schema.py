"""What the chart renders through the schemas of Kubernetes' releases, strictly; lint is in tests/unit."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import ROOT

CHART = ROOT / "deploy" / "helm" / "skyrocket"
FORMS = {"default": (), "failover": ("-f", str(CHART / "examples" / "failover.yaml"))}
PACKAGE = "kubernetes-validate==1.37.0"
RELEASES = ("1.25", "1.29", "1.33", "1.37")  # the chart's oldest, and the package's newest

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]


def ran(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("form", FORMS)
def test_kubernetes_knows_every_field(
    helm: str, python_with: Callable[[str], Path], form: str, release: str, tmp_path: Path
) -> None:
    rendered = tmp_path / "all.yaml"
    chart = ("template", "sky", str(CHART), "--namespace", "msgs", "--kube-version", f"{release}.0")
    rendered.write_text(ran(helm, *chart, *FORMS[form]))
    validate = python_with(PACKAGE).with_name("kubernetes-validate")
    told = ran(str(validate), "--strict", "-k", release, str(rendered))
    objects = rendered.read_text().count("\nkind: ")
    assert objects > 5
    assert told.count("passed for resource") == objects


def test_a_field_that_kubernetes_does_not_know_is_seen(python_with: Callable[[str], Path], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {prots: []}\n")
    validate = python_with(PACKAGE).with_name("kubernetes-validate")
    done = subprocess.run([str(validate), "--strict", str(wrong)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "prots" in done.stdout + done.stderr
