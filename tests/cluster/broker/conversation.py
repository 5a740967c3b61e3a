"""A captured conversation with a broker as steps in time order: who said what on which connection, who hung up."""

import base64
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any

from skyrocket.protocol.command import ONEWAY_FLAG
from tests.golden_wire import CapturedFrame, capture, capture_lines, capture_names

_SLAVE = "slave"
_LEFT_OVER = "left over"  # bytes whose capture line stands behind the end of the connection that ended them


class Deed(Enum):
    """What happens in one step."""

    ASKS_BROKER = "the client asks"
    ANSWERS_BROKER = "the client answers what the broker asked"
    SENDS_RUBBISH = "the client sends what is no frame"
    IS_ANSWERED = "the broker answers"
    IS_ASKED = "the broker asks the client"
    HANGS_UP = "the client closes"
    IS_CUT_OFF = "the broker closes"


@dataclass(frozen=True)
class Step:
    """One line of a capture."""

    file: str
    line: int
    seconds: float  # since the first frame
    connection: int
    is_vip: bool
    deed: Deed
    raw: bytes = b""
    frame: CapturedFrame | None = None
    request: CapturedFrame | None = None  # what an answer answers

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def header(self) -> dict[str, Any]:
        return self.frame.header if self.frame is not None else {}

    @property
    def code(self) -> int:
        """Of a request its own, of an answer that of its request."""
        return int((self.request.header if self.request is not None else self.header)["code"])

    @property
    def is_oneway(self) -> bool:
        return bool(self.header.get("flag", 0) & ONEWAY_FLAG)

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of a request; of an answer those of its request."""
        header = self.request.header if self.request is not None else self.header
        return header.get("extFields") or {}

    @property
    def answer_code(self) -> int:
        return int(self.header["code"])

    @property
    def request_line(self) -> int:
        """Where the request of an answer stands."""
        return self.request.line if self.request is not None else 0

    @property
    def answer_fields(self) -> dict[str, str]:
        return self.header.get("extFields") or {}

    @property
    def body(self) -> bytes:
        return self.frame.body if self.frame is not None else b""


def conversation(name: str) -> list[Step]:
    """The steps of one capture that concern its broker."""
    frames = {frame.line: frame for frame in capture(name)}
    asked: dict[tuple[int, str, int], CapturedFrame] = {}
    steps: list[Step] = []
    for number, line in capture_lines(name):
        peer = line.get("peer", "")
        is_to_broker = peer.endswith("->broker") and not peer.startswith("namesrv")
        is_by_broker = peer.startswith("broker->") and not peer.endswith("->namesrv")
        if not (is_to_broker or is_by_broker):
            continue
        frame = frames.get(number)
        deed, request = _deed(line, frame, is_to_broker, asked)
        raw = base64.b64decode(line["raw"]) if "raw" in line else b""
        is_vip = bool(line.get("vip"))
        step = Step(name, number, float(line["t"]), line["conn"], is_vip, deed, raw, frame, request)
        if _LEFT_OVER in line.get("note", ""):
            steps.insert(len(steps) - 1, step)
        else:
            steps.append(step)
    return steps


def _deed(
    line: dict[str, Any],
    frame: CapturedFrame | None,
    is_to_broker: bool,
    asked: dict[tuple[int, str, int], CapturedFrame],
) -> tuple[Deed, CapturedFrame | None]:
    if "event" in line:
        return (Deed.HANGS_UP if is_to_broker else Deed.IS_CUT_OFF), None
    if frame is None:
        return Deed.SENDS_RUBBISH, None
    asker, listener = frame.peer.split("->")
    opaque = int(frame.header.get("opaque", 0))
    if frame.is_response:
        request = asked.pop((frame.connection, listener, opaque), None)
        return (Deed.ANSWERS_BROKER if is_to_broker else Deed.IS_ANSWERED), request
    asked[frame.connection, asker, opaque] = frame
    return (Deed.ASKS_BROKER if is_to_broker else Deed.IS_ASKED), None


def conversations() -> list[str]:
    """Captures in which somebody talks to a broker."""
    return [name for name in capture_names() if conversation(name)]


def routes_shown(name: str) -> list[tuple[str, CapturedFrame]]:
    """What the name server of the same capture said of topics, in order: they tell which topics the broker had."""
    asked: dict[tuple[int, int], str] = {}
    shown = []
    for frame in capture(name):
        place = (frame.connection, int(frame.header.get("opaque", 0)))
        if frame.peer.endswith("->namesrv") and frame.header["code"] == 105 and not frame.is_response:
            asked[place] = frame.header["extFields"].get("topic", "")
        elif frame.peer.startswith("namesrv->") and place in asked:
            shown.append((asked.pop(place), frame))
    return shown
