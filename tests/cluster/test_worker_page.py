"""docs/guides/worker.md is run as it stands there: its files, its commands, and what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skyrocket.testing import LocalCluster
from tests import ROOT
from tests.integration.program import Program

PAGE = (ROOT / "docs" / "guides" / "worker.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
CONSOLE = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
TEXTS = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
# Unbuffered, `print` writes its line and the line's end one after the other: a thread's log line may come between.
_END = r"(?:$|\d{4}-\d\d-\d\d )"


def _commands() -> dict[str, list[str]]:
    """What is typed, and what the page shows for it."""
    found: dict[str, list[str]] = {}
    for block in CONSOLE:
        first, *rest = block.splitlines()
        found[first.removeprefix("$ ")] = rest
    return found


def _pattern(line: str) -> str:
    return re.escape(line).replace("…", r"\S+")


def test_the_page_of_the_worker_runs_as_it_stands(tmp_path: Path, rocketmq: LocalCluster) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    commands = _commands()
    environment = {**os.environ, "NAMESRV_ADDR": rocketmq.name_server_address}
    start = "skyrocket worker orders:consumer"
    (ready,) = commands[start]
    arguments = [*start.removeprefix("skyrocket ").split(), "--app-dir", str(tmp_path)]
    with Program(*arguments, home=tmp_path, environment=environment) as worker:
        worker.await_line(_pattern(ready))
        sent = subprocess.run(
            [sys.executable, "send.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert sent.stdout.splitlines() == commands["python send.py"], sent.stderr
        printed, logged = (text.splitlines() for text in TEXTS)
        for line in printed:
            worker.await_line(f"^{_pattern(line)}{_END}")
        for line in logged:
            worker.await_line(_pattern(line))
        listed = subprocess.run(
            [sys.executable, "-m", *"skyrocket dlq list Billing".split()],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "skyrocket dlq list Billing" in commands
        assert "amount, customer missing" in listed.stdout, listed.stderr
        assert worker.stop() == 0
    assert {line for line in worker.lines if line.startswith(("Ann", "Bob", "Cem", "invoice"))} == set(printed)


def test_the_options_of_the_page_are_those_of_the_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from skyrocket.cli.commands import app

    shown = CliRunner().invoke(app, ["worker", "--help"], env={"COLUMNS": "200"}).output
    named = set(re.findall(r"^\| `(--?[\w-]+)`", PAGE, re.MULTILINE))
    assert named, "the table is there"
    assert [option for option in sorted(named) if option not in shown] == []
    (command,) = (each for each in _commands() if "--processes" in each)
    assert [word for word in command.split() if word.startswith("--") and word not in shown] == []


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_files_of_the_page_are_well_typed(tmp_path: Path, name: str) -> None:
    for each, text in FILES.items():
        (tmp_path / each).write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache"), str(tmp_path / name)]
    options = ["--config-file", str(ROOT / "pyproject.toml")]
    environment = {**os.environ, "MYPYPATH": f"{tmp_path}:{ROOT / 'src'}"}
    done = subprocess.run([*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
