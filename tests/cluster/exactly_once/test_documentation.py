"""The examples of docs/guides/exactly-once.md run as they stand there, and its numbers are true."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.broker.send import duplicate_window
from skyrocket.client.consumer import dead_letter_cause
from skyrocket.config.sections import BrokerConfig
from tests import ROOT

PAGE = (ROOT / "docs" / "guides" / "exactly-once.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_page_runs(example: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_page_tells_the_properties_and_the_bounds() -> None:
    assert all(f"`{name}`" in PAGE for name in dead_letter_cause.CAUSE_PROPERTIES)
    assert f"`producerDuplicateWindow` ({BrokerConfig().duplicate_window})" in PAGE
    assert f"{duplicate_window.TAIL_BYTES >> 20} MiB" in PAGE
