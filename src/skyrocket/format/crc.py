"""RocketMQ's checksum: CRC-32 (zlib polynomial) with the top bit cleared; also of whole records."""

from skyrocket.format.properties import NAME_END, PROPERTY_END, without_property

try:  # several times faster than zlib's for a body of 1 KiB, same polynomial
    from isal.isal_zlib import crc32 as crc32
except ImportError:  # a platform without a wheel; the result is the same
    from zlib import crc32 as crc32

_TOP_BIT_CLEARED = 0x7FFFFFFF

CRC_PROPERTY = b"__CRC32#"
CRC_PROPERTY_BYTES = len(CRC_PROPERTY) + 1 + 10 + 1


def checksum(data: bytes | bytearray | memoryview) -> int:
    """CRC of the bytes, never negative."""
    return int(crc32(data)) & _TOP_BIT_CLEARED


def reserve_record_crc(properties: bytes) -> bytes:
    """Properties ready for `record_crc_property`: an old checksum is gone, 20 bytes at the end are kept free."""
    properties = without_property(properties, CRC_PROPERTY)
    if properties and not properties.endswith(PROPERTY_END):
        properties += PROPERTY_END
    return properties + CRC_PROPERTY + NAME_END + b"0" * 10 + PROPERTY_END


def record_crc_property(record: bytes | bytearray | memoryview) -> bytes:
    """The last 20 bytes of a record whose properties were reserved: its digits stand least significant first."""
    crc = checksum(memoryview(record)[: len(record) - CRC_PROPERTY_BYTES])
    digits = f"{crc:010d}"[::-1].encode()
    return CRC_PROPERTY + NAME_END + digits + PROPERTY_END


def with_checksum(text: bytes) -> bytes:
    """A text as our own files keep it: the checksum on a line of its own, then the text."""
    return b"%d\n%s\n" % (checksum(text), text)


def checked_text(data: bytes) -> bytes | None:
    """The text behind its checksum; None when they do not match."""
    crc, _, text = data.partition(b"\n")
    text = text.rstrip(b"\n")
    return text if crc.isdigit() and int(crc) == checksum(text) else None
