"""What looks at deploy/: Helm, and Python packages with the schemas of Kubernetes and Grafana."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import ROOT
from tests.helm import built_helm
from tests.interop.apache import Unavailable

_INSTALL_TIMEOUT_S = 300.0


@pytest.fixture(scope="session")
def helm() -> str:
    """The program; skips where it cannot be had."""
    try:
        return built_helm()
    except Unavailable as reason:
        return pytest.skip(str(reason))


@pytest.fixture(scope="session")
def python_with() -> Callable[[str], Path]:
    """An interpreter of its own in var/ that has a package; skips where it cannot be installed."""

    def installed(package: str) -> Path:
        home = ROOT / "var" / "deploy" / package.replace("!", "-")
        python, done = home / "bin" / "python", home / "installed"
        if not done.exists():
            made = subprocess.run([sys.executable, "-m", "venv", str(home)], check=False, capture_output=True)
            install = [str(python), "-m", "pip", "install", "-q", package]
            if made.returncode or subprocess.run(install, check=False, timeout=_INSTALL_TIMEOUT_S).returncode:
                pytest.skip(f"{package} cannot be installed here")
            done.touch()
        return python

    return installed
