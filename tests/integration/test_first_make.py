"""The Makefile before anything is installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

# Debian's Python without the package python3-venv: it makes half an environment and says what to install.
WITHOUT_ENSUREPIP = f"""#!/bin/sh
if [ "$1" = -m ]; then {sys.executable} -m venv --without-pip "$3"; echo "apt install python3-venv"; exit 1; fi
exec {sys.executable} "$@"
"""


def test_half_an_environment_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    shutil.copy(ROOT / "Makefile", tmp_path)
    python = tmp_path / "python"
    python.write_text(WITHOUT_ENSUREPIP)
    python.chmod(0o755)
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    for _ in range(2):  # the second time, too, it is the environment that is missing, and not pip
        done = subprocess.run(
            ["make", "run", f"PYTHON={python}"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 2
        assert "apt install python3-venv" in done.stdout
