"""Every captured frame decodes, and is written again as it was."""

import json
from collections import Counter

import pytest

from skyrocket.protocol import frames
from skyrocket.protocol.codes import LanguageCode, SerializeType
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.frames import FrameReader
from skyrocket.protocol.java_order import FROM_HEADER, FROM_SINGLE_FIELD, java_map_order
from tests.golden_wire import CapturedFrame, all_frames, capture, capture_lines, capture_names


def decoded(frame: CapturedFrame) -> RemotingCommand:
    (command,) = FrameReader().receive(frame.raw)
    return command


def as_text(value: object) -> str:
    """An ext value as a command has it."""
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("name", capture_names())
def test_every_frame_decodes_to_what_the_recorder_read(name: str) -> None:
    for frame in capture(name):
        command, header = decoded(frame), frame.header
        assert command.code == int(header["code"]), frame
        assert command.opaque == int(header["opaque"]), frame
        assert command.flag == header.get("flag", 0), frame
        assert command.version == header.get("version", 0), frame
        assert command.remark == (header.get("remark") or (header.get("remark") if frame.raw[4] == 0 else None)), frame
        assert bytes(command.body) == frame.body, frame
        given = header.get("extFields")
        if frame.raw[4]:
            given = {key: value for key, value in (given or {}).items() if value} or None
        assert command.ext_fields == (given and {key: as_text(value) for key, value in given.items()}), frame
        language = header.get("language", "JAVA")
        expected = LanguageCode(language) if isinstance(language, int) else LanguageCode.__members__.get(language)
        assert command.language is expected, frame


@pytest.mark.parametrize("name", capture_names())
def test_every_frame_is_written_again_as_it_was(name: str) -> None:
    for frame in capture(name):
        again = frames.encode(decoded(frame))
        if frame.is_by_java and not frame.duplicates:
            # RocketMQ up to 5.3 (fastjson 1) writes control characters with capital digits; once in the captures.
            assert again == frame.raw.replace(rb"\u001A", rb"\u001a"), frame
        elif frame.raw[4] == SerializeType.JSON:
            assert header_of(again) | {"serializeTypeCurrentRPC": "JSON"} == expected_header(frame), frame
        else:
            assert FrameReader().receive(again) == [decoded(frame)], frame


def header_of(raw: bytes) -> dict[str, object]:
    size = int.from_bytes(raw[5:8])
    header: dict[str, object] = json.loads(raw[8 : 8 + size])
    return header


def expected_header(frame: CapturedFrame) -> dict[str, object]:
    """The header of a peer that is not Java, in the types that we write; unknown languages are not kept."""
    header: dict[str, object] = {"flag": 0, "version": 0, "language": "JAVA", **frame.header}
    header |= {
        "serializeTypeCurrentRPC": "JSON",
        "code": int(frame.header["code"]),
        "opaque": int(frame.header["opaque"]),
    }
    if isinstance(header["language"], int):
        header["language"] = LanguageCode(header["language"]).name
    if header["language"] not in LanguageCode.__members__:
        del header["language"]
    given = frame.header.get("extFields")
    if given is not None:
        header["extFields"] = {key: as_text(value) for key, value in given.items()}
    return {key: value for key, value in header.items() if value is not None}


def test_ext_fields_of_java_peers_stand_in_the_order_of_its_hash_map() -> None:
    seen: Counter[int] = Counter()
    for frame in all_frames():
        keys = list(frame.header.get("extFields") or ())
        if not frame.is_by_java or len(keys) < 2 or frame.raw[4]:
            continue
        # Keys of one bucket stand as they were put in, which the keys themselves do not tell.
        fitting = [size for size in (FROM_HEADER, FROM_SINGLE_FIELD) if java_map_order(keys, size) == keys]
        assert fitting, (str(frame), keys)
        seen[fitting[0]] += 1
    assert seen[FROM_HEADER] > 1000
    assert seen[FROM_SINGLE_FIELD] > 300


def test_whole_connections_decode_from_one_stream() -> None:
    for name in capture_names():
        streams: dict[tuple[int, str], list[CapturedFrame]] = {}
        for frame in capture(name):
            streams.setdefault((frame.connection, frame.peer), []).append(frame)
        for stream in streams.values():
            commands = FrameReader().receive(b"".join(frame.raw for frame in stream))
            assert commands == [decoded(frame) for frame in stream]


def test_the_captures_are_all_there() -> None:
    assert len(capture_names()) == 162
    assert sum(1 for _ in all_frames()) == 6318
    assert sum("event" in line for name in capture_names() for _, line in capture_lines(name)) > 600
