"""TLS contexts: from files that may change, or from a fresh certificate in test mode.

A server looks at its files whenever a TLS client comes, and loads them again when they have changed. What cannot be
loaded (a certificate that was replaced before its key) leaves the old context in use.
"""

import logging
import ssl
import tempfile
from enum import Enum
from pathlib import Path
from typing import TypeVar

from skyrocket.config.sections import TlsConfig
from skyrocket.errors import ConfigError
from skyrocket.remoting.self_signed import self_signed

_logger = logging.getLogger(__name__)


E = TypeVar("E", bound=Enum)


def _word(kind: type[E], text: str, key: str) -> E:
    """TLS fails closed: a word that is not understood must not open a door."""
    found = next((word for word in kind if word.value == text.strip().lower()), None)
    if found is None:
        words = ", ".join(word.value for word in kind)
        raise ConfigError(f"{key}={text!r} is not one of {words}")
    return found


class TlsMode(Enum):
    """What a server does with a client that speaks TLS, and with one that does not."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"

    @classmethod
    def parse(cls, text: str) -> "TlsMode":
        """Raises ConfigError for any other word; RocketMQ takes them all for permissive."""
        return _word(cls, text, "tls.server.mode")


class ClientAuth(Enum):
    """Whether clients show a certificate."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"

    @classmethod
    def parse(cls, text: str) -> "ClientAuth":
        """Raises ConfigError for any other word; RocketMQ takes them all for none."""
        return _word(cls, text, "tls.server.need.client.auth")


def client_tls(config: TlsConfig) -> ssl.SSLContext | None:
    """For the calls of a program that is a server too; None: they are not encrypted. Raises ConfigError."""
    if not config.client_enabled and TlsMode.parse(config.mode) is not TlsMode.ENFORCING:
        return None
    try:
        return client_context(config)
    except OSError as error:
        raise ConfigError(f"tls.client.*: {error}. Name PEM files that can be read, or set tls.enable=false") from error


class ServerTls:
    """The context for the next TLS client; None when there is none to be had. In test mode no files are looked at."""

    def __init__(self, config: TlsConfig) -> None:
        """Raises ConfigError, also when certificates are asked for without the means to check them."""
        self.mode = TlsMode.parse(config.mode)
        _client_auth(config)
        self._config = config
        paths = () if config.test_mode else (config.cert_path, config.key_path, config.trust_cert_path)
        self._files = [path for path in paths if path]  # whose change is to be noticed
        self._context: ssl.SSLContext | None = None
        self._loaded: object = None

    def context(self) -> ssl.SSLContext | None:
        """Fresh from the files when they have changed."""
        stamps = [_stamp(path) for path in self._files]
        if self._loaded != stamps:
            self._loaded = stamps
            self._load()
        return self._context

    def _load(self) -> None:
        try:
            self._context = server_context(self._config)
        except (OSError, ConfigError) as error:
            # Half of the files may have been replaced so far: the other half will change the stamps again.
            _logger.warning("TLS certificates could not be loaded, the previous ones stay reason=%s", error)
        else:
            _logger.info("TLS certificates loaded files=%s", self._files or "self-signed")


def server_context(config: TlsConfig) -> ssl.SSLContext:
    """A context as the settings say; raises OSError (ssl.SSLError is one) or ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if config.test_mode:
        _load_self_signed(context)
        return context
    if not config.cert_path or not config.key_path:
        raise ConfigError("TLS needs tls.server.certPath and tls.server.keyPath, or tls.test.mode.enable=true")
    # Without a password OpenSSL would ask at the terminal: an empty one is one, here and below.
    context.load_cert_chain(config.cert_path, config.key_path, config.key_password)
    auth = _client_auth(config)
    if auth is not ClientAuth.NONE:
        context.load_verify_locations(config.trust_cert_path)
        context.verify_mode = ssl.CERT_REQUIRED if auth is ClientAuth.REQUIRE else ssl.CERT_OPTIONAL
    return context


def client_context(config: TlsConfig) -> ssl.SSLContext:
    """A context as the settings say; in test mode every server is trusted. Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    is_verified = config.verify_servers and not config.test_mode
    context.check_hostname = is_verified and config.check_host_names
    if not is_verified:
        context.verify_mode = ssl.CERT_NONE
    elif config.client_trust_cert_path:
        context.load_verify_locations(config.client_trust_cert_path)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if not config.test_mode and config.client_cert_path:
        key_path = config.client_key_path or None
        context.load_cert_chain(config.client_cert_path, key_path, config.client_key_password)
    return context


def _client_auth(config: TlsConfig) -> ClientAuth:
    # RocketMQ takes any certificate where we refuse, which OpenSSL's Python interface cannot: it proves nothing anyway.
    auth = ClientAuth.parse(config.client_auth)
    if auth is not ClientAuth.NONE and (config.test_mode or not config.verify_clients or not config.trust_cert_path):
        raise ConfigError(
            f"tls.server.need.client.auth={auth.value} would check nobody: it needs tls.test.mode.enable=false, "
            "tls.server.authClient=true and tls.server.trustCertPath (the authority of the clients' certificates)"
        )
    return auth


def _load_self_signed(context: ssl.SSLContext) -> None:
    made = self_signed()
    with tempfile.NamedTemporaryFile() as file:  # readable for its owner only; OpenSSL takes no bytes
        file.write(made.certificate + made.private_key)
        file.flush()
        context.load_cert_chain(file.name)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
