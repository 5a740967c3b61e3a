"""TLS contexts: from files that may change, or from a fresh certificate in test mode.

A server looks at its files whenever a TLS client comes, and loads them again when they have changed. What cannot be
loaded (a certificate that was replaced before its key) leaves the old context in use.
"""

import logging
import ssl
import tempfile
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ServerTlsSettings:
    """`tls.server.*` of RocketMQ. In test mode the files are not looked at."""

    mode: TlsMode = TlsMode.PERMISSIVE
    test_mode: bool = True
    cert_path: str | None = None
    key_path: str | None = None
    key_password: str | None = None
    trust_cert_path: str | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    verify_clients: bool = False  # RocketMQ: tls.server.authClient

    def files(self) -> list[str]:
        """Those whose change is to be noticed."""
        paths = (self.cert_path, self.key_path, self.trust_cert_path)
        return [] if self.test_mode else [path for path in paths if path]


def server_settings(config: TlsConfig) -> ServerTlsSettings:
    """What a server was told; raises ConfigError when it asks for certificates without the means to check them."""
    auth = ClientAuth.parse(config.client_auth)
    if auth is not ClientAuth.NONE and (config.test_mode or not config.verify_clients or not config.trust_cert_path):
        raise ConfigError(
            f"tls.server.need.client.auth={auth.value} would check nobody: it needs tls.test.mode.enable=false, "
            "tls.server.authClient=true and tls.server.trustCertPath (the authority of the clients' certificates)"
        )
    return ServerTlsSettings(
        mode=TlsMode.parse(config.mode),
        test_mode=config.test_mode,
        cert_path=config.cert_path or None,
        key_path=config.key_path or None,
        key_password=config.key_password or None,
        trust_cert_path=config.trust_cert_path or None,
        client_auth=auth,
        verify_clients=config.verify_clients,
    )


@dataclass(frozen=True, slots=True)
class ClientTlsSettings:
    """`tls.client.*` of RocketMQ. In test mode every server is trusted."""

    test_mode: bool = True
    cert_path: str | None = None
    key_path: str | None = None
    key_password: str | None = None
    trust_cert_path: str | None = None
    verify_server: bool = False  # RocketMQ: tls.client.authServer
    check_host_names: bool = True  # of servers that are verified


def client_tls(config: TlsConfig) -> ssl.SSLContext | None:
    """For the calls of a program that is a server too; None: they are not encrypted. Raises ConfigError."""
    if not config.client_enabled and TlsMode.parse(config.mode) is not TlsMode.ENFORCING:
        return None
    settings = ClientTlsSettings(
        test_mode=config.test_mode,
        cert_path=config.client_cert_path or None,
        key_path=config.client_key_path or None,
        key_password=config.client_key_password or None,
        trust_cert_path=config.client_trust_cert_path or None,
        verify_server=config.verify_servers,
        check_host_names=config.check_host_names,
    )
    try:
        return client_context(settings)
    except OSError as error:
        raise ConfigError(f"tls.client.*: {error}. Name PEM files that can be read, or set tls.enable=false") from error


class ServerTls:
    """The context for the next TLS client; None when there is none to be had."""

    def __init__(self, settings: ServerTlsSettings) -> None:
        self.mode = settings.mode
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._loaded: object = None

    def context(self) -> ssl.SSLContext | None:
        """Fresh from the files when they have changed."""
        stamps = [_stamp(path) for path in self._settings.files()]
        if self._loaded != stamps:
            self._loaded = stamps
            self._load()
        return self._context

    def _load(self) -> None:
        try:
            self._context = server_context(self._settings)
        except (OSError, ConfigError) as error:
            # Half of the files may have been replaced so far: the other half will change the stamps again.
            _logger.warning("TLS certificates could not be loaded, the previous ones stay reason=%s", error)
        else:
            _logger.info("TLS certificates loaded files=%s", self._settings.files() or "self-signed")


def server_context(settings: ServerTlsSettings) -> ssl.SSLContext:
    """A context as the settings say; raises OSError (ssl.SSLError is one) or ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if settings.test_mode:
        _load_self_signed(context)
        return context
    if not settings.cert_path or not settings.key_path:
        raise ConfigError("TLS needs tls.server.certPath and tls.server.keyPath, or tls.test.mode.enable=true")
    context.load_cert_chain(settings.cert_path, settings.key_path, _password(settings.key_password))
    if settings.client_auth is not ClientAuth.NONE:
        _ask_for_certificates(context, settings)
    return context


def client_context(settings: ClientTlsSettings) -> ssl.SSLContext:
    """A context as the settings say; raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    is_verified = settings.verify_server and not settings.test_mode
    context.check_hostname = is_verified and settings.check_host_names
    if not is_verified:
        context.verify_mode = ssl.CERT_NONE
    elif settings.trust_cert_path:
        context.load_verify_locations(settings.trust_cert_path)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if not settings.test_mode and settings.cert_path:
        context.load_cert_chain(settings.cert_path, settings.key_path, _password(settings.key_password))
    return context


def _ask_for_certificates(context: ssl.SSLContext, settings: ServerTlsSettings) -> None:
    # RocketMQ takes any certificate without these, which OpenSSL's Python interface cannot: it proves nothing anyway.
    if not settings.verify_clients or not settings.trust_cert_path:
        raise ConfigError("certificates of clients need tls.server.authClient=true and tls.server.trustCertPath")
    context.load_verify_locations(settings.trust_cert_path)
    required = settings.client_auth is ClientAuth.REQUIRE
    context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_OPTIONAL


def _load_self_signed(context: ssl.SSLContext) -> None:
    made = self_signed()
    with tempfile.NamedTemporaryFile() as file:  # readable for its owner only; OpenSSL takes no bytes
        file.write(made.certificate + made.private_key)
        file.flush()
        context.load_cert_chain(file.name)


def _password(password: str | None) -> str:
    # Without one OpenSSL would ask at the terminal.
    return password or ""


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
