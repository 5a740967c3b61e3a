"""Random commands survive, random bytes do no harm."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.protocol import frames
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError, RequestError
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.requests.catalogue import REQUESTS
from tests.unit.protocol.samples import PREFIX, STREAM

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
FULL_TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)

JSON_COMMANDS = st.builds(
    RemotingCommand,
    INT32,
    INT32,
    INT32,
    st.none() | st.dictionaries(TEXT, TEXT, max_size=20),
    st.binary(max_size=100),
    st.none() | TEXT,
    st.none() | st.sampled_from(LanguageCode),
    INT32,
)
BINARY_COMMANDS = st.builds(
    RemotingCommand,
    INT16,
    INT32,
    INT32,
    st.none() | st.dictionaries(FULL_TEXT, FULL_TEXT, min_size=1, max_size=20),
    st.binary(max_size=100),
    st.none() | FULL_TEXT,
    st.sampled_from(LanguageCode),
    INT16,
).map(RemotingCommand.as_binary)


def with_language(command: RemotingCommand) -> RemotingCommand:
    """As it is read: a language that is not told is Java."""
    command.language = command.language if command.language is not None else LanguageCode.JAVA
    return command


@settings(max_examples=150)
@given(st.lists(JSON_COMMANDS | BINARY_COMMANDS, max_size=4), st.randoms(use_true_random=False))
def test_random_commands_come_out_of_any_slicing(commands: list[RemotingCommand], chance: random.Random) -> None:
    stream = b"".join(map(frames.encode, commands))
    reader = FrameReader()
    received: list[RemotingCommand] = []
    at = 0
    while at < len(stream):
        size = chance.choice((1, 3, 8, 50, 1000))
        received += reader.receive(stream[at : at + size])
        at += size
    assert received == [with_language(command) for command in commands]


def test_random_bytes_do_no_harm() -> None:
    chance = random.Random(4)
    for _ in range(20_000):
        reader = FrameReader(max_frame_size=4096)
        data = chance.randbytes(chance.randrange(64))
        if chance.random() < 0.7:  # a header word that lets the header be looked at
            header = data
            data = PREFIX.pack(4 + len(header), chance.choice((0, 1 << 24)) | len(header)) + header
        try:
            reader.receive(data)
        except ProtocolError:
            assert not reader.pending
        assert len(reader.pending) <= 4096


def test_damaged_frames_give_commands_or_a_protocol_error() -> None:
    chance = random.Random(5)
    for _ in range(10_000):
        damaged = bytearray(STREAM)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            commands = FrameReader().receive(damaged)
        except ProtocolError as error:
            commands = error.commands
        for command in commands:
            if command.code in REQUESTS:
                taken_or_refused(command.code, command.ext_fields)


def taken_or_refused(code: int, fields: dict[str, str] | None) -> None:
    try:
        header = REQUESTS[code].from_fields(fields)
    except RequestError:
        return
    assert REQUESTS[code].from_fields(header.to_fields()) == header


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(["topic", "queueId", "timestamp", "isForce", "group", "offset"]), TEXT))
@pytest.mark.parametrize("code", [222, 29, 33, 15, 36, 12])
def test_any_text_in_a_field_is_taken_or_refused(code: int, fields: dict[str, str]) -> None:
    taken_or_refused(code, fields)
