"""Bytes → commands, however they are cut; what is no frame ends the connection and nothing else."""

import tracemalloc

import pytest

from skyrocket.protocol import frames
from skyrocket.protocol.codes import SerializeType
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge, ProtocolError
from skyrocket.protocol.frames import MAX_FRAME_SIZE, FrameReader
from tests.unit.protocol.samples import COMMANDS, PREFIX, STREAM, raw_frame


def test_a_stream_gives_its_commands() -> None:
    assert FrameReader().receive(STREAM) == COMMANDS
    assert FrameReader().receive(bytearray(STREAM)) == COMMANDS
    assert FrameReader().receive(memoryview(STREAM)) == COMMANDS


def test_every_cut_in_two_gives_the_same_commands() -> None:
    for cut in range(len(STREAM) + 1):
        reader = FrameReader()
        assert reader.receive(STREAM[:cut]) + reader.receive(STREAM[cut:]) == COMMANDS
        assert not reader.pending


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 64])
def test_every_slicing_gives_the_same_commands(step: int) -> None:
    reader = FrameReader()
    commands = [c for at in range(0, len(STREAM), step) for c in reader.receive(STREAM[at : at + step])]
    assert commands == COMMANDS


def test_every_cut_in_three_of_a_short_stream_gives_the_same_commands() -> None:
    stream = raw_frame(b'{"code":1,"opaque":2}', b"b") + raw_frame(b'{"code":3,"opaque":4}')
    whole = FrameReader().receive(stream)
    for first in range(len(stream)):
        for second in range(first, len(stream)):
            reader = FrameReader()
            pieces = (stream[:first], stream[first:second], stream[second:])
            assert [command for piece in pieces for command in reader.receive(piece)] == whole


def test_a_large_body_is_not_copied_again() -> None:
    body = bytes(range(256)) * 40_000
    frame = frames.encode(RemotingCommand(310, body=body))
    (command,) = FrameReader().receive(frame)
    assert isinstance(command.body, memoryview)
    assert command.body == body
    reader = FrameReader()
    commands = [c for at in range(0, len(frame), 65_536) for c in reader.receive(frame[at : at + 65_536])]
    assert [c.body for c in commands] == [body]
    assert isinstance(commands[0].body, memoryview)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="another protocol"),
        pytest.param(PREFIX.pack(0, 0), id="length 0"),
        pytest.param(PREFIX.pack(3, 0), id="too short for its header word"),
        pytest.param(PREFIX.pack(-1, 0), id="negative length"),
        pytest.param(PREFIX.pack(100_000_000, 0), id="100 MB"),
        pytest.param(PREFIX.pack(MAX_FRAME_SIZE - 3, 0), id="one byte above the limit"),
        pytest.param(PREFIX.pack(20, 17), id="header longer than frame"),
        pytest.param(raw_frame(b"{}", form=2), id="unknown header form"),
        pytest.param(raw_frame(b"{}", form=255), id="unknown header form, all bits"),
        pytest.param(raw_frame(b"not JSON"), id="header not JSON"),
        pytest.param(raw_frame(b"[]"), id="header a list"),
        pytest.param(raw_frame(b"null"), id="header null"),
        pytest.param(raw_frame(b'{"code":"abc","opaque":1}'), id="code no number"),
        pytest.param(raw_frame(b'{"code":1,"opaque":4294967296}'), id="opaque too large"),
        pytest.param(raw_frame(b'{"code":1,"opaque":1,"extFields":[1]}'), id="ext fields a list"),
        pytest.param(raw_frame(b'{"code":1,"remark":"\xff"}'), id="not UTF-8"),
        pytest.param(raw_frame(b"[" * 100_000), id="nested without end"),
        pytest.param(raw_frame(b"\0" * 20, form=1), id="binary header cut off"),
        pytest.param(raw_frame(b"", form=1), id="binary header empty"),
    ],
)
def test_what_is_no_frame_is_refused_and_nothing_after_it_is_read(bad: bytes) -> None:
    for cut in range(min(len(bad), 12) + 1):
        reader = FrameReader()
        with pytest.raises(ProtocolError):  # noqa: PT012  one of the two calls raises
            reader.receive(bad[:cut])
            reader.receive(bad[cut:])
        assert not reader.pending
        with pytest.raises(ProtocolError):
            reader.receive(STREAM)


def test_commands_before_a_broken_frame_are_not_lost() -> None:
    with pytest.raises(ProtocolError) as caught:
        FrameReader().receive(STREAM + PREFIX.pack(-1, 0))
    assert caught.value.commands == COMMANDS


def test_the_largest_length_is_waited_for() -> None:
    reader = FrameReader()
    assert reader.receive(PREFIX.pack(MAX_FRAME_SIZE - 4, 10)) == []
    assert len(reader.pending) == 8


def test_a_frame_without_header_is_passed_over() -> None:
    assert FrameReader().receive(PREFIX.pack(4, 0) + STREAM) == COMMANDS


def test_a_peer_that_announces_much_costs_nothing_until_it_sends_it() -> None:
    tracemalloc.start()
    readers = [FrameReader() for _ in range(1000)]
    for reader in readers:
        reader.receive(PREFIX.pack(MAX_FRAME_SIZE - 4, 100))
        for _ in range(20):
            reader.receive(b"{")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


def test_a_dripping_peer_costs_no_more_than_its_frame() -> None:
    body = b"x" * 20_000
    frame = frames.encode(RemotingCommand(310, body=body))
    most, peaks = 2 * len(frame) + 20_000, list[int]()
    while not peaks or (peaks[-1] >= most and len(peaks) < 5):  # another thread may allocate meanwhile
        tracemalloc.start()
        reader = FrameReader()
        commands = [c for at in range(len(frame)) for c in reader.receive(frame[at : at + 1])]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert [c.body for c in commands] == [body]
    assert peaks[-1] < most


def test_a_command_that_does_not_fit_is_our_error() -> None:
    with pytest.raises(CommandTooLarge):
        frames.encode(RemotingCommand(310, body=bytes(MAX_FRAME_SIZE)))
    with pytest.raises(CommandTooLarge):
        frames.encode(RemotingCommand(310, ext_fields={"i": "x" * MAX_FRAME_SIZE}))


def test_a_code_that_a_binary_header_would_cut_is_sent_as_json() -> None:
    command = RemotingCommand(200050, 1, ext_fields={}).as_binary()
    frame = frames.encode(command)
    assert frame[4] == SerializeType.JSON
    assert FrameReader().receive(frame)[0].code == 200050


def test_an_answer_is_json_whatever_the_form_of_its_request() -> None:
    for request in COMMANDS:
        answer = request.answer(0, ext_fields={})
        assert answer.is_response
        assert not answer.is_oneway
        assert answer.opaque == request.opaque
        assert frames.encode(answer)[4] == SerializeType.JSON
