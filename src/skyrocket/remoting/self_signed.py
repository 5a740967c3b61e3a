"""A fresh self-signed certificate for TLS's test mode.

RocketMQ starts with such a certificate unless told otherwise, so that TLS works at once and protects against listeners
only: whoever trusts it trusts anyone. The key is thrown away with the process.
"""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from typing import NamedTuple

from skyrocket.errors import ConfigError

_VALID_DAYS = 365


class Certificate(NamedTuple):
    """A certificate and its key, both PEM."""

    certificate: bytes
    private_key: bytes


def self_signed(common_name: str = "localhost") -> Certificate:
    """A new key, and a certificate for it that is valid for a year; raises ConfigError without `cryptography`."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    except ImportError:
        raise ConfigError(
            "TLS in test mode makes its own certificate and needs cryptography for it: pip install 'skyrocket[tls]', "
            "or set tls.test.mode.enable=false and name files in tls.server.certPath and tls.server.keyPath"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    names = x509.SubjectAlternativeName([x509.DNSName(common_name), x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(names, critical=False)
        .sign(key, SHA256())
    )
    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return Certificate(certificate.public_bytes(Encoding.PEM), private_key)
