"""Trace records against what RocketMQ's Java client wrote, and against themselves."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.format.record import decode_record
from skyrocket.format.trace import (
    CallBegan,
    CallEnded,
    CallOutcome,
    Recalled,
    SendKind,
    Sent,
    TraceEvent,
    TransactionEnded,
    decode_trace,
    encode_event,
)
from tests.golden_wire import capture

ID, CALL = "0A0000053A234E0E2F2A4DA9E33F0000", "0A0000053A234E0E2F2A4DA9ECDB0002"


def encode_trace(events: Iterable[TraceEvent]) -> bytes:
    """The body that says all this, as the client joins it."""
    return "".join(map(encode_event, events)).encode("utf-8", "replace")


def captured_bodies() -> list[bytes]:
    """Bodies of messages that Java clients sent to the trace topic."""
    return [
        frame.body
        for frame in capture("java54-trace.jsonl.gz")
        if frame.code_name == "SEND_MESSAGE_V2" and frame.header["extFields"].get("b") == "RMQ_SYS_TRACE_TOPIC"
    ]


@pytest.mark.requirement("B008")
def test_what_java_clients_wrote_is_read_and_written_again_byte_for_byte() -> None:
    published, consumed = captured_bodies()
    (sent,) = decode_trace(published)
    assert sent == Sent(
        1794794179392,
        "DefaultRegion",
        "PG_trace",
        "TopicTrace",
        ID,
        "TagA",
        "tracekey",
        "127.0.0.1:30911",
        6,
        640,
        SendKind.NORMAL,
        "7F000001000078BF0000000000009970",
        succeeded=True,
    )
    began, ended = decode_trace(consumed)
    assert began == CallBegan(1794794181852, "DefaultRegion", "CG_trace", CALL, ID, 0, "tracekey")
    assert ended == CallEnded(
        CALL, ID, 46, True, "tracekey", CallOutcome.SUCCESS, timestamp=1794794181898, group="CG_trace"
    )
    assert encode_trace([sent]) == published
    assert encode_trace([began, ended]) == consumed


def test_what_mqadmin_was_given_is_read_and_written_again_byte_for_byte() -> None:
    (answer,) = [
        frame.body
        for frame in capture("admin54-queryMsgTraceById.jsonl")
        if frame.is_response and frame.in_reply_to == "QUERY_MESSAGE"
    ]
    at, bodies = 0, []
    while at < len(answer):
        size = int.from_bytes(answer[at : at + 4], "big")
        bodies.append(decode_record(answer[at : at + size]).body)
        at += size
    assert [type(event) for body in bodies for event in decode_trace(body)] == [Sent, CallBegan, CallEnded]
    for body in bodies:
        assert encode_trace(decode_trace(body)) == body


def test_older_and_newer_forms_are_read() -> None:
    new = "Pub\x011\x01R\x01G\x01T\x01ID\x01null\x01null\x01h:1\x016\x015\x013\x01OFFSET\x01true\x0110.0.0.9\x02"
    (sent,) = decode_trace(new.encode())
    assert isinstance(sent, Sent)
    assert (sent.tags, sent.keys, sent.kind, sent.client_host) == (None, None, SendKind.DELAY, "10.0.0.9")
    old = "Pub\x011\x01R\x01G\x01T\x01ID\x01a\x01k\x01h:1\x016\x015\x010\x01false\x02"
    (sent,) = decode_trace(old.encode())
    assert isinstance(sent, Sent)
    assert (sent.offset_message_id, sent.succeeded) == (None, False)
    for ended, outcome in (
        ("SubAfter\x01C\x01ID\x017\x01true\x01k\x02", CallOutcome.SUCCESS),
        ("SubAfter\x01C\x01ID\x017\x01false\x01k\x02", CallOutcome.FAILED),
        ("SubAfter\x01C\x01ID\x017\x01false\x01k\x012\x02", CallOutcome.EXCEPTION),
        ("SubAfter\x01C\x01ID\x017\x01false\x01k\x011\x01\x02", CallOutcome.TIME_OUT),  # of cloud servers
    ):
        (event,) = decode_trace(ended.encode())
        assert isinstance(event, CallEnded)
        assert (event.outcome, event.timestamp, event.group) == (outcome, None, None)


def test_unknown_kinds_are_passed_over_and_broken_records_named() -> None:
    assert decode_trace(b"") == []
    assert decode_trace(b"Dream\x011\x02\x02garbage") == []
    with pytest.raises(DataError, match="trace record 0: Recall has 1 fields, 6 are needed"):
        decode_trace(b"Recall\x011\x02")
    with pytest.raises(DataError, match=r"trace record 1: Recall has a field that cannot be read: .*'soon'"):
        decode_trace(b"Dream\x02Recall\x01soon\x01R\x01G\x01T\x01ID\x01true\x02")
    with pytest.raises(DataError, match="a trace of 1 bytes is not UTF-8 text"):
        decode_trace(b"\xff")


def test_separators_in_the_texts_of_others_do_not_break_a_record() -> None:
    (read,) = decode_trace(encode_trace([CallBegan(1, "R", "G", "C", "ID", 0, "a\x01b\x02c")]))
    assert isinstance(read, CallBegan)
    assert read.keys == "a b c"


texts = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"])).filter(
    lambda text: text != "null"
)
maybe = st.none() | texts
numbers = st.integers(0, 1 << 62)
kinds = st.sampled_from(SendKind)
events = st.one_of(
    st.builds(
        Sent,
        *(numbers, maybe, texts, texts, texts, maybe, maybe, texts, numbers, numbers, kinds, maybe, st.booleans()),
    ),
    st.builds(CallBegan, numbers, maybe, texts, texts, texts, numbers, maybe),
    st.builds(CallEnded, texts, texts, numbers, st.booleans(), maybe, st.sampled_from(CallOutcome), numbers, texts),
    st.builds(CallEnded, texts, texts, numbers, st.booleans(), maybe, st.sampled_from(CallOutcome)),
    st.builds(
        TransactionEnded,
        *(numbers, maybe, texts, texts, texts, maybe, maybe, texts, kinds, texts, texts, st.booleans()),
    ),
    st.builds(Recalled, numbers, maybe, texts, texts, texts, st.booleans()),
)


@given(st.lists(events))
def test_what_is_written_is_read(written: list[TraceEvent]) -> None:
    assert decode_trace(encode_trace(written)) == written
