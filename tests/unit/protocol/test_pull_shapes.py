"""Headers of pulls that look alike: what is read by shape is what a full parse gives."""

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skyrocket.protocol import header_json
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import ProtocolError
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.pull_shapes import PULL_HEADS, PullShapes, ShapedPull
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.protocol.send_shapes import Room, SendShapes
from tests.golden_wire import all_frames

FIELDS = {
    "queueId": "0",
    "maxMsgNums": "32",
    "sysFlag": "3",
    "suspendTimeoutMillis": "15000",
    "commitOffset": "32",
    "topic": "Orders",
    "queueOffset": "64",
    "expressionType": "TAG",
    "subVersion": "1794795257523",
    "consumerGroup": "CG_orders",
}
HARMLESS = {name: "0" for name in FIELDS if name not in ("commitOffset", "queueOffset")}
NUMBERS = st.sampled_from(["", "x", "-1", "00", "+5", "1.0", " 1", "5 ", "٣", "9" * 18, "9" * 19]) | st.integers(
    0, 2**63
).map(str)


def header(opaque: object = 4, code: int = 11, /, **fields: str) -> bytes:
    rest = {"flag": 0, "language": "JAVA", "opaque": 4, "serializeTypeCurrentRPC": "JSON", "version": 493}
    raw = orjson.dumps({"code": code, "extFields": {**FIELDS, **fields}, **rest})
    return raw.replace(b'"opaque":4', f'"opaque":{opaque}'.encode())


def no_shapes(room: int = 1 << 30) -> PullShapes:
    return PullShapes(Room(room))


def learned(first: bytes | None = None) -> PullShapes:
    shapes = no_shapes()
    assert not isinstance(shapes.command(first or header(), b""), ShapedPull)
    return shapes


def assert_same(shaped: RemotingCommand, raw: bytes) -> None:
    full = header_json.decode(raw, b"")
    for name in ("code", "opaque", "flag", "ext_fields", "body", "remark", "language", "version", "serialize_type"):
        assert getattr(shaped, name) == getattr(full, name), name
    if isinstance(shaped, ShapedPull):
        assert full.ext_fields is not None
        parsed = PullMessage.from_fields({**full.ext_fields, **HARMLESS})
        assert (shaped.queue_offset, shaped.commit_offset) == (parsed.queue_offset, parsed.commit_offset)


def test_a_pull_of_a_known_shape_reads_as_it_does_in_full() -> None:
    raw = header(2147483647, queueOffset="0", commitOffset="123456789012345678")
    shaped = learned().command(raw, b"")
    assert isinstance(shaped, ShapedPull)
    assert_same(shaped, raw)


@pytest.mark.parametrize("code", [11, 361])
def test_both_kinds_of_pulls_have_shapes(code: int) -> None:
    shapes = learned(header(4, code))
    assert isinstance(shapes.command(header(5, code), b""), ShapedPull)
    assert shapes.command(header(5, code), b"").code == code


@pytest.mark.parametrize("name", sorted(set(FIELDS) - {"commitOffset", "queueOffset"}))
def test_a_pull_with_another_value_has_another_shape(name: str) -> None:
    assert not isinstance(learned().command(header(**{name: "7"}), b""), ShapedPull)


