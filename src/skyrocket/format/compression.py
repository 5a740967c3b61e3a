"""Message bodies: zlib, lz4 and zstd as RocketMQ's clients write them.

lz4 and zstd are imported when a body needs them: few do, and a client starts faster without.
"""

import zlib
from enum import IntEnum
from typing import Any

from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags

DEFAULT_LEVEL = 5
MAX_PLAIN_BYTES = 16 << 20  # the largest frame: what no broker would have taken as it is cannot be in a message
_ZSTD_STEP = 1024  # a block of 4 bytes may give 128 KiB, so a step gives 32 MiB at most


class CompressionType(IntEnum):
    """Codes in bits 8–10 of sysFlag; 0 stands for zlib written by old clients."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3


def compression_type(sys_flag: int) -> CompressionType:
    """How the body of a record with this flag was compressed."""
    code = (sys_flag & flags.COMPRESSION_TYPE_MASK) >> flags.COMPRESSION_TYPE_SHIFT
    if code == 0:
        return CompressionType.ZLIB
    try:
        return CompressionType(code)
    except ValueError:
        raise DataError(f"compression type {code} in sysFlag {sys_flag:#x} is unknown; known are 1 to 3") from None


def compress(body: bytes, kind: CompressionType, level: int = DEFAULT_LEVEL) -> bytes:
    """The body as a client of RocketMQ would send it."""
    if kind is CompressionType.LZ4:
        import lz4.frame

        return bytes(lz4.frame.compress(body))
    if kind is CompressionType.ZSTD:
        packed: bytes = _zstandard().ZstdCompressor(level=level).compress(body)
        return packed
    return zlib.compress(body, level)


def compressed_flag(sys_flag: int, kind: CompressionType) -> int:
    """The flag of a record whose body was compressed this way."""
    return sys_flag & ~flags.COMPRESSION_TYPE_MASK | flags.COMPRESSED | kind << flags.COMPRESSION_TYPE_SHIFT


def decompress(body: bytes, kind: CompressionType, max_size: int = MAX_PLAIN_BYTES) -> bytes:
    """The plain body; raises DataError when the stream is damaged or inflates beyond `max_size`."""
    try:
        if kind is CompressionType.LZ4:
            plain = _unpack_lz4(body, max_size)
        elif kind is CompressionType.ZSTD:
            plain = _unpack_zstd(body, max_size)
        else:
            plain = _inflate(body, max_size)
    except (zlib.error, RuntimeError, EOFError) as error:
        raise DataError(f"body of {len(body)} bytes is not a {kind.name} stream: {error}") from error
    if len(plain) > max_size:
        raise DataError(f"body of {len(body)} bytes inflates beyond {max_size} bytes")
    return plain


def plain_body(body: bytes, sys_flag: int) -> bytes:
    """The body as the producer's application gave it."""
    if not sys_flag & flags.COMPRESSED:
        return body
    return decompress(body, compression_type(sys_flag))


def _inflate(body: bytes, max_size: int) -> bytes:
    inflater = zlib.decompressobj()
    plain = inflater.decompress(body, max_size + 1)
    if not inflater.eof and len(plain) <= max_size:
        raise EOFError("the stream ends early")
    return plain


def _unpack_lz4(body: bytes, max_size: int) -> bytes:
    import lz4.frame

    inflater = lz4.frame.LZ4FrameDecompressor()
    plain = bytes(inflater.decompress(body, max_length=max_size + 1))
    if not inflater.eof and len(plain) <= max_size:
        raise EOFError("the frame ends early")
    return plain


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise DataError("bodies compressed with ZSTD need zstandard: pip install 'skyrocket[zstd]'") from None
    return zstandard


def _unpack_zstd(body: bytes, max_size: int) -> bytes:
    zstandard = _zstandard()
    # zstandard's stream reader would take a frame that was cut for a complete one; only this object tells.
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    plain = bytearray()
    for start in range(0, len(body), _ZSTD_STEP):
        step = body[start : start + _ZSTD_STEP]
        while step and len(plain) <= max_size:
            if frame.eof:
                frame = decompressor.decompressobj()
            try:
                plain += frame.decompress(step)
            except zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
            step = frame.unused_data
    if not frame.eof and len(plain) <= max_size:
        raise EOFError("the frame ends early")
    return bytes(plain)
