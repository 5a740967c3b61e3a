"""Binary headers: the vectors, and the quirks that are kept."""

import pytest

from skyrocket.protocol import frames, header_binary
from skyrocket.protocol.codes import LanguageCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.frames import FrameReader
from tests.unit.protocol.samples import SEND_FIELDS

CONSUMER_LIST = bytes.fromhex(
    "0000002f 0100002b 0026 00 01df 00000005 00000000 00000001 72"
    "00000015 000d 636f6e73756d657247726f7570 00000002 4347".replace(" ", "")
)
SEND = bytes.fromhex(
    """000000b0 010000ac 0136 00 01df 00000005 00000000 00000000 00000097
    0001 61 00000002 5047  0001 62 00000006 546f70696341  0001 63 00000006 544257313032  0001 64 00000001 34
    0001 65 00000001 31  0001 66 00000001 30  0001 67 0000000d 31373030303030303030303030  0001 68 00000001 30
    0001 69 0000000a 54414753015461674102  0001 6a 00000001 30  0001 6b 00000005 66616c7365
    0001 6d 00000005 66616c7365  0001 6e 00000008 62726f6b65722d61"""
)


def command(**fields: str) -> RemotingCommand:
    return RemotingCommand(38, 5, ext_fields=fields, version=479).as_binary()


def test_the_vectors_are_read_and_written() -> None:
    small = command(consumerGroup="CG")
    small.remark = "r"
    send = RemotingCommand(310, 5, ext_fields=SEND_FIELDS, version=479).as_binary()
    for frame, expected in ((CONSUMER_LIST, small), (SEND, send)):
        assert FrameReader().receive(frame) == [expected]
        assert frames.encode(expected) == frame


def test_a_code_above_16_bits_arrives_cut() -> None:
    header = bytes.fromhex("0d72 00 01df 00000005 00000000 00000000 00000000")
    assert header_binary.decode(header, b"").code == 3442
    assert not header_binary.can_carry(RemotingCommand(200050))


def test_an_empty_text_is_no_text() -> None:
    sent = command(a="", b="x")
    sent.remark = ""
    received = header_binary.decode(header_binary.encode(sent), b"")
    assert received.ext_fields == {"b": "x"}
    assert received.remark is None


@pytest.mark.parametrize(
    ("sent", "passed_on"),
    [
        (
            "000000280100002400260000000000000500000000000000000000000f000161000000000001620000000178",
            "000000210100001d0026000000000000050000000000000000000000080001620000000178",
        ),
        (
            "000000200100001c00260000000000000500000000000000000000000700016100000000",
            "0000001901000015002600000000000005000000000000000000000000",
        ),
    ],
)
def test_a_field_without_a_value_is_left_out_when_its_command_is_passed_on(sent: str, passed_on: str) -> None:
    """Frames as RocketMQ 5.4.0 wrote them with a field `a` of no text, and as it wrote what it had read from them."""
    [received] = FrameReader().receive(bytes.fromhex(sent))
    assert frames.encode(received).hex() == passed_on


def test_the_last_of_equal_fields_counts() -> None:
    one, two = header_binary.encode(command(a="1"))[21:], header_binary.encode(command(a="2"))[21:]
    header = header_binary.encode(command())[:17] + (len(one) + len(two)).to_bytes(4) + one + two
    assert header_binary.decode(header, b"").ext_fields == {"a": "2"}


def test_an_unknown_language_is_none() -> None:
    header = bytearray(header_binary.encode(command()))
    header[2] = 99
    received = header_binary.decode(bytes(header), b"")
    assert received.language is None
    assert header_binary.encode(received)[2] == LanguageCode.OTHER


def test_lengths_that_contradict_each_other_are_refused() -> None:
    whole = header_binary.encode(command(topic="TopicA"))
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            header_binary.decode(whole[:end], b"")
    for position in (13, 17, 21, 28):  # of the remark, all ext fields, a name, a value
        for value in (b"\x7f", b"\x80", b"\xff"):
            with pytest.raises(ProtocolError):
                header_binary.decode(whole[:position] + value + whole[position + 1 :], b"")
