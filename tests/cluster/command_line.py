"""`skyrocket …` in the test's own process, against a cluster there."""

import json
from typing import Any, NamedTuple

from typer.testing import CliRunner

from skyrocket.cli import app
from skyrocket.testing import LocalCluster


class Done(NamedTuple):
    """What a run came to."""

    code: int
    output: str
    errors: str


def skyrocket(rocketmq: LocalCluster, *arguments: str, answer: str = "") -> Done:
    return at(rocketmq.name_server_address, *arguments, answer=answer)


def at(names: str, *arguments: str, answer: str = "", **environment: str) -> Done:
    """Against any name server."""
    result = CliRunner().invoke(app, arguments, env={"NAMESRV_ADDR": names, **environment}, input=answer)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def well(rocketmq: LocalCluster, *arguments: str) -> str:
    done = skyrocket(rocketmq, *arguments)
    assert done.code == 0, done.errors
    return done.output


def rows(rocketmq: LocalCluster, *arguments: str) -> Any:
    """What a command says in JSON."""
    return json.loads(well(rocketmq, *arguments, "--output", "json"))
