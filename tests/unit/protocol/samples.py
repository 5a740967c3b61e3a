"""Commands and frames that the tests of this folder share."""

from struct import Struct

from skyrocket.protocol import frames
from skyrocket.protocol.command import ONEWAY_FLAG, RESPONSE_FLAG, RemotingCommand

PREFIX = Struct(">iI")

SEND_FIELDS = {
    "a": "PG",
    "b": "TopicA",
    "c": "TBW102",
    "d": "4",
    "e": "1",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "TAGS\x01TagA\x02",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "broker-a",
}

COMMANDS = [
    RemotingCommand(310, 5, 0, SEND_FIELDS, b"hi", version=479),
    RemotingCommand(34, 6, ONEWAY_FLAG, {}, b"", remark="", version=479),
    RemotingCommand(17, 7, RESPONSE_FLAG, None, b"x" * 300, remark="topic[中] not exist", version=479),
    RemotingCommand(38, 8, 0, {"consumerGroup": "CG"}, remark="r").as_binary(),
    RemotingCommand(0, -9, RESPONSE_FLAG, None, b"body").as_binary(),
]

STREAM = b"".join(frames.encode(command) for command in COMMANDS)


def raw_frame(header: bytes, body: bytes = b"", form: int = 0) -> bytes:
    """A frame with any bytes for a header."""
    return PREFIX.pack(4 + len(header) + len(body), form << 24 | len(header)) + header + body
