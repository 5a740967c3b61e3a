"""Every captured JSON body becomes its type, and the same JSON again."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.fastjson.bean import bean_of
from skyrocket.protocol.bodies.json_body import BodyKind, JsonBody
from skyrocket.protocol.bodies.registration import BrokerRegistration, body_crc, decode_registration
from skyrocket.protocol.bodies.route import TopicRoute, encode_route, wants_strict_route
from skyrocket.protocol.codes import RequestCode, Version
from skyrocket.protocol.errors import MalformedBody
from skyrocket.protocol.requests.catalogue import REQUESTS
from tests.golden_wire import CapturedFrame, all_frames

# Bodies that are JSON by chance: messages, and a text that RocketMQ makes for people.
NOT_OURS = {RequestCode.SEND_MESSAGE_V2, RequestCode.GET_COLD_DATA_FLOW_CTR_INFO}


def bodies() -> Iterator[tuple[CapturedFrame, BodyKind]]:
    for frame in all_frames():
        if frame.body_json is None:
            continue
        name = frame.in_reply_to if frame.is_response else frame.code_name
        request = REQUESTS[RequestCode[name or ""]]
        if request.code in NOT_OURS:
            continue
        kind = request.answer_body if frame.is_response else request.body
        if request.code == RequestCode.REGISTER_BROKER and not frame.is_response:
            kind = BrokerRegistration  # declared nowhere, because it may be compressed
        assert kind is not None, frame
        yield frame, kind


def as_4_9(kind: BodyKind, body: Any) -> bytes:
    """Without members that 4.9 does not know, where they say nothing."""
    bean = kind.kind if isinstance(kind, JsonBody) else bean_of(kind)
    return dumps(bean.write(body, Dialect.V4_9))


def test_bodies_of_java_peers_are_written_again_byte_for_byte() -> None:
    seen: Counter[str] = Counter()
    for frame, kind in bodies():
        if not frame.is_by_java or kind is TopicRoute:
            continue
        body = kind.decode(frame.body)
        is_4_9 = frame.header["version"] < Version.V5_0_0
        assert (as_4_9(kind, body) if is_4_9 else kind.encode(body)) == frame.body, frame
        seen[frame.in_reply_to or frame.code_name] += 1
    assert len(seen) > 40


def test_bodies_of_other_peers_keep_all_they_say() -> None:
    seen = 0
    for frame, kind in bodies():
        if frame.is_by_java or kind is TopicRoute:
            continue
        try:
            again = kind.encode(kind.decode(frame.body))
        except MalformedBody:
            assert frame.file.startswith("badinput"), frame
            continue
        assert contains(loads(again), loads(frame.body)), frame
        seen += 1
    assert seen > 30


def contains(whole: Any, part: Any) -> bool:
    """Whether all that `part` says is in `whole`; enums may have been told as numbers."""
    if isinstance(part, dict):
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part or (isinstance(whole, str) and isinstance(part, int))


def test_routes_are_written_in_the_form_that_the_requester_gets() -> None:
    strict_seen: Counter[bool] = Counter()
    asked: dict[tuple[str, int, int], CapturedFrame] = {}
    for frame in all_frames():
        if frame.code_name == "GET_ROUTEINFO_BY_TOPIC" and not frame.is_response:
            asked[frame.file, frame.connection, frame.header["opaque"]] = frame
        if frame.in_reply_to != "GET_ROUTEINFO_BY_TOPIC" or not frame.body:
            continue
        request = asked[frame.file, frame.connection, frame.header["opaque"]]
        standard = (request.header.get("extFields") or {}).get("acceptStandardJsonOnly") == "true"
        strict = wants_strict_route(request.header["version"], standard)
        route = TopicRoute.decode(frame.body)
        again = encode_route(route, strict=strict)
        if frame.header["version"] < Version.V5_0_0:
            again = again.replace(b',"enableActingMaster":false', b"")
        assert again == frame.body, frame
        strict_seen[strict] += 1
    assert strict_seen[True] > 400
    assert strict_seen[False] > 15


def test_registrations_are_read_with_the_crc_that_they_announce() -> None:
    seen = 0
    for frame in all_frames():
        if frame.code_name != "REGISTER_BROKER" or frame.is_response or not frame.is_by_java:
            continue
        assert body_crc(frame.body) == int(frame.header["extFields"]["bodyCrc32"])
        registration = decode_registration(frame.body, compressed=False, requester_version=frame.header["version"])
        assert (
            registration.table.topics.keys()
            == frame.body_json["topicConfigSerializeWrapper"]["topicConfigTable"].keys()
        )
        seen += 1
    assert seen > 100
