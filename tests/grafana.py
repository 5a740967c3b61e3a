"""Grafana's server, built by Go from its module and kept: its pages are not built, nobody looks at them here.

Go's proxy has few of its commits; this one is the newest of those, of June 2023 (10.0, between 9 and 11). It needs a Go
of its time, which Go fetches by itself, and code that `wire` writes.
"""

import json
import os
import shutil
from pathlib import Path

from tests.interop.apache import Finished, Unavailable, cache_directory, locked, run_bounded

VERSION = "v1.9.2-0.20230609164553-81d85ce8028d"
_MODULE = f"github.com/grafana/grafana@{VERSION}"
_WIRE = "github.com/google/wire/cmd/wire@v0.5.0"
_GO = "go1.21.13"
_STEP_TIMEOUT_S = 1500.0  # seven minutes of CPU in all, and two thousand downloads
_HOME = cache_directory() / f"grafana-{VERSION}"


def built_grafana() -> Path:
    """The directory with the program `grafana` and what it reads; built if need be, raises Unavailable."""
    if (_HOME / "grafana").exists():
        return _HOME
    if shutil.which("go") is None:
        raise Unavailable("go, which would build Grafana, is not on the PATH")
    _HOME.parent.mkdir(parents=True, exist_ok=True)
    with locked(_HOME.with_name("grafana.lock")):
        if not (_HOME / "grafana").exists():
            _build()
    return _HOME


def _build() -> None:
    fetched = json.loads(_go(_HOME.parent, "mod", "download", "-json", _MODULE).stdout)
    shutil.rmtree(_HOME, ignore_errors=True)
    shutil.copytree(fetched["Dir"], _HOME, copy_function=shutil.copyfile)  # those of the module cannot be written
    for directory in (_HOME, *(path for path in _HOME.rglob("*") if path.is_dir())):
        directory.chmod(0o755)
    _go(_HOME, "run", _WIRE, "gen", "-tags", "oss", "./pkg/server")
    _go(_HOME, "build", "-tags", "oss", "-ldflags", "-s -w", "-o", "grafana.new", "./pkg/cmd/grafana")
    (_HOME / "grafana.new").rename(_HOME / "grafana")


def _go(directory: Path, *arguments: str) -> Finished:
    environment = {**os.environ, "GOTOOLCHAIN": _GO, "GOFLAGS": "-buildvcs=false -mod=mod"}
    done = run_bounded(["go", *arguments], _STEP_TIMEOUT_S, cwd=directory, environment=environment)
    if done.exit_code != 0:
        raise Unavailable(f"go {arguments[0]} for Grafana {VERSION}: {(done.stderr or done.stdout)[-300:]}")
    return done
