"""Apache's mqadmin, every version, finds and changes what it expects on our server."""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.admin_verbs import FAILURES, VERBS, Verb
from tests.interop.apache import VERSIONS, Apache
from tests.interop.apache_admin import admin_outputs
from tests.interop.client_program import message, running_client
from tests.interop.matrix import FAIL, PASS, Cell, record
from tests.interop.observer import Observer, observing
from tests.interop.standalone import Standalone, running_standalone
from tests.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(500)]

RUN_TIMEOUT_S = 400
QUEUES = 4

CASES = [
    (version, number) for version in VERSIONS for number, verb in enumerate(VERBS) if version.startswith(verb.only)
]


class Session:
    """All commands of a version, run once, in order."""

    def __init__(self, outputs: dict[int, str], places: dict[str, str]) -> None:
        self.outputs = outputs
        self.places = places


@pytest.fixture(scope="module")
def session_of(
    apache_of_version: Callable[[str], Apache], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Session]:
    @functools.cache
    def outcome_of(version: str) -> Session | Exception:
        apache = apache_of_version(version)
        try:
            return _run(apache, tmp_path_factory.mktemp(f"mqadmin-{version}"))
        except Exception as failure:  # noqa: BLE001 - raised below, for every verb, without another run
            return failure

    def session(version: str) -> Session:
        outcome = outcome_of(version)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return session


@pytest.mark.parametrize(("version", "number"), CASES, ids=[f"{v}-{n}-{VERBS[n].name}" for v, n in CASES])
def test_mqadmin_prints_what_it_prints_of_rocketmq(
    session_of: Callable[[str], Session], version: str, number: int
) -> None:
    session, verb = session_of(version), VERBS[number]
    cell = Cell(FAIL)
    try:
        _check(verb, session.outputs[number], session.places)
        cell = Cell(PASS)
    finally:
        record(f"mqadmin-{version}", f"{verb.name} {number}", cell)


def _check(verb: Verb, printed: str, places: dict[str, str]) -> None:
    failed = [phrase for phrase in FAILURES if phrase in printed]
    assert bool(failed) == verb.refusal, printed
    for pattern in verb.patterns:
        wanted = pattern.format(**{name: re.escape(value) for name, value in places.items()})
        assert re.search(wanted, printed), f"no {wanted} in\n{printed}"


def _run(apache: Apache, home: Path) -> Session:
    out = home / "out"
    out.mkdir()
    listed = {"topicName": "ListedTopic", "readQueueNums": 3, "writeQueueNums": 3, "perm": 6}
    (out / "topics.json").write_text(json.dumps([listed]))
    (out / "groups.json").write_text(json.dumps([{"groupName": "ListedGroup", "retryMaxTimes": 7}]))
    numbers = [number for version, number in CASES if version == apache.version]
    with running_standalone(home) as server, observing(server) as observer:
        command = apache.command("ScenarioClient", server.name_server, home=home)
        with running_client(command, {}, home) as client:
            observer.create_topic("Orders", QUEUES)
            client.consume("reader", "Readers", "Orders")
            messages = [message("Orders", f"body-{i}".encode(), keys=f"key-{i}", tags="t") for i in range(2 * QUEUES)]
            sent = [client.send("sync", one)[0] for one in messages]
            _await_consumed(observer)
            places = _places(server, observer, out) | {
                "id": sent[3].offset_message_id,
                "unique": sent[3].message_id or "",
            }
            commands = [VERBS[number].command.format(**places) for number in numbers]
            outputs = admin_outputs(apache, commands, RUN_TIMEOUT_S)
    return Session(dict(zip(numbers, outputs, strict=True)), places)


def _await_consumed(observer: Observer) -> None:
    wait_until(lambda: observer.max_offsets("Orders", QUEUES) == [2] * QUEUES, "two messages in each queue")
    wait_until(lambda: observer.committed("Readers", "Orders", QUEUES) == [2] * QUEUES, "Readers commit them")


def _places(server: Standalone, observer: Observer, out: Path) -> dict[str, str]:
    (client,) = observer.members("Readers")
    return {"n": server.name_server, "b": server.broker, "client": client, "out": str(out)}
