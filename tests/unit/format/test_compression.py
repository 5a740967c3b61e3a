"""Compressed bodies: what RocketMQ's clients wrote, what we write, and what is damaged."""

import base64
import contextlib
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.compression import (
    CompressionType,
    compress,
    compressed_flag,
    compression_type,
    decompress,
    plain_body,
)
from tests.golden_store import GoldenStore, Line
from tests.unit.format.samples import damaged

KINDS = st.sampled_from(CompressionType)
BODY = b"a body worth compressing, a body worth compressing " * 20


@pytest.mark.parametrize("golden", [GoldenStore(v, "clean") for v in ("4.9.7", "5.4.0")], indirect=True, ids=str)
def test_bodies_compressed_by_rocketmq_clients_are_read(golden: GoldenStore, golden_lines: list[Line]) -> None:
    kinds = set()
    for line in golden_lines:
        if "storedBody" in line:
            stored = base64.b64decode(line["storedBody"])
            assert plain_body(stored, line["sysFlag"]) == base64.b64decode(line["body"])
            kinds.add(compression_type(line["sysFlag"]))
    assert kinds == (set(CompressionType) if golden.version == "5.4.0" else {CompressionType.ZLIB})


@given(st.binary(max_size=5000), KINDS)
def test_a_body_comes_back(body: bytes, kind: CompressionType) -> None:
    sys_flag = compressed_flag(flags.TRANSACTION_COMMIT, kind)
    assert plain_body(compress(body, kind), sys_flag) == body


@pytest.mark.parametrize("kind", CompressionType)
def test_the_flag_says_how_a_body_was_compressed(kind: CompressionType) -> None:
    before = flags.INNER_BATCH | flags.COMPRESSION_TYPE_MASK
    after = compressed_flag(before, kind)
    assert after == flags.INNER_BATCH | flags.COMPRESSED | kind << 8
    assert compression_type(after) is kind


def test_old_clients_that_set_only_the_first_bit_meant_zlib() -> None:
    assert compression_type(flags.COMPRESSED) is CompressionType.ZLIB
    assert plain_body(zlib.compress(BODY), flags.COMPRESSED) == BODY


@pytest.mark.parametrize("code", [4, 5, 6, 7])
def test_unknown_types_are_refused(code: int) -> None:
    with pytest.raises(DataError, match=f"compression type {code}"):
        plain_body(b"", flags.COMPRESSED | code << 8)


def test_a_body_without_the_compressed_bit_is_left_alone() -> None:
    assert plain_body(b"anything", CompressionType.LZ4 << 8) == b"anything"


def test_zstd_frames_without_their_content_size_are_read() -> None:
    writer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    stream = writer.compress(BODY) + writer.flush()
    assert zstandard.frame_content_size(stream) == -1
    assert decompress(stream, CompressionType.ZSTD) == BODY
    assert decompress(stream + stream, CompressionType.ZSTD) == BODY + BODY


@pytest.mark.parametrize("kind", CompressionType)
def test_a_stream_cut_at_any_byte_is_refused(kind: CompressionType) -> None:
    stream = compress(BODY, kind)
    for cut in range(len(stream)):
        with pytest.raises(DataError):
            decompress(stream[:cut], kind)


@pytest.mark.parametrize("kind", CompressionType)
def test_a_body_that_no_broker_would_have_taken_is_not_unpacked(kind: CompressionType) -> None:
    bomb = compress(bytes((16 << 20) + 1), kind)
    with pytest.raises(DataError, match="inflates beyond 16777216 bytes"):
        plain_body(bomb, compressed_flag(0, kind))


@pytest.mark.parametrize("kind", CompressionType)
def test_a_body_may_not_inflate_beyond_the_limit(kind: CompressionType) -> None:
    stream = compress(bytes(1 << 20), kind)
    assert len(decompress(stream, kind, max_size=1 << 20)) == 1 << 20
    with pytest.raises(DataError, match="inflates beyond"):
        decompress(stream, kind, max_size=(1 << 20) - 1)


@given(st.binary(max_size=200), KINDS)
def test_random_bytes_are_refused_or_read_but_nothing_else_happens(stream: bytes, kind: CompressionType) -> None:
    with contextlib.suppress(DataError):
        decompress(stream, kind, max_size=1 << 20)


@given(KINDS.flatmap(lambda kind: st.tuples(st.just(kind), damaged(compress(BODY, kind)))))
def test_damaged_streams_are_refused_or_read_but_nothing_else_happens(case: tuple[CompressionType, bytes]) -> None:
    kind, stream = case
    with contextlib.suppress(DataError):
        decompress(stream, kind, max_size=1 << 20)
