"""Every captured request and answer becomes its type, and the same fields again."""

from collections import Counter
from collections.abc import Iterator

import pytest

from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.errors import MissingField, RequestError
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.requests.catalogue import REQUESTS
from skyrocket.protocol.requests.header import Header, NoAnswerFields
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from tests.golden_wire import CapturedFrame, all_frames

# Fields that hooks add to any request; handlers do not ask for them.
ADDED_BY_HOOKS = {"AccessKey", "Signature", "ReqT"}
SUCCESSES = (ResponseCode.SUCCESS, *range(10, 13), *range(19, 22))
# Codes without a type: made by hand, or cut to 16 bits by a binary header.
NO_REQUESTS = {-7, 9999, 3442}


def ext_fields(frame: CapturedFrame) -> dict[str, str] | None:
    (command,) = FrameReader().receive(frame.raw)
    return command.ext_fields


def requests() -> Iterator[CapturedFrame]:
    return (frame for frame in all_frames() if not frame.is_response)


def answers() -> Iterator[tuple[CapturedFrame, RequestCode]]:
    for frame in all_frames():
        code = RequestCode.__members__.get(frame.in_reply_to or "")
        if frame.is_response and code is not None:
            yield frame, code


def test_every_captured_code_has_a_type() -> None:
    assert {int(frame.header["code"]) for frame in requests()} - NO_REQUESTS <= REQUESTS.keys()


def test_requests_become_their_type_and_the_same_fields_again() -> None:
    refused: Counter[str] = Counter()
    for frame in requests():
        kind = REQUESTS.get(int(frame.header["code"]))
        if kind is None:
            continue
        given = {name: text for name, text in (ext_fields(frame) or {}).items() if name not in ADDED_BY_HOOKS}
        try:
            header = kind.from_fields(given)
        except RequestError:
            assert frame.file.startswith("badinput"), frame
            refused[kind.__name__] += 1
            continue
        again = header.to_fields()
        if frame.is_by_java:
            extra = again.keys() - given.keys()
            assert {name: again[name] for name in again if name not in extra} == given, frame
            assert all(is_primitive_default(kind, name) for name in extra), (str(frame), extra)
        else:
            assert given.items() <= again.items() | lost(given, again), frame
    assert sum(refused.values()) < 50


def is_primitive_default(kind: type[Header], name: str) -> bool:
    """A field that RocketMQ 5.4.0 always writes, and its forerunners do not know."""
    field = next(field for field in kind.wire_fields if field.name == name)
    return not field.nullable and not field.required


def lost(given: dict[str, str], again: dict[str, str]) -> set[tuple[str, str]]:
    """Malformed numbers of hand-made requests, which count as missing."""
    return {(name, text) for name, text in given.items() if name not in again}


def test_ext_fields_of_requests_are_there_when_java_has_them() -> None:
    for frame in requests():
        kind = REQUESTS.get(int(frame.header["code"]))
        is_from_5 = frame.header.get("version", 0) >= 413
        if kind is None or not frame.is_by_java or frame.raw[4] or not is_from_5:
            continue
        assert (frame.header.get("extFields") is not None) == kind.is_sent or frame.file.startswith("acl"), frame


def test_answers_become_their_type_and_the_same_fields_again() -> None:
    seen: Counter[str] = Counter()
    for frame, code in answers():
        kind = REQUESTS[code].answer
        given = ext_fields(frame)
        if frame.header["code"] not in SUCCESSES:
            continue
        is_5 = frame.header["version"] >= 413
        if kind is NoAnswerFields or (given is None and not is_5):
            assert given is None, frame
            continue
        assert given is not None, frame
        again = kind.from_fields(given).to_fields()
        assert again == given, frame
        if is_5:
            assert list(again) == list(given), frame
        seen[kind.__name__] += 1
    assert seen["SendMessageAnswer"] > 300
    assert seen["PullMessageAnswer"] > 200
    assert len(seen) >= 18


def test_requests_of_java_5_clients_stand_in_its_order() -> None:
    """Signed requests and those with ReqT or _UNIQUE_KEY_QUERY come from a wider map; see java_order."""
    for frame in requests():
        kind = REQUESTS.get(int(frame.header["code"]))
        given = ext_fields(frame)
        if kind is None or not given or not frame.is_by_java or frame.raw[4]:
            continue
        if given.keys() & (ADDED_BY_HOOKS | {"_UNIQUE_KEY_QUERY"}) or frame.header["version"] < 413:
            continue
        assert list(kind.from_fields(given).to_fields()) == list(given), frame


def test_the_refusal_of_a_missing_field_names_it() -> None:
    with pytest.raises(MissingField, match="consumerGroup"):
        REQUESTS[RequestCode.PULL_MESSAGE].from_fields(None)


@pytest.mark.requirement("C120")
def test_a_message_sent_back_tells_group_topic_offset_level_id_and_limit() -> None:
    seen = 0
    for frame in requests():
        if frame.code_name != "CONSUMER_SEND_MSG_BACK" or not frame.is_by_java:
            continue
        back = ConsumerSendMsgBack.from_fields(ext_fields(frame))
        assert "CG_" in back.group
        assert back.offset >= 0
        assert back.delay_level is not None
        assert back.origin_topic
        assert back.origin_msg_id
        assert back.max_reconsume_times is not None
        seen += 1
    assert seen > 10
