"""Receipts of popped messages, as RocketMQ's clients make and send them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.receipt_handle import ReceiptHandle
from tests.golden_wire import capture, capture_names

numbers = st.integers(0, (1 << 63) - 1)
names = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20)
receipts = st.builds(
    ReceiptHandle,
    numbers,
    numbers,
    numbers,
    st.integers(0, 999),
    st.sampled_from("012"),
    names,
    st.integers(0, 1 << 30),
    st.integers(-1, (1 << 63) - 1),
)


@given(receipts)
def test_a_receipt_comes_back_as_it_was(receipt: ReceiptHandle) -> None:
    assert ReceiptHandle.parse(receipt.text()) == receipt


def test_every_captured_receipt_is_read() -> None:
    found = 0
    for name in capture_names():
        if "pop" not in name and "grpc" not in name:
            continue
        for frame in capture(name):
            fields = frame.header.get("extFields") or {}
            text = fields.get("extraInfo")
            if text is None:
                continue
            receipt = ReceiptHandle.parse(text)
            assert receipt.queue_offset == int(fields["offset"])
            assert receipt.queue_id == int(fields["queueId"])
            assert text.startswith(receipt.text()), "a proxy adds the physical offset"
            found += 1
    assert found > 10


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 2 3",
        "a 1 1 1 0 broker 1 1",
        "1 1 1 -1 0 broker 1 1",
        "1 1 1 1 0 bro\x01ker 1 1",
        "9" * 40 + " 1 1 1 0 b 1",
    ],
)
def test_what_is_no_receipt_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(SystemFailure, match="extraInfo is"):
        ReceiptHandle.parse(text)
