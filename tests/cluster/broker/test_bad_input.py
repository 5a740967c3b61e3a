"""Bad input that was captured has the effect that it has on the real broker."""

import asyncio
import base64
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.frames import FrameReader
from tests.cluster.broker.broker_fixture import (
    RunningBroker,
    running_broker,
)
from tests.golden_wire import capture_lines

DELIBERATE = {
    # what was sent, and why we answer otherwise than 5.4.0
    (33, "17"): "reading in the middle of a record finds nothing; 5.4.0 answers with an empty body",
    (36, "999999999"): "the real server was busy at this moment: TIMEOUT_CLEAN_QUEUE",
    (17, ""): "which of two missing fields is named",
    (60, ""): "not served",
}
SQL = ("FOO", "SQL92")  # the real server had enablePropertyFilter on, which is off by default


class Case(NamedTuple):
    """One connection of a capture."""

    number: int
    sent: bytes
    answer: RemotingCommand | None
    closed_by_server: bool

    @property
    def request(self) -> RemotingCommand | None:
        with contextlib.suppress(ProtocolError):
            found = FrameReader().receive(self.sent)
            return found[0] if found else None
        return None


def cases(name: str) -> Iterator[Case]:
    connections: dict[int, list[dict[str, Any]]] = {}
    for _, event in capture_lines(name):
        connections.setdefault(event["conn"], []).append(event)
    for number, events in connections.items():
        if any(event["peer"].startswith("broker->namesrv") for event in events):
            continue  # the broker's own connection
        sent = b"".join(_raw(event) for event in events if event["peer"].startswith("client->"))
        received = b"".join(_raw(event) for event in events if event["peer"].endswith("->client"))
        answers = [frame for frame in FrameReader().receive(received) if frame.flag & 1]
        closed = any(event.get("event") and event["peer"].endswith("->client") for event in events)
        yield Case(number, sent, answers[0] if answers else None, closed)


def _raw(event: dict[str, Any]) -> bytes:
    return base64.b64decode(event["raw"]) if "raw" in event else b""


class Seen(NamedTuple):
    answer: RemotingCommand | None
    closed: bool


async def play(case: Case, port: int) -> Seen:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    frames = FrameReader()
    found: list[RemotingCommand] = []
    try:
        writer.write(case.sent)
        while not found:
            patience = 3.0 if case.answer is not None or case.closed_by_server else 0.03
            data = await asyncio.wait_for(reader.read(1 << 20), patience)
            if not data:
                return Seen(None, True)
            found += [frame for frame in frames.receive(data) if frame.flag & 1]
        return Seen(found[0], False)
    except TimeoutError:
        return Seen(None, False)
    except ConnectionError:
        return Seen(None, True)
    finally:
        writer.transport.abort()


def is_deliberate(request: RemotingCommand) -> bool:
    fields = request.ext_fields or {}
    place = (request.code, fields.get("offset", ""))
    return (
        place in DELIBERATE
        or fields.get("expressionType") in SQL
        or any(f'"{kind}"'.encode() in bytes(request.body) for kind in SQL)
    )


def is_left_out(case: Case, request: RemotingCommand, served: set[int | None]) -> bool:
    """What is not built yet, and what is otherwise by intent."""
    is_answered = case.answer is not None and case.answer.code != 3
    return is_answered and (request.code not in served or is_deliberate(request))


def difference(case: Case, seen: Seen) -> str:
    """In what our answer differs from the real one; texts of Java exceptions are Java's."""
    want, got = case.answer, seen.answer
    if want is None or got is None:
        return "" if (want is None) is (got is None) and case.closed_by_server is seen.closed else f"{want} ≠ {seen}"
    of_java = want.code == 1 and "Exception" in (want.remark or "")
    if got.code != want.code or (not of_java and got.remark != want.remark):
        return f"{want.code} {want.remark!r} ≠ {got.code} {got.remark!r}"
    return ""


async def with_messages(given: RunningBroker) -> None:
    for _ in range(13):
        await given.send(bytes(60), topic="TopicTest")


@pytest.mark.parametrize("name", ["badinput54-bk.jsonl", "badinput54-bkreq.jsonl.gz"])
async def test_captured_bad_input_has_the_effect_it_has_on_the_real_broker(tmp_path: Path, name: str) -> None:
    compared, different = 0, []
    async with running_broker(tmp_path) as given:
        await with_messages(given)
        served = {route.code for route in given.broker.parts.server.router.routes()}
        for case in cases(name):
            request = case.request
            if case.sent.startswith(b"\x16"):  # OpenSSL sees at once what Java's TLS waits for
                continue
            if request is not None and is_left_out(case, request, served):
                continue
            compared += 1
            if text := difference(case, await play(case, given.port)):
                different.append(f"connection {case.number}: {text}")
    assert different == []
    assert compared >= (15 if name == "badinput54-bk.jsonl" else 55)


async def test_captured_bad_input_of_4_9_gets_the_same_codes_where_5_4_did_not_change_them(tmp_path: Path) -> None:
    newer = {case.sent: case for case in cases("badinput54-bkreq.jsonl.gz")}
    compared, different = 0, []
    async with running_broker(tmp_path) as given:
        await with_messages(given)
        for case in cases("badinput49-bkreq.jsonl.gz"):
            same = newer.get(case.sent)
            request = case.request
            if same is None or request is None or case.answer is None or same.answer is None:
                continue
            if same.answer.code != case.answer.code or is_deliberate(request):
                continue
            compared += 1
            seen = await play(case, given.port)
            if seen.answer is None or seen.answer.code not in (case.answer.code, 3):
                different.append(f"connection {case.number}: {case.answer.code} ≠ {seen}")
    assert different == []
    assert compared >= 40


PER_CONNECTION, SOUND = 40, 30
# What an open broker does when it is told to is no harm done by bad input: those are sent with nonsense alone.
