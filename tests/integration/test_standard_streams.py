"""Standard input, output and error of commands: closed, full, or with a reader that has gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_SKYROCKET = f"{sys.executable} -m skyrocket"
_NOBODY = "-n 127.0.0.1:1"  # the port is reserved, nothing listens there


def _run(line: str, home: Path) -> subprocess.CompletedProcess[str]:
    shell = ["bash", "-c", f"set -o pipefail; {line}"]
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
    return subprocess.run(shell, capture_output=True, text=True, env=environment, timeout=120, check=False)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_standard_streams_are_closed_ends_with_its_own_code(tmp_path: Path, closed: str) -> None:
    ended = _run(f"{_SKYROCKET} topic list {_NOBODY} {closed}", tmp_path)

    assert ended.returncode == 1, ended.stderr
    assert "Assertion" not in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["mqadmin", "mqadmin help updateTopic", "mqadmin updateTopic -h"])
def test_a_reader_that_has_seen_enough_is_no_failure(tmp_path: Path, command: str) -> None:
    ended = _run(f"{_SKYROCKET} {command} | true", tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["mqadmin", "context list --output json"])
def test_output_that_cannot_be_written_is_named(tmp_path: Path, command: str) -> None:
    ended = _run(f"{_SKYROCKET} {command} > /dev/full", tmp_path)

    assert ended.returncode == 1
    assert "standard output cannot be written: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr


def test_signs_that_the_locale_does_not_have_are_escaped(tmp_path: Path) -> None:
    line = f"PYTHONIOENCODING=latin-1 {_SKYROCKET} context set 'o→日本' {_NOBODY} --output json"
    ended = _run(line, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert "o\\u2192\\u65e5\\u672c" in ended.stdout
