"""The stream between master and slave: any cut gives the same, and what a real pair exchanged replays."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.ha import MAX_BODY_SIZE, REPORT, TRANSFER, ReportReader, Transfer, TransferReader
from tests.golden_wire import capture_lines

transfers = st.lists(st.builds(Transfer, st.integers(0, 2**62), st.binary(max_size=200)), max_size=8)


def encoded(sent: list[Transfer]) -> bytes:
    return b"".join(TRANSFER.pack(offset, len(body)) + body for offset, body in sent)


def pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    cut, at = [], 0
    for size in sizes:
        cut.append(data[at : at + size])
        at += size
    return [*cut, data[at:]]


def runs(received: list[Transfer]) -> list[tuple[int, bytes]]:
    """Parts that follow each other as one; heartbeats stand alone."""
    joined: list[tuple[int, bytes]] = []
    for offset, body in received:
        if joined and body and joined[-1][1] and joined[-1][0] + len(joined[-1][1]) == offset:
            joined[-1] = (joined[-1][0], joined[-1][1] + bytes(body))
        else:
            joined.append((offset, bytes(body)))
    return joined


@given(transfers, st.lists(st.integers(1, 60)))
def test_transfers_come_out_as_they_went_in_however_they_are_cut(sent: list[Transfer], sizes: list[int]) -> None:
    reader = TransferReader()
    assert runs([each for piece in pieces(encoded(sent), sizes) for each in reader.receive(piece)]) == runs(sent)
    assert reader.pending_size == 0


def test_bytes_of_a_transfer_are_given_before_the_rest_of_it_has_come() -> None:
    reader = TransferReader()
    assert reader.receive(TRANSFER.pack(100, 1 << 20) + b"abc") == [Transfer(100, b"abc")]
    assert reader.pending_size == (1 << 20) - 3
    assert reader.receive(b"de") == [Transfer(103, b"de")]


@given(st.lists(st.integers(0, 2**62), min_size=1), st.lists(st.integers(1, 20)))
def test_of_all_reports_the_newest_counts(offsets: list[int], sizes: list[int]) -> None:
    reader, newest = ReportReader(), None
    for piece in pieces(b"".join(REPORT.pack(offset) for offset in offsets), sizes):
        heard = reader.receive(piece)
        newest = newest if heard is None else heard
    assert newest == offsets[-1]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(TRANSFER.pack(-1, 10), id="offset-below-zero"),
        pytest.param(TRANSFER.pack(0, -1), id="size-below-zero"),
        pytest.param(TRANSFER.pack(0, MAX_BODY_SIZE + 1), id="more-than-a-slave-holds"),
        pytest.param(b"GET / HTTP/1.1\r\n", id="another-protocol"),
    ],
)
def test_a_transfer_that_cannot_be_is_refused_before_its_bytes_are_held(head: bytes) -> None:
    with pytest.raises(ProtocolError, match="a master announced"):
        TransferReader().receive(head)


def test_a_report_below_zero_is_refused() -> None:
    with pytest.raises(ProtocolError, match="a slave reported offset -1"):
        ReportReader().receive(REPORT.pack(-1))


def test_the_captured_stream_of_a_real_pair_is_one_run_of_the_log() -> None:
    reader, reports = TransferReader(), ReportReader()
    end, acknowledged, heartbeats = 0, [], 0
    for _, line in capture_lines("ha54-slave-sync.jsonl.gz"):
        if line.get("dir") == "master->slave":
            for offset, body in reader.receive(base64.b64decode(line["raw"])):
                assert offset == end
                end += len(body)
                heartbeats += not body
        elif line.get("dir") == "slave->master":
            acknowledged.append(reports.receive(base64.b64decode(line["raw"])))
    assert end > 2000
    assert heartbeats
    assert acknowledged[0] == 0
    assert acknowledged[-1] == end
