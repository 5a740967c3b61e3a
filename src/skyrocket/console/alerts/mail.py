"""Alerts by e-mail: where the mail server is, what a mail says, and how it is handed over."""

import logging
import smtplib
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import formatdate, make_msgid, parseaddr
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from skyrocket.console.alerts.news import News
from skyrocket.errors import ConfigError

_logger = logging.getLogger(__name__)

_SECONDS: Final = 10.0  # for each answer of the mail server
_PORTS: Final = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_MOST_LINES: Final = 200


@dataclass(frozen=True, slots=True)
class MailServer:
    """`scheme` says how it is spoken to: smtp in the clear, smtp+starttls, smtps."""

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)
    authority: Path | None = None  # PEM, whom to believe; None: the machine's

    @classmethod
    def parse(cls, url: str, password: str = "", authority: Path | None = None) -> "MailServer":
        """From smtp+starttls://user@host:port; raises ConfigError."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"--smtp {url!r}: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ConfigError(f"--smtp {url!r}: write smtp://HOST, smtp+starttls://USER@HOST or smtps://USER@HOST:PORT")
        if parts.password is not None:
            raise ConfigError("--smtp: a password does not belong there: put it into SKYROCKET_CONSOLE_SMTP_PASSWORD")
        user = unquote(parts.username or "")
        if user and parts.scheme == "smtp":
            raise ConfigError(
                "--smtp: smtp:// would show the password to everybody: write smtp+starttls:// or smtps://"
            )
        if user and not password:
            raise ConfigError(f"--smtp: {user} needs a password, in SKYROCKET_CONSOLE_SMTP_PASSWORD")
        return cls(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], user, password, authority)

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def deliver(self, mail: EmailMessage) -> None:
        """Raises OSError when the server does not take it for anybody."""
        if self.scheme == "smtps":
            connection: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=_SECONDS, context=self._trust())
        else:
            connection = smtplib.SMTP(self.host, self.port, timeout=_SECONDS)
        with connection:
            if self.scheme == "smtp+starttls":
                connection.starttls(context=self._trust())
            if self.user:
                connection.login(self.user, self.password)
            refused = connection.send_message(mail)
        if refused:  # the others have it: a second try would tell them twice
            _logger.warning("the mail server %s does not take mail for %s", self.host, ", ".join(refused))


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Who hears of alerts, and through whom."""

    server: MailServer
    receivers: tuple[str, ...]
    sender: str

    def __post_init__(self) -> None:
        for address in (*self.receivers, self.sender):
            if "@" not in address or any(sign in address for sign in "\r\n,"):
                raise ConfigError(f"{address!r} is not a mail address")


def mails(settings: MailSettings, cluster: str) -> Callable[[Sequence[News]], None]:
    """Hands over the changes of one look as one mail."""
    return lambda news: settings.server.deliver(written(settings, cluster, news))


def written(settings: MailSettings, cluster: str, news: Sequence[News]) -> EmailMessage:
    """The mail."""
    begun = [each for each in news if each.is_firing]
    ended = [each for each in news if not each.is_firing]
    mail = EmailMessage()
    mail["Subject"] = _one_line(_subject(begun, ended))
    mail["From"] = settings.sender
    mail["To"] = ", ".join(settings.receivers)
    mail["Date"] = formatdate(news[0].at_ms / 1000)
    mail["Message-ID"] = make_msgid(domain=parseaddr(settings.sender)[1].rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    lines = [f"Cluster: {cluster}", ""]
    for title, changes in (("Began", begun), ("Ended", ended)):
        if changes:
            lines += [title, *(_line(each) for each in changes[:_MOST_LINES])]
            lines += [f"  and {len(changes) - _MOST_LINES} more"] if len(changes) > _MOST_LINES else []
            lines.append("")
    mail.set_content("\n".join(lines), cte="quoted-printable")  # not every server takes eight bits
    return mail


def _subject(begun: Sequence[News], ended: Sequence[News]) -> str:
    first = (begun or ended)[0]
    severity = "critical" if any(each.severity == "critical" for each in begun) else first.severity
    what = f"{first.kind} of {first.name}"
    more = len(begun) + len(ended) - 1
    return f"[skyrocket] {severity if begun else 'ended'}: {what}" + (f" and {more} more" if more else "")


def _line(news: News) -> str:
    at = datetime.fromtimestamp(news.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return _one_line(
        f"  {at}  {news.severity}  {news.kind} of {news.name}: {news.value:.10g}, "
        f"threshold {news.threshold:.10g} (rule {news.rule})"
    )


def _one_line(text: str) -> str:
    """Names come from the cluster: none of them makes a header or a line of its own."""
    return "".join(sign if sign.isprintable() else "?" for sign in text)
