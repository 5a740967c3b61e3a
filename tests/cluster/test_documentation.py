"""The examples of docs/guides/testing.md run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

PAGE = ROOT / "docs" / "guides" / "testing.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_page_has_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_runs(example: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_page_names_every_method() -> None:
    from skyrocket.testing import AsyncLocalCluster

    text = PAGE.read_text()
    public = [name for name in vars(AsyncLocalCluster) if not name.startswith("_")]
    assert [name for name in public if name not in text and name not in ("start", "stop", "broker_names")] == []
