"""Whatever headers come in whatever order: a reader that knows shapes reads the same as one that parses everything.

A header is written piece by piece, so that names may stand twice, in other spellings and places, with any blanks,
escapes, quotes and kinds of values. Each is sent a few times with other values at the places that vary: as an example
it may teach a shape, and as a follower it may be read by it.
"""

import random
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.pull_shapes import ShapedPull
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.protocol.send_shapes import SendShapes, ShapedSend

SEND = ("b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "m", "n")
PULL = ("consumerGroup", "topic", "queueId", "commitOffset", "maxMsgNums", "sysFlag", "queueOffset", "subVersion")
HARMLESS = {name: "0" for name in (*PULL, "suspendTimeoutMillis") if not name.endswith("Offset")}
OUTER = {"flag": "0", "language": '"JAVA"', "opaque": "4", "serializeTypeCurrentRPC": '"JSON"', "version": "493"}
NAMES = [*"abgi", "opaque", "extFields", "code", "flag", "remark", "queueOffset", "commitOffset", "Signature"]

# What varies from header to header: most of it as clients write it, so that shapes are learned and met again.
USUAL = {
    "g": ["1794793999060", "1794793999061", "0000000000000"],
    "i": ["", "A\\u0001b\\u0002", "KEYS\\u0001k\\u0002UNIQ_KEY\\u00010A00\\u0002", "UNIQ_KEY\\u00010B99\\u0002"],
    "opaque": ["4", "5", "0", "2147483647"],
    "queueOffset": ["0", "64", "123456789012345678"],
    "commitOffset": ["0", "65", "999999999999999999"],
}
ODD = {
    "g": [
        "1",
        "17947939990600",
        "x794793999060",
        "-179479399906",
        "\u0661794793999060",
        '1","g":"2',
        "\\u00317947939990",
    ],
    "i": [
        "A\1b\2",
        "\\\\u0001",
        "\\u0041",
        '\\"',
        "\u5317",
        "\\ud83d",
        "\0",
        "'",
        '","i":"X',
        '","g":"1',
        "\\",
        "\\x41",
    ],
    "opaque": ["-1", "04", "2147483648", '"4"', "4.0", "4e0", "null", "", "4 ", " 4", "true", '4,"opaque":5', "\u0664"],
    "queueOffset": ["-1", "", "00", "+5", "9" * 19, "\u0663", "1.0", " 1", "\\u0031", '1","queueOffset":"2'],
    "commitOffset": ["-1", "", "00", "+5", "9" * 19, "\u0663", "1.0", "1 ", "\\u0031", '1","commitOffset":"2'],
}
SPELLINGS = ['"{}"', '"{}"', '"{}" ', '"{}"\t', ' "{}"', "'{}'", "{}", '"{}\\u0020"', '"{}', '/**/"{}"']
VALUES = [
    '"X"',
    "'X'",
    "null",
    "true",
    "7",
    "-1",
    "1e3",
    "{}",
    "[1]",
    "",
    '"\\""',
    '"g":"1"',
    '"\\\\"',
    '"i"',
    '"\U0001f680"',
]
VALUES += [
    '"1794793999060"',
    '{"i":"A","g":"1794793999060"}',
    '"\\",\\"i\\":\\"A"',
    '"\ud83d"',
    '{"a":{"b":[{"g":"1"}]}}',
]
ENDS = [
    "",
    "}}",
    "} ",
    ',"opaque":9}',
    ',"opaque" :9}',
    ",'opaque':9}",
    ',"extFields":{"i":"X"}}',
    ",}",
    "\n}",
    "\x00}",
]


def test_a_reader_that_knows_shapes_reads_what_one_without_them_reads() -> None:
    ways: Counter[str] = Counter()

    @given(seed=st.integers(0, 2**64))
    @example(seed=1_088_728_886_596)  # the time twice, once with a blank behind its name
    @example(seed=5062)  # ext fields, and behind them null in their place
    @settings(max_examples=1500, deadline=None)
    def compare(seed: int) -> None:
        dice = random.Random(seed)
        shapes = SendShapes()
        reader = FrameReader(shapes=shapes)
        for header in connection_of(dice):
            frame, cut = framed(header), dice.choice([0, 0, 6, 50])
            expected = read(FrameReader(), frame, 0)
            shaped = read(reader, frame, cut)
            assert_alike(shaped, expected)
            know_its_text(shaped)
            ways[shaped.__class__.__name__ if shaped is not None else "refused"] += 1
            if expected is None:  # such a connection is closed
                reader = FrameReader(shapes=shapes)

    compare()
    for way in ("ShapedSend", "ShapedPull", "RemotingCommand", "refused"):
        assert ways[way] > 300, ways  # none of them is passed by because all headers are too odd, or none is


def connection_of(dice: random.Random) -> list[bytes]:
    """Headers of one connection: a template a few times, and the same with one more oddity in it."""
    code = dice.choice([310, 320, 11, 361])
    template = template_of(dice, code)
    headers = [filled(dice, template) for _ in range(6)]
    headers += [filled(dice, with_oddity(dice, template)) for _ in range(3)]
    headers += [filled(dice, template) for _ in range(3)]
    return [header.encode("utf-8", "surrogatepass") for header in headers]


def template_of(dice: random.Random, code: int) -> list[str]:
    """A header in pieces; what varies stands as {name} in them."""
    names = list(SEND if code in (310, 320) else PULL)
    if code in (11, 361):
        dice.shuffle(names)
    fields = [
        f'"{name}":"{f"{{{name}}}" if name in USUAL else dice.choice(["0", "4", "Orders", "g", "i"])}",'
        for name in names
    ]
    fields[-1] = fields[-1].rstrip(",")
    outer = [f'"{name}":{"{opaque}" if name == "opaque" else value},' for name, value in OUTER.items()]
    outer[-1] = outer[-1].rstrip(",")
    first = ['"a":"PG",'] if code in (310, 320) else []
    pieces = [f'{{"code":{code},"extFields":{{', *first, *fields, "},", *outer, "}"]
    for _ in range(dice.choice([0, 0, 1, 1, 2])):
        pieces = with_oddity(dice, pieces)
    return pieces


def with_oddity(dice: random.Random, pieces: list[str]) -> list[str]:
    changed, at = list(pieces), dice.randrange(1, len(pieces))
    odd = f"{dice.choice(SPELLINGS).replace('{}', dice.choice(NAMES))}:{dice.choice(VALUES)}"
    match dice.randrange(7):
        case 0 | 1 | 2:
            changed.insert(at, f"{odd}," if changed[at] != "}" else f",{odd}")
        case 3:
            changed.insert(at, changed[dice.randrange(1, len(pieces) - 1)])  # twice, or where it does not belong
        case 4:
            del changed[at]
        case 5:
            place = dice.randrange(len(changed[at]) + 1)
            sign = dice.choice([" ", "\t", "\n", "\\", '"', "'", ",", "\1", "/**/", "}", "{", "\u00a0"])
            changed[at] = f"{changed[at][:place]}{sign}{changed[at][place:]}"
        case _:
            changed[-1] = dice.choice(ENDS)
    return changed


def filled(dice: random.Random, pieces: list[str]) -> str:
    header = "".join(pieces)
    odd = dice.choice([*ODD, *[None] * 15])
    for name, usual in USUAL.items():
        header = header.replace(f"{{{name}}}", dice.choice(ODD[name] if name == odd else usual))
    return header


def framed(header: bytes) -> bytes:
    return (len(header) + 8).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header + b"body"


def read(reader: FrameReader, frame: bytes, cut: int) -> RemotingCommand | None:
    """The command of a frame; None where the connection is closed."""
    try:
        (command,) = [*reader.receive(frame[:cut]), *reader.receive(frame[cut:])]
    except ProtocolError:
        return None
    return command


def seen(command: RemotingCommand | None) -> dict[str, object] | None:
    """All that anybody can see of it."""
    if command is None:
        return None
    names = ("code", "opaque", "flag", "ext_fields", "body", "remark", "language", "version", "serialize_type")
    return {name: getattr(command, name) for name in names}


def assert_alike(shaped: RemotingCommand | None, plain: RemotingCommand | None) -> None:
    assert seen(shaped) == seen(plain)
    if isinstance(shaped, ShapedSend):
        fields = shaped.ext_fields or {}
        assert (shaped.properties.decode(), shaped.born.decode()) == (fields["i"], fields["g"])
    elif isinstance(shaped, ShapedPull):
        asked = PullMessage.from_fields({**(shaped.ext_fields or {}), **HARMLESS})
        assert (shaped.queue_offset, shaped.commit_offset) == (asked.queue_offset, asked.commit_offset)


def know_its_text(command: RemotingCommand | None) -> None:
    """What the handler of sends does: the next one of this shape may be read by its text."""
    if isinstance(command, ShapedSend):
        before, found, after = command.properties.partition(b"UNIQ_KEY\1")
        value, end, _ = after.partition(b"\2")
        if found and end:
            at = len(before) + len(found)
            command.shape.know_text(command.properties, at, at + len(value))
