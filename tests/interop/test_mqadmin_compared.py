"""`skyrocket mqadmin` beside RocketMQ's mqadmin, against Skyrocket, RocketMQ 5.4.0 and 4.9.7: the same rows.

Each scene of a server is started once, and all commands run there before the first of them is judged.
"""

import contextlib
import functools
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from skyrocket.cli.mqadmin.commands import COMMANDS
from tests import ROOT
from tests.cluster.command_line import at
from tests.interop.apache import Apache
from tests.interop.apache_admin import admin_outputs
from tests.interop.compared.equal import rows
from tests.interop.compared.names import COMPARED, ELSEWHERE
from tests.interop.compared.scenes import SCENES, Scene
from tests.interop.compared.table import compared_table
from tests.interop.compared.verb import V4, V5, Compared
from tests.interop.matrix import FAIL, PASS, Cell, record

RUN_TIMEOUT_S = 500
TOOL = V5
_TOO_LATE = "RemotingTimeoutException"
CASES = [
    (server, scene, number)
    for scene, verbs in COMPARED.items()
    for number, verb in enumerate(verbs)
    for server in verb.servers
]
IDS = [f"{server}-{scene}-{number}-{COMPARED[scene][number].name}" for server, scene, number in CASES]


def test_every_name_is_compared_or_has_its_reason() -> None:
    compared = {verb.name for verbs in COMPARED.values() for verb in verbs}
    assert compared | ELSEWHERE.keys() == COMMANDS.keys()
    assert compared & ELSEWHERE.keys() == set()
    assert all("\n" not in reason for reason in ELSEWHERE.values())
    page = (ROOT / "docs" / "internals" / "interop.md").read_text()
    hint = "run: python -m tests.interop.matrix --write docs/internals/interop.md"
    assert compared_table() in page, hint


@dataclass
class Session:
    """What both tools printed, by the number of the command."""

    java: dict[int, str]
    ours: dict[int, str]


SessionOf = Callable[[str, str], Session]


@pytest.fixture(scope="module")
def session_of(apache_of_version: Callable[[str], Apache], tmp_path_factory: pytest.TempPathFactory) -> SessionOf:
    @functools.cache
    def outcome(server: str, name: str) -> Session | Exception:
        home = tmp_path_factory.mktemp(f"compared-{server}-{name}")
        out = home / "out"
        out.mkdir()
        try:
            with contextlib.chdir(out), SCENES[name](server, apache_of_version, home) as scene:  # some verbs write here
                _place_lists(out)
                return _run(apache_of_version, server, name, scene, out)
        except Exception as failure:  # noqa: BLE001 - raised below, for every verb, without another run
            return failure

    def session(server: str, name: str) -> Session:
        found = outcome(server, name)
        if isinstance(found, Exception):
            raise found
        return found

    return session


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("server", "scene", "number"), CASES, ids=IDS)
def test_our_tool_prints_the_rows_of_rocketmqs(session_of: SessionOf, server: str, scene: str, number: int) -> None:
    session, verb = session_of(server, scene), COMPARED[scene][number]
    cell = Cell(FAIL)
    try:
        theirs, ours = (
            rows(verb, printed[number], beside_tool_4=_takes_tool_4(server, verb))
            for printed in (session.java, session.ours)
        )
        if verb.reason:
            assert session.ours[number].strip()
            assert "CODE: " not in session.ours[number]
            cell = Cell(PASS, verb.reason)
        else:
            missing, added = theirs - ours, ours - theirs
            assert (sorted(missing), sorted(added)) == ([], [])
            cell = Cell(PASS)
    finally:
        record(f"skyrocket-mqadmin-{server}", f"{verb.name} {scene} {number}", cell)


def _place_lists(out: Path) -> None:
    for tool in "JS":
        listed = {"topicName": f"Listed{tool}", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}
        (out / f"topics{tool}.json").write_text(json.dumps([listed]))
        (out / f"groups{tool}.json").write_text(json.dumps([{"groupName": f"Listed{tool}", "retryMaxTimes": 7}]))


def _run(apache_of: Callable[[str], Apache], server: str, name: str, scene: Scene, out: Path) -> Session:
    shared = {**scene.places, "n": scene.names, "out": str(out)}
    java = {**shared, "x": "J", "dry": "false", "next": "2", "ghost": "ghostJ"}  # RocketMQ's -d false is a dry run
    ours = {**shared, "x": "S", "dry": "true", "next": "1", "ghost": "ghostS"}
    verbs = COMPARED[name]
    session = Session({}, {})
    for phase in range(3):
        chosen = [number for number, verb in enumerate(verbs) if server in verb.servers and verb.phase == phase]
        scene.settle()
        for is_old, numbers in itertools.groupby(chosen, lambda n: _takes_tool_4(server, verbs[n])):
            tool = apache_of(V4 if is_old else TOOL)
            commands = {n: _java_command(verbs[n], is_old).format(**java) for n in numbers}
            session.java.update(_java(tool, commands, scene))
            late = {n: commands[n] for n in commands if phase == 0 and _TOO_LATE in session.java[n]}
            session.java.update(_java(tool, late, scene))  # the machine was busy, and looking changes nothing
        scene.settle()
        for number in chosen:
            words = verbs[number].command.format(**ours).split()
            session.ours[number] = _ours(scene, words, verbs[number].endless_s)
    return session


def _takes_tool_4(server: str, verb: Compared) -> bool:
    return server == V4 and bool(verb.of_tool_4)


def _java(tool: Apache, commands: Mapping[int, str], scene: Scene) -> dict[int, str]:
    if not commands:
        return {}
    printed = admin_outputs(tool, list(commands.values()), RUN_TIMEOUT_S, scene.account)
    return dict(zip(commands, printed, strict=True))


def _java_command(verb: Compared, is_old: bool) -> str:
    command = verb.of_tool_4 if is_old else verb.command
    return f"for {verb.endless_s} {command}" if verb.endless_s else command


def _ours(scene: Scene, words: Sequence[str], endless_s: int) -> str:
    if endless_s:
        return _first_lines([sys.executable, "-m", "skyrocket", "mqadmin", *words])
    key, secret = scene.account or ("", "")
    account = {"ROCKETMQ_ACCESS_KEY": key, "ROCKETMQ_SECRET_KEY": secret} if scene.account else {}
    done = at(scene.names, "mqadmin", *words, **account)
    return done.output + done.errors


def _first_lines(command: Sequence[str]) -> str:
    """A heading and a row of a command that never ends."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            return "".join(itertools.islice(process.stdout, 2))
        finally:
            process.kill()
