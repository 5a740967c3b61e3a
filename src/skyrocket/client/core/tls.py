"""TLS of a client: whom it trusts, and what it shows of itself."""

import ssl
from pathlib import Path


def tls_context(
    authorities: str | Path | None = None,
    certificate: str | Path | None = None,
    private_key: str | Path | None = None,
    *,
    insecure_trust_any_server: bool = False,
) -> ssl.SSLContext:
    """A context that checks servers: certificates by `authorities` (PEM; None: the system's), and host names.

    `certificate` and `private_key` are shown to servers that ask for them. With `insecure_trust_any_server` nobody is
    checked: whoever can answer in a server's place reads and changes everything. Raises OSError.
    """
    context = ssl.create_default_context(cafile=authorities)
    if insecure_trust_any_server:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        # Without a password OpenSSL would ask at the terminal.
        context.load_cert_chain(certificate, private_key, password="")
    return context
