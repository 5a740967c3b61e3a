"""The words of the auto-switch protocol: bytes as RocketMQ's, however they are cut on their way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol.auto_switch import (
    SLAVE_REPORT,
    TRANSFER,
    MasterHello,
    MasterWordReader,
    Piece,
    SlaveHello,
    SlaveWordReader,
)
from skyrocket.protocol.errors import ProtocolError


def test_words_have_the_sizes_of_rocketmq() -> None:
    assert SlaveHello(7, from_last_file=True).encode() == bytes.fromhex("00000001 0001 0000 0000000000000007")
    assert SLAVE_REPORT.pack(2, 5) == bytes.fromhex("00000002 0000000000000005")
    assert MasterHello(9, ((1, 0),)).encode() == bytes.fromhex(
        "00000001 0000000c 0000000000000009 00000001  00000001 0000000000000000"
    )
    assert TRANSFER.size == 36


@given(st.data())
def test_what_a_master_says_is_understood_however_it_is_cut(data: st.DataObject) -> None:
    bodies = data.draw(st.lists(st.binary(max_size=40), max_size=6))
    stream, offset = MasterHello(90, ((1, 0), (4, 50))).encode(), 50
    for body in bodies:
        stream += TRANSFER.pack(2, len(body), offset, 4, 50, 77) + body
        offset += len(body)
    reader, words = MasterWordReader(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        words += [
            word._replace(body=bytes(word.body)) if isinstance(word, Piece) else word
            for word in reader.receive(stream[:size])
        ]
        stream = stream[size:]
    assert words[0] == MasterHello(90, ((1, 0), (4, 50)))
    pieces = [word for word in words[1:] if isinstance(word, Piece)]
    assert b"".join(bytes(piece.body) for piece in pieces) == b"".join(bodies)
    assert sum(not piece.body for piece in pieces) == sum(not body for body in bodies)
    assert all((piece.epoch, piece.epoch_start, piece.confirm_offset) == (4, 50, 77) for piece in pieces)
    at = 50
    for piece in pieces:
        assert piece.offset == at
        at += len(piece.body)


@given(st.data())
def test_what_a_slave_says_is_understood_however_it_is_cut(data: st.DataObject) -> None:
    reports = data.draw(st.lists(st.integers(0, 2**60), min_size=1, max_size=5))
    stream = SlaveHello(3, is_learner=True).encode() + b"".join(SLAVE_REPORT.pack(2, each) for each in reports)
    reader, hellos, last = SlaveWordReader(), [], None
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        hello, reported = reader.receive(stream[:size])
        hellos += [hello] * (hello is not None)
        last = reported if reported is not None else last
        stream = stream[size:]
    assert hellos == [SlaveHello(3, is_learner=True)]
    assert last == reports[-1]


@pytest.mark.parametrize("word", [SLAVE_REPORT.pack(5, 0), SLAVE_REPORT.pack(2, -1)])
def test_a_slave_that_speaks_nonsense_is_refused(word: bytes) -> None:
    with pytest.raises(ProtocolError):
        SlaveWordReader().receive(word)


@pytest.mark.parametrize(
    "word",
    [
        TRANSFER.pack(2, 0, 0, 1, 0, 0),
        MasterHello(0, ()).encode()[:4] + b"\x00\x00\x00\x05" + bytes(12),
        MasterHello(0, ()).encode() + TRANSFER.pack(2, 5 << 20, 0, 1, 0, 0),
        MasterHello(0, ()).encode() + TRANSFER.pack(1, 0, 0, 1, 0, 0),
    ],
)
def test_a_master_that_speaks_nonsense_is_left(word: bytes) -> None:
    with pytest.raises(ProtocolError):
        MasterWordReader().receive(word)
