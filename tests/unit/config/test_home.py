"""Servers of a user who has no home directory, as in a container that was given any number."""

import pwd
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.config.home import in_home


def _nobody(number: int) -> NoReturn:
    raise KeyError(number)


@pytest.mark.parametrize("server", ["namesrv", "broker", "controller", "standalone"])
def test_a_server_without_a_home_says_what_to_name(
    server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [server])
    assert done.exit_code == 2, done.output
    assert "this user has none: set HOME, or name another place" in done.output


def test_a_place_that_is_named_needs_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    assert in_home("/store") == Path("/store")
