"""Headers that nobody sends twice: what a server remembers of them is bounded, whoever sends them."""

from collections.abc import Iterator
from pathlib import Path

import orjson

from tests.attack.attackers import Flood, connections
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.waiting import wait_until

HEADERS, SIZE = 400, 500_000
CONNECTIONS, PULLS = 60, 2000
ANSWER_SIZE = 120  # of a refusal, at least


def _frame(code: int, fields: dict[str, str]) -> bytes:
    rest = {"flag": 0, "language": "JAVA", "opaque": 4, "serializeTypeCurrentRPC": "JSON", "version": 493}
    header = orjson.dumps({"code": code, "extFields": fields, **rest})
    return (len(header) + 4).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header


def _sends() -> Iterator[bytes]:
    for number in range(HEADERS):
        given = {"a": f"PG{number}", "b": "Orders", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1794793999060"}
        yield _frame(310, {**given, "h": "0", "i": "", "j": "0", "n": "x" * SIZE})


def _pulls() -> bytes:
    fields = {"consumerGroup": "G", "topic": "Nobody", "maxMsgNums": "1", "sysFlag": "0", "x": "y" * 1700}
    offsets = {"commitOffset": "0", "queueOffset": "0"}
    return b"".join(_frame(11, {**fields, "queueId": str(number), **offsets}) for number in range(PULLS))


def test_large_headers_of_sends_are_forgotten_at_once(tmp_path: Path) -> None:
    sends = _sends()
    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet, before = honest.during(1.0), target.resident_mb
        with (
            connections(target.broker, 1) as sockets,
            Flood(sockets, lambda: next(sends, b"")) as flood,
        ):
            honest.figures()
            wait_until(lambda: flood.sent >= HEADERS * SIZE)
            honest.figures().must_be_served(quiet, f"{HEADERS} headers of {SIZE} bytes")
        assert target.resident_mb - before < 80  # of 200


def test_connections_share_the_room_for_pulls_that_look_alike(tmp_path: Path) -> None:
    pulls = _pulls()
    once = iter([pulls] * CONNECTIONS)
    with Target(tmp_path) as target:
        before = target.resident_mb
        with (
            connections(target.broker, CONNECTIONS) as sockets,
            Flood(sockets, lambda: next(once, b"")) as flood,
        ):
            wait_until(lambda: flood.received >= CONNECTIONS * PULLS * ANSWER_SIZE)
            assert target.resident_mb - before < 110  # of 170
