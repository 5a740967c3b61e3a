"""A fresh self-signed certificate for TLS's test mode, made with nothing but integers and hashes.

RocketMQ starts with such a certificate unless told otherwise, so that TLS works at once and protects against listeners
only: whoever trusts it trusts anyone. The key is thrown away with the process. Not for any other use: the arithmetic
takes a time that depends on the key.

    P-256: y² = x³ − 3x + b (mod p), a base point G of order n; the public key is d·G
    ECDSA: r = (k·G).x mod n, s = (hash + r·d) / k mod n
"""

import base64
import secrets
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_CURVE = "06082a8648ce3d030107"  # prime256v1
_EC_PUBLIC_KEY = "06072a8648ce3d0201"
_ECDSA_WITH_SHA256 = "06082a8648ce3d040302"
_COMMON_NAME = "0603550403"
_SUBJECT_ALT_NAME = "0603551d11"
_VALID_DAYS = 365

Point = tuple[int, int]


class Certificate(NamedTuple):
    """A certificate and its key, both PEM."""

    certificate: bytes
    private_key: bytes


def self_signed(common_name: str = "localhost") -> Certificate:
    """A new key, and a certificate for it that is valid for a year."""
    secret = secrets.randbelow(_N - 1) + 1
    public = _times(secret, _G)
    assert public is not None
    body = _certificate_body(common_name, _point_bytes(public), datetime.now(UTC))
    signature = _sign(body, secret)
    algorithm = _sequence(bytes.fromhex(_ECDSA_WITH_SHA256))
    certificate = _sequence(body, algorithm, _bit_string(signature))
    return Certificate(_pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", _private_key(secret, public)))


# ── the curve ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plus(one: Point | None, other: Point | None) -> Point | None:
    """The sum of two points; None is the point at infinity."""
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % _P == 0:
        return None
    slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, _P) if one == other else (y2 - y1) * pow(x2 - x1, -1, _P)
    x = (slope * slope - x1 - x2) % _P
    return x, (slope * (x1 - x) - y1) % _P


def _times(factor: int, point: Point) -> Point | None:
    product: Point | None = None
    doubled: Point | None = point
    while factor:
        if factor & 1:
            product = _plus(product, doubled)
        doubled = _plus(doubled, doubled)
        factor >>= 1
    return product


def _sign(message: bytes, secret: int) -> bytes:
    digest = int.from_bytes(sha256(message).digest(), "big")
    while True:
        nonce = secrets.randbelow(_N - 1) + 1
        point = _times(nonce, _G)
        assert point is not None
        r = point[0] % _N
        s = pow(nonce, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return _sequence(_integer(r), _integer(s))


def _point_bytes(point: Point) -> bytes:
    return b"\x04" + point[0].to_bytes(32, "big") + point[1].to_bytes(32, "big")


# ── DER: tag, length, content ────────────────────────────────────────────────────────────────────────────────────────


def _der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _sequence(*contents: bytes) -> bytes:
    return _der(0x30, *contents)


def _integer(number: int) -> bytes:
    return _der(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _bit_string(content: bytes) -> bytes:
    return _der(0x03, b"\x00", content)


def _certificate_body(common_name: str, public_key: bytes, now: datetime) -> bytes:
    name = _sequence(_der(0x31, _sequence(bytes.fromhex(_COMMON_NAME), _der(0x0C, common_name.encode()))))
    alternative_names = _sequence(_der(0x82, common_name.encode()), _der(0x87, bytes((127, 0, 0, 1))))
    extension = _sequence(bytes.fromhex(_SUBJECT_ALT_NAME), _der(0x04, alternative_names))
    return _sequence(
        _der(0xA0, _integer(2)),  # version 3
        _integer(secrets.randbits(120)),  # serial number
        _sequence(bytes.fromhex(_ECDSA_WITH_SHA256)),
        name,  # issuer
        _sequence(_time(now - timedelta(days=1)), _time(now + timedelta(days=_VALID_DAYS))),
        name,  # subject
        _sequence(_sequence(bytes.fromhex(_EC_PUBLIC_KEY + _CURVE)), _bit_string(public_key)),
        _der(0xA3, _sequence(extension)),
    )


def _time(moment: datetime) -> bytes:
    return _der(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def _private_key(secret: int, public: Point) -> bytes:
    return _sequence(
        _integer(1),
        _der(0x04, secret.to_bytes(32, "big")),
        _der(0xA0, bytes.fromhex(_CURVE)),
        _der(0xA1, _bit_string(_point_bytes(public))),
    )


def _pem(label: str, der: bytes) -> bytes:
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label.encode(), base64.encodebytes(der), label.encode())
