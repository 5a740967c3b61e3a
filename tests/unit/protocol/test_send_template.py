"""Frames from constant pieces are those of the encoder, byte for byte, and what servers read by their shape."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.protocol.codes import LanguageCode, RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import CommandTooLarge
from skyrocket.protocol.frames import FrameReader, encode
from skyrocket.protocol.send_shapes import SendShapes, ShapedSend
from skyrocket.protocol.send_template import SendTemplate

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def fields(group: str, topic: str, broker: str, born: str = "", properties: str = "") -> dict[str, str]:
    constant = {"a": group, "b": topic, "c": "TBW102", "d": "4", "e": "3", "f": "0"}
    return {**constant, "g": born, "h": "0", "i": properties, "j": "0", "k": "false", "m": "false", "n": broker}


def send(ext_fields: dict[str, str], opaque: int = 0, body: bytes = b"") -> RemotingCommand:
    return RemotingCommand(
        RequestCode.SEND_MESSAGE_V2, opaque, ext_fields=ext_fields, body=body, language=LanguageCode.PYTHON
    )


@given(
    NAMES,
    NAMES,
    NAMES,
    st.integers(0, (1 << 31) - 1),
    st.integers(10**12, 10**13 - 1),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=200),
)
def test_a_frame_is_the_one_that_the_encoder_makes(
    group: str, topic: str, broker: str, opaque: int, born_ms: int, properties: str, body: bytes
) -> None:
    template = SendTemplate(send(fields(group, topic, broker)))
    whole = send(fields(group, topic, broker, str(born_ms), properties), opaque, body)
    assert template.frame(opaque, born_ms, properties, body) == encode(whole)


def test_servers_know_the_shape_of_such_frames() -> None:
    template = SendTemplate(send(fields("Shop", "Orders", "broker-a")))
    reader = FrameReader(shapes=SendShapes())
    properties = "UNIQ_KEY\x01AB\x02WAIT\x01true\x02"
    frames = [template.frame(number, 1_794_793_999_060, properties, b"paid") for number in range(3)]
    first, *others = reader.receive(b"".join(frames))
    assert [type(each) for each in others] == [ShapedSend, ShapedSend]
    assert others[1].ext_fields == first.ext_fields
    assert (others[1].opaque, others[1].body) == (2, b"paid")


def test_half_a_surrogate_pair_is_replaced_as_the_encoder_does() -> None:
    template = SendTemplate(send(fields("Shop", "Orders", "broker-a")))
    whole = send(fields("Shop", "Orders", "broker-a", "1794793999060", "a\x01\ud800\x02"), 7, b"x")
    assert template.frame(7, 1_794_793_999_060, "a\x01\ud800\x02", b"x") == encode(whole)


def test_what_does_not_fit_into_a_frame_is_refused() -> None:
    template = SendTemplate(send(fields("Shop", "Orders", "broker-a")))
    with pytest.raises(CommandTooLarge, match="body 16777216 bytes; a frame has 16777216"):
        template.frame(1, 1_794_793_999_060, "", bytes(16 << 20))
