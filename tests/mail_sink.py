"""A mail server that keeps what it is given: SMTP with STARTTLS, SMTP over TLS, one account."""

import asyncio
import base64
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from pathlib import Path

from tests.waiting import until


@dataclass
class MailSink:
    """What came, and how it is to behave."""

    context: ssl.SSLContext | None = None  # for STARTTLS
    account: tuple[str, str] | None = None  # who has to log in
    refuse_first: int = 0  # connections that are told to come later
    strangers: frozenset[str] = frozenset()  # receivers that nobody knows
    mails: list[EmailMessage] = field(default_factory=list)
    receivers: list[str] = field(default_factory=list)
    port: int = 0
    visits: int = 0
    encrypted_logins: int = 0
    talking: int = 0

    async def visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.visits += 1
        self.talking += 1
        try:
            if self.visits <= self.refuse_first:
                writer.write(b"421 come later\r\n")
                return
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            return  # the client has left, or does not believe us: what came until then counts
        finally:
            self.talking -= 1
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        known = self.account is None
        writer.write(b"220 sink\r\n")
        while line := (await reader.readline()).decode().strip():
            word = line.split()[0].upper()
            secret = writer.get_extra_info("sslcontext") is not None
            if word == "EHLO":
                words = ["sink", *(["STARTTLS"] if self.context and not secret else [])]
                words += ["AUTH PLAIN"] if self.account and secret else []
                lines = [f"250{'-' if each != words[-1] else ' '}{each}\r\n" for each in words]
                writer.write("".join(lines).encode())
            elif word == "STARTTLS":
                assert self.context is not None
                writer.write(b"220 go on\r\n")
                await writer.start_tls(self.context)
            elif word == "AUTH":
                given = tuple(base64.b64decode(line.split()[2]).decode().split("\0")[1:])
                known = given == self.account
                self.encrypted_logins += known and secret
                writer.write(b"235 welcome\r\n" if known else b"535 wrong\r\n")
            elif word == "MAIL":
                writer.write(b"250 ok\r\n" if known else b"530 log in\r\n")
            elif word == "RCPT":
                address = line.partition("<")[2].partition(">")[0]
                if address in self.strangers:
                    writer.write(b"550 not here\r\n")
                else:
                    self.receivers.append(address)
                    writer.write(b"250 ok\r\n")
            elif word == "DATA":
                writer.write(b"354 go on\r\n")
                data = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(BytesParser(policy=default).parsebytes(data[:-3]))
                writer.write(b"250 taken\r\n")
            elif word == "QUIT":
                writer.write(b"221 bye\r\n")
                return
            else:
                writer.write(b"250 ok\r\n")


@contextlib.asynccontextmanager
async def receiving(sink: MailSink, over: ssl.SSLContext | None = None) -> AsyncIterator[MailSink]:
    """The sink on a free port; `over`: TLS from the first byte."""
    server = await asyncio.start_server(sink.visit, "127.0.0.1", 0, ssl=over)
    async with server:
        sink.port = server.sockets[0].getsockname()[1]
        yield sink
        await until(lambda: not sink.talking, "the last client says good-bye")


def certified(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's context for 127.0.0.1, and the certificate that clients believe."""
    certificate, key = folder / "mail.pem", folder / "mail.key"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=mail".split()
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
