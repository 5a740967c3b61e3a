"""The files of a broker whose role a controller decides, as RocketMQ writes them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.format.epochs import (
    Epoch,
    ReplicaIdentity,
    decode_epochs,
    decode_identity,
    encode_epochs,
    encode_identity,
)

epochs = st.lists(
    st.tuples(st.integers(1, 2**31 - 1), st.integers(0, 2**62)), unique_by=lambda pair: pair[0], max_size=8
).map(
    lambda pairs: tuple(
        Epoch(number, start)
        for number, start in zip(
            sorted(number for number, _ in pairs), sorted(start for _, start in pairs), strict=True
        )
    )
)


def test_epochs_look_as_in_rocketmq() -> None:
    # The example of RocketMQ's own class, with the checksum that it computes.
    assert encode_epochs((Epoch(7, 7000), Epoch(8, 8000))) == b"2\n773307083\n7-7000\n8-8000\n"


@given(epochs)
def test_epochs_come_back_as_they_were_written(written: tuple[Epoch, ...]) -> None:
    assert decode_epochs(encode_epochs(written)) == written


@given(st.binary(max_size=60))
def test_bytes_that_are_no_epochs_are_refused(data: bytes) -> None:
    with contextlib.suppress(DataError):
        decode_epochs(data)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"2\n0\n7-7000\n", "tells of 2 epochs and has 1"),
        (b"1\n5\n7-7000\n", "checksum"),
        (b"2\n0\n7-7000\n6-8000\n", "out of order"),
        (b"x\n", "lines as 4-81920"),
    ],
)
def test_a_damaged_epoch_file_is_named(text: bytes, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        decode_epochs(text)


def test_a_checksum_of_zero_is_not_checked() -> None:
    assert decode_epochs(b"1\n0\n7-7000\n") == (Epoch(7, 7000),)


def test_identities_look_as_in_rocketmq() -> None:
    own = ReplicaIdentity("DefaultCluster", "broker-a", 2)
    asked = own._replace(check_code="10.0.0.1:10911;1700000000000")
    assert encode_identity(own) == b"DefaultCluster#broker-a#2"
    assert encode_identity(asked) == b"DefaultCluster#broker-a#2#10.0.0.1:10911;1700000000000"
    assert (decode_identity(encode_identity(own)), decode_identity(encode_identity(asked))) == (own, asked)
    with pytest.raises(DataError, match="cluster#broker#id"):
        decode_identity(b"DefaultCluster#broker-a")
