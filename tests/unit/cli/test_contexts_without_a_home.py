"""The file of contexts where a user has no home, or may not look into it."""

import pwd
from pathlib import Path
from typing import NoReturn

import pytest

from skyrocket.cli.program.contexts import Contexts, read_contexts
from skyrocket.errors import ConfigError


def _refuse(*_: object, **__: object) -> NoReturn:
    raise PermissionError(13, "Permission denied")


def _nobody(number: int) -> NoReturn:
    raise KeyError(number)


def test_who_has_no_home_has_no_contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "SKYROCKET_CONTEXTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", _nobody)
    monkeypatch.chdir(tmp_path)

    assert read_contexts() == Contexts()


def test_a_home_that_may_not_be_read_has_no_contexts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SKYROCKET_CONTEXTS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for method in ("read_text", "exists"):
        monkeypatch.setattr(Path, method, _refuse)

    assert read_contexts() == Contexts()


def test_a_file_that_was_named_and_may_not_be_read_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SKYROCKET_CONTEXTS", str(tmp_path / "contexts.yml"))
    monkeypatch.setattr(Path, "read_text", _refuse)

    with pytest.raises(ConfigError, match=r"contexts.yml cannot be read: Permission denied"):
        read_contexts()