@given(
    opaque=NUMBERS | st.sampled_from(["2147483647", "2147483648", '"4"', "4e0"]),
    offset=NUMBERS,
    committed=NUMBERS,
    changed=st.none() | st.tuples(st.sampled_from(sorted(FIELDS)), st.text(max_size=8)),
    cut=st.none() | st.integers(0, 400),
)
@example(opaque="5", offset="1", committed="2", changed=None, cut=None)
@example(opaque="5", offset="٣", committed="2", changed=None, cut=None)
@settings(max_examples=500, deadline=None)
def test_whatever_is_read_by_shape_is_right(
    opaque: str, offset: str, committed: str, changed: tuple[str, str] | None, cut: int | None
) -> None:
    fields = {"queueOffset": offset, "commitOffset": committed, **(dict([changed]) if changed else {})}
    raw = header(opaque, **fields)[:cut]
    shapes = learned()
    for _ in range(2):  # as a stranger, and when it may have been learned
        try:
            shaped = shapes.command(raw, b"")
        except ProtocolError:
            with pytest.raises(ProtocolError):
                header_json.decode(raw, b"")
            return
        assert_same(shaped, raw)
    plain = all(text.isascii() and text.isdigit() and len(text) < 10 for text in (offset, committed))
    if changed is None and cut is None and plain:
        assert isinstance(shaped, ShapedPull) == (
            opaque.isascii() and opaque.isdigit() and str(int(opaque)) == opaque and int(opaque) < 2**31
        )


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(header().replace(b'"flag":0', b'"flag":0,"queueOffset":"9"'), id="a-name-twice"),
        pytest.param(header(topic='a"opaque":5,'), id="an-escaped-quote"),
        pytest.param(header().replace(b'"TAG"', b"'TAG'"), id="single-quotes"),
        pytest.param(header(Signature="h6BEmddmfTS6GVv0UOq2aRCVvHc="), id="a-signature"),
        pytest.param(header().replace(b'"flag":0', b'"flag":0,"remark":"r"'), id="a-remark"),
        pytest.param(header().replace(b'"flag":0', b'"flag":0,"code":10'), id="another-code-after-it"),
        pytest.param(header(a="b" * 3000), id="a-long-one"),
        pytest.param(header(commitOffset="-1"), id="a-negative-offset"),
        pytest.param(
            header().replace(b',"queueOffset":"64"', b"").replace(b'"flag":0', b'"flag":0,"queueOffset":"64"'),
            id="an-offset-beside-the-fields",
        ),
        pytest.param(header().replace(b'"flag":0', b'"flag":0,"extFields":null'), id="no-fields-after-all"),
    ],
)
def test_what_is_odd_is_read_in_full_again_and_again(odd: bytes) -> None:
    shapes = no_shapes()
    for _ in range(3):
        command = shapes.command(odd, b"")
        assert not isinstance(command, ShapedPull)
        assert_same(command, odd)
    assert len(shapes) == 0


def test_the_number_of_shapes_is_bounded() -> None:
    room = Room(1 << 30)
    shapes = PullShapes(room)
    for number in range(5000):
        shapes.command(header(queueId=str(number)), b"")
    assert 0 < len(shapes) <= 2000
    assert (1 << 30) - room.left < 2000 * 2000


def test_all_connections_together_remember_no_more_than_there_is_room_for() -> None:
    shared = SendShapes()
    before = shared.pull_room.left
    readers = [FrameReader(shapes=shared) for _ in range(3)]
    frames = [encode(header_json.decode(header(queueId=str(number)), b"")) for number in range(10)]
    shared.pull_room.left = 15_000
    for reader in readers:
        for frame in frames * 2:
            reader.receive(frame)
    assert -2_000 < shared.pull_room.left <= 0
    (still_read,) = readers[2].receive(frames[0])
    assert not isinstance(still_read, ShapedPull)
    assert isinstance(readers[0].receive(frames[0])[0], ShapedPull)
    for reader in readers:
        reader.forget()
    assert shared.pull_room.left == 15_000 < before
    readers[2].receive(frames[0])
    assert isinstance(readers[2].receive(frames[0])[0], ShapedPull)


def test_every_captured_pull_reads_the_same_however_often_it_comes_and_is_cut() -> None:
    seen = shaped = 0
    for frame in all_frames():
        if not frame.raw[8:].startswith(PULL_HEADS) or frame.raw[4]:
            continue
        reader, plain = FrameReader(shapes=SendShapes()), FrameReader()
        (full,) = plain.receive(frame.raw)
        for at in (len(frame.raw), 6, 100):
            commands = reader.receive(frame.raw[:at]) + reader.receive(frame.raw[at:])
            (command,) = commands
            assert_same(command, frame.raw[8:])
            assert encode(command) == encode(full)
            shaped += isinstance(command, ShapedPull)
        seen += 1
    assert seen > 300
    assert shaped > 400


def test_clients_look_for_no_shapes() -> None:
    reader = FrameReader()
    frame = encode(header_json.decode(header(), b""))
    assert not any(isinstance(command, ShapedPull) for _ in range(3) for command in reader.receive(frame))
