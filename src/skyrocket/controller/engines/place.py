"""`controllerStore`: which engine, where it is, and how it is spoken to."""

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from skyrocket.config.sections import ControllerConfig
from skyrocket.errors import ConfigError

ZOOKEEPER: Final = "zookeeper"
ETCD: Final = "etcd"
FILE: Final = "file"

_PORTS: Final = {ZOOKEEPER: 2181, ETCD: 2379}
_EXAMPLES: Final = (
    "zookeeper://h1:2181,h2:2181,h3:2181/skyrocket, etcd://h1:2379,h2:2379,h3:2379/skyrocket or file:PATH"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where an engine is: its hosts with their ports, and the folder in it; of a file the path alone."""

    kind: str
    hosts: tuple[str, ...]
    path: str

    def __str__(self) -> str:
        return f"{self.kind}://{','.join(self.hosts)}{self.path}" if self.hosts else f"{self.kind}:{self.path}"


def parse_place(text: str) -> Place:
    """The value of `controllerStore`; raises ConfigError."""
    kind, colon, rest = text.strip().partition(":")
    if colon and kind == FILE and rest:
        return Place(FILE, (), rest.removeprefix("//"))
    if colon and kind in _PORTS and rest.startswith("//"):
        hosts, _, path = rest[2:].partition("/")
        named = tuple(_with_port(host.strip(), _PORTS[kind]) for host in hosts.split(",") if host.strip())
        parts = [part for part in path.split("/") if part]
        if named and parts:
            return Place(kind, named, "/" + "/".join(parts))
    raise ConfigError(f"controllerStore={text!r} is no place for decisions: write {_EXAMPLES}")


def _with_port(host: str, port: int) -> str:
    without_name = host.rpartition("]")[2] if host.startswith("[") else host
    return host if ":" in without_name else f"{host}:{port}"


def key_of(name: str) -> str:
    """A broker name as one part of a path; a dot alone would be a folder."""
    return quote(name, safe="").replace(".", "%2E")


def name_of(key: str) -> str:
    """The opposite."""
    return unquote(key)


def tls_of(config: ControllerConfig) -> ssl.SSLContext | None:
    """How to encrypt and whom to believe; None without TLS. Raises ConfigError."""
    if not config.store_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=config.store_tls_ca or None)
        if config.store_tls_cert:
            context.load_cert_chain(config.store_tls_cert, config.store_tls_key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"the certificates of controllerStoreTlsTrustCertPath, controllerStoreTlsCertPath or "
            f"controllerStoreTlsKeyPath cannot be used: {error}"
        ) from error
    return context
