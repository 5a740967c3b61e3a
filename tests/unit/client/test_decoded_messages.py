"""Records of a pull answer: whatever a broker sends, there are messages or a DataError."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skyrocket.client.core.message import decode_messages
from skyrocket.errors import DataError
from skyrocket.format.record import HEADS
from tests.unit.client.consumer.test_pulled_answer import V6, record

ONE = record(0, b"body")
_LENGTH_AT = HEADS[0].size - 4


@given(st.integers(0, len(ONE) - 1), st.integers(0, 255), st.integers(0, len(ONE)), st.booleans())
@example(_LENGTH_AT, 0x7F, 0, False)
def test_a_harmed_record_is_a_message_or_a_data_error(at: int, value: int, cut: int, is_wide: bool) -> None:
    """Anything else ended the task that pulls, and with it the queue's consumption."""
    whole = bytearray(record(0, b"body", host=V6) if is_wide else ONE)
    whole[at] = value
    with contextlib.suppress(DataError):
        decode_messages(bytes(whole[: len(whole) - cut]), "broker-a")


@pytest.mark.parametrize("length", [len(ONE), 2**31 - 1, -1, -(2**31)])
def test_a_body_that_reaches_behind_the_answer_is_a_data_error(length: int) -> None:
    harmed = ONE[:_LENGTH_AT] + length.to_bytes(4, "big", signed=True) + ONE[_LENGTH_AT + 4 :]
    with pytest.raises(DataError):
        decode_messages(harmed, "broker-a")
