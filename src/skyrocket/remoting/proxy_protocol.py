"""The PROXY protocol: a load balancer tells, before all else, whose connection it passes on.

v1  one line of text     PROXY TCP4 <source> <destination> <source port> <destination port>\\r\\n, or PROXY UNKNOWN …
v2  binary               12 signature   1 version and command   1 family   2 length   addresses, then fields we skip

Neither can be the beginning of a frame or of TLS: the first byte alone tells.
"""

import socket
from struct import Struct
from typing import NamedTuple

from skyrocket.protocol.errors import ProtocolError
from skyrocket.remoting.addresses import Address

_V1_SIGNATURE = b"PROXY "
_V1_MAX = 107
_V2_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_V2_FIXED = Struct(">12sBBH")
_V2_LOCAL, _V2_PROXY = 0x20, 0x21
_V2_ADDRESSES = {0x1: Struct(">4s4sHH"), 0x2: Struct(">16s16sHH")}
_V2_FAMILIES = {0x1: socket.AF_INET, 0x2: socket.AF_INET6}


class ProxyHeader(NamedTuple):
    """What the balancer said; the addresses are None when it speaks for itself."""

    size: int
    source: Address | None = None
    destination: Address | None = None


def begins(first_byte: int) -> bool:
    """Whether this can be the first byte of a PROXY header."""
    return first_byte == _V1_SIGNATURE[0] or first_byte == _V2_SIGNATURE[0]


def parse(data: bytes) -> ProxyHeader | None:
    """The header at the beginning; None as long as it is not complete; raises ProtocolError."""
    if data[: len(_V1_SIGNATURE)] == _V1_SIGNATURE[: len(data)]:
        return _parse_text(data)
    if data[: len(_V2_SIGNATURE)] == _V2_SIGNATURE[: len(data)]:
        return _parse_binary(data)
    raise ProtocolError("neither a frame nor a PROXY header")


def _parse_text(data: bytes) -> ProxyHeader | None:
    line, end, _ = data[:_V1_MAX].partition(b"\r\n")
    if not end:
        if len(data) >= _V1_MAX:
            raise ProtocolError("a PROXY header without end")
        return None
    size = len(line) + len(end)
    words = line.decode("latin-1").split(" ")
    if words[1] == "UNKNOWN":
        return ProxyHeader(size)
    if words[1] not in ("TCP4", "TCP6") or len(words) != 6:
        raise ProtocolError("a PROXY header of unknown form")
    family = socket.AF_INET if words[1] == "TCP4" else socket.AF_INET6
    return ProxyHeader(size, _address(family, words[2], words[4]), _address(family, words[3], words[5]))


def _parse_binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _V2_FIXED.size:
        return None
    _, command, family, length = _V2_FIXED.unpack_from(data)
    if command not in (_V2_LOCAL, _V2_PROXY):
        raise ProtocolError("a PROXY header of unknown version")
    size = _V2_FIXED.size + length
    if len(data) < size:
        return None
    layout = _V2_ADDRESSES.get(family >> 4)
    if command == _V2_LOCAL or layout is None:
        return ProxyHeader(size)
    if length < layout.size:
        raise ProtocolError("a PROXY header that is too short for its addresses")
    source, destination, source_port, destination_port = layout.unpack_from(data, _V2_FIXED.size)
    kind = _V2_FAMILIES[family >> 4]
    return ProxyHeader(
        size,
        Address(socket.inet_ntop(kind, source), source_port),
        Address(socket.inet_ntop(kind, destination), destination_port),
    )


def _address(family: int, host: str, port: str) -> Address:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):  # ValueError: of a zero byte
        raise ProtocolError("a PROXY header with an address that is none") from None
    if not port.isdecimal() or int(port) > 65535:
        raise ProtocolError("a PROXY header with a port that is none")
    return Address(host, int(port))
