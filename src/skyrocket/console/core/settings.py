"""How a console is reached, where it keeps its file, and who may look."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from skyrocket.client.core.settings import ClientSettings
from skyrocket.console.alerts.mail import MailSettings
from skyrocket.errors import ConfigError
from skyrocket.schemas.catalog import Catalog

DEFAULT_PORT: Final = 8082


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """`client` says which cluster, and as whom everybody looks at it."""

    client: ClientSettings
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0 takes a free one
    database: Path | None = None  # rates, lag and audit; None: in memory, gone with the process
    token: str = ""  # lets in whoever has it, as the console's own account; "": one is made at the start
    anonymous_may_read: bool = True
    certificate: Path | None = None  # PEM; with its key the console speaks HTTPS
    certificate_key: Path | None = None
    behind_https: bool = False  # a proxy in front speaks HTTPS: cookies are for it alone
    host_names: tuple[str, ...] = ()  # under which browsers reach it, besides addresses and localhost
    webhook: str = ""  # is told, as JSON, when alerts begin and end
    audit_webhook: str = ""  # is told, as JSON, of each change that is asked for
    mail: MailSettings | None = None  # who is told of them by e-mail
    schemas: Catalog = field(default_factory=Catalog)  # of topics: bodies are shown by them
    max_database_bytes: int = 256 * 1024 * 1024

    def __post_init__(self) -> None:
        for option, url in (("--webhook", self.webhook), ("--audit-webhook", self.audit_webhook)):
            if url and not _is_of_the_web(url):
                raise ConfigError(f"{option} {url!r}: write http://HOST/… or https://HOST/…")

    @property
    def is_https(self) -> bool:
        """Whether browsers see HTTPS."""
        return self.certificate is not None or self.behind_https


def _is_of_the_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
