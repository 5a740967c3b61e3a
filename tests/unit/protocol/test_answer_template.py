"""Answers made of constant pieces are byte for byte those of the ordinary encoder."""

from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol import frames
from skyrocket.protocol.command import RESPONSE_FLAG, RemotingCommand
from skyrocket.protocol.requests.answer_template import AnswerTemplate
from skyrocket.protocol.requests.messaging import SendMessageAnswer
from skyrocket.protocol.requests.pulling import PullMessageAnswer
from tests.golden_wire import all_frames

REGION = {"region": "Default'{}\"Region", "trace_on": "true"}
SEND = AnswerTemplate(SendMessageAnswer, ("queue_id", "transaction_id", "msg_id", "queue_offset"), constants=REGION)
PULL_FIELDS = (
    "suggest_which_broker_id",
    "next_begin_offset",
    "min_offset",
    "max_offset",
    "topic_sys_flag",
    "group_sys_flag",
)
FOUND = AnswerTemplate(PullMessageAnswer, PULL_FIELDS, remark="FOUND")

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
LONG = st.integers(-(1 << 63), (1 << 63) - 1)


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 1 << 20), TEXT, TEXT, LONG)
def test_send_answers_are_the_same_bytes(opaque: int, size: int, unique_key: str, msg_id: str, offset: int) -> None:
    header = SendMessageAnswer(
        queue_id=3, transaction_id=unique_key, msg_id=msg_id, queue_offset=offset, replica_count=None, **REGION
    )
    expected = frames.encode_head(RemotingCommand(0, opaque, RESPONSE_FLAG, header.to_fields()), size)
    assert SEND.head(opaque, size, 3, unique_key, msg_id, offset) == expected


@given(st.integers(0, (1 << 31) - 1), st.integers(0, 1 << 20), st.text("0aZ", max_size=900), LONG)
def test_texts_that_are_formatted_are_the_same_bytes(opaque: int, size: int, unique_key: str, offset: int) -> None:
    place = abs(offset)
    formats = {"transaction_id": "{}", "msg_id": "7F{:016X}"}
    attributes = ("queue_id", "transaction_id", "msg_id", "queue_offset")
    formatted = AnswerTemplate(SendMessageAnswer, attributes, constants=REGION, formats=formats).head
    expected = SEND.head(opaque, size, 3, unique_key, f"7F{place:016X}", offset)
    assert formatted(opaque, size, 3, unique_key, place, offset) == expected


def test_captured_pull_answers_are_the_same_bytes() -> None:
    seen = 0
    for frame in all_frames():
        is_pull = frame.in_reply_to in ("PULL_MESSAGE", "LITE_PULL_MESSAGE")
        if not is_pull or frame.header.get("remark") != "FOUND" or frame.header["version"] != 493:
            continue
        header = PullMessageAnswer.from_fields(frame.header["extFields"])
        values = [getattr(header, name) for name in PULL_FIELDS]
        assert FOUND.head(frame.header["opaque"], frame.body_size, *values) + frame.body == frame.raw
        seen += 1
    assert seen > 100
