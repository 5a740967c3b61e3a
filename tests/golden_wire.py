"""Frames that real RocketMQ peers exchanged (tests/golden_wire; its README says how they were taken)."""

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

GOLDEN_WIRE = Path(__file__).parent / "golden_wire"

_OTHER_CLIENTS = ("go-", "node-")
_BY_HAND = "badinput"


@dataclass(frozen=True)
class CapturedFrame:
    """One frame, and what the recorder read from it."""

    file: str
    line: int
    connection: int
    peer: str  # direction, such as client->broker
    raw: bytes
    header: dict[str, Any]
    body_size: int
    body_json: Any  # None when the body is not JSON
    code_name: str
    in_reply_to: str | None  # of an answer: the name of the request
    duplicates: bool  # a binary header with a field twice

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def is_response(self) -> bool:
        return bool(self.header.get("flag", 0) & 1)

    @property
    def body(self) -> bytes:
        return self.raw[len(self.raw) - self.body_size :] if self.body_size else b""

    @property
    def is_by_java(self) -> bool:
        """Written by a Java peer, so that its header is byte for byte what we would write."""
        if self.file.startswith(_BY_HAND):
            return self.peer.endswith("->client") or self.peer.startswith("namesrv")
        return not self.file.startswith(_OTHER_CLIENTS) or self.peer.startswith(("broker", "namesrv"))


def capture_names() -> list[str]:
    """The names of all captures with remoting frames."""
    return sorted(path.name for path in GOLDEN_WIRE.glob("*.jsonl*"))


@cache
def capture(name: str) -> list[CapturedFrame]:
    """The frames of one capture in time order; events, notes and gRPC lines are left out."""
    return [_frame(name, number, line) for number, line in capture_lines(name) if "header" in line]


def capture_lines(name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every line of one capture with its number."""
    path = GOLDEN_WIRE / name
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    for number, line in enumerate(text.splitlines(), 1):
        yield number, json.loads(line)


def all_frames() -> Iterator[CapturedFrame]:
    """The frames of all captures."""
    for name in capture_names():
        yield from capture(name)


def _frame(name: str, number: int, line: dict[str, Any]) -> CapturedFrame:
    header = line["header"]
    return CapturedFrame(
        file=name,
        line=number,
        connection=line["conn"],
        peer=line["peer"],
        raw=base64.b64decode(line["raw"]),
        header=header,
        body_size=line.get("body_len", 0),
        body_json=line.get("body_json"),
        code_name=line.get("code_name", ""),
        in_reply_to=line.get("in_reply_to"),
        duplicates="_extFieldsWithDuplicates" in header,
    )
