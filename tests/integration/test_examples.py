"""Every example runs as its first line says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(example: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    if done.stderr.startswith("skipped: "):  # tests/integration/test_celery.py runs it where it can
        pytest.skip(done.stderr.strip())


def test_the_store_example_prints_what_it_read() -> None:
    example = ROOT / "examples" / "store_messages.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert "read offset=4 body=order 4" in done.stderr
    assert "by key: ['order 3']" in done.stderr
    assert re.search(r"on disk up to physical offset [1-9]", done.stderr)
