"""Alerts by e-mail, at a mail server that really listens."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skyrocket.console.alerts.mail import MailServer, MailSettings, mails, written
from skyrocket.console.alerts.news import News
from skyrocket.console.telling.outbox import MOST_WAITING, TRIES, Outbox
from skyrocket.errors import ConfigError
from skyrocket.testing.clock import FakeClock
from tests.mail_sink import MailSink, certified, receiving
from tests.waiting import until

BEGAN = News(1_760_000_000_000, "group-lag", "lag", "billing", "warning", 120_000, 100_000, is_firing=True)
ENDED = News(1_760_000_060_000, "group-lag", "lag", "billing", "warning", 10, 100_000, is_firing=False)


class Impatient(FakeClock):
    """Pauses that are noted and not waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


def to(server: MailServer, *receivers: str) -> MailSettings:
    return MailSettings(server, receivers or ("ops@example.org",), "skyrocket@example.org")


@contextlib.asynccontextmanager
async def outbox_to(server: MailServer, *receivers: str) -> AsyncIterator[tuple[Outbox[News], Impatient]]:
    clock = Impatient()
    outbox = Outbox("ops", mails(to(server, *receivers), "127.0.0.1:9876"), clock)
    running = asyncio.create_task(outbox.run())
    try:
        yield outbox, clock
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_each_change_is_one_mail_that_says_what_and_where() -> None:
    async with receiving(MailSink()) as sink, outbox_to(MailServer("smtp", "127.0.0.1", sink.port)) as (outbox, _):
        outbox.put([BEGAN])
        outbox.put([ENDED])
        await until(lambda: len(sink.mails) == 2)
    assert [mail["Subject"] for mail in sink.mails] == [
        "[skyrocket] warning: lag of billing",
        "[skyrocket] ended: lag of billing",
    ]
    assert sink.mails[0]["To"] == "ops@example.org"
    assert "lag of billing: 120000, threshold 100000 (rule group-lag)" in sink.mails[0].get_content()
    assert "Cluster: 127.0.0.1:9876" in sink.mails[0].get_content()


async def test_a_mail_server_that_refuses_for_a_while_gets_the_mail_once_when_it_is_well() -> None:
    async with (
        receiving(MailSink(refuse_first=3)) as sink,
        outbox_to(MailServer("smtp", "127.0.0.1", sink.port)) as (outbox, clock),
    ):
        outbox.put([BEGAN])
        await until(lambda: sink.mails)
    assert len(sink.mails) == 1
    assert clock.pauses == [5.0, 15.0, 45.0]


async def test_a_mail_that_nobody_takes_is_given_up_and_the_next_one_goes() -> None:
    sink = MailSink(refuse_first=TRIES)
    async with receiving(sink), outbox_to(MailServer("smtp", "127.0.0.1", sink.port)) as (outbox, _):
        outbox.put([BEGAN])
        outbox.put([ENDED])
        await until(lambda: sink.mails)
    assert [mail["Subject"] for mail in sink.mails] == ["[skyrocket] ended: lag of billing"]


async def test_one_receiver_whom_nobody_knows_does_not_keep_the_mail_from_the_others() -> None:
    sink = MailSink(strangers=frozenset({"gone@example.org"}))
    server = "ops@example.org", "gone@example.org"
    async with receiving(sink), outbox_to(MailServer("smtp", "127.0.0.1", sink.port), *server) as (outbox, clock):
        outbox.put([BEGAN])
        outbox.put([ENDED])
        await until(lambda: len(sink.mails) == 2)
    assert sink.receivers == ["ops@example.org"] * 2
    assert clock.pauses == []


@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
async def test_an_account_is_shown_to_an_encrypted_and_certified_server_alone(scheme: str, tmp_path: Path) -> None:
    context, authority = certified(tmp_path)
    over, starting = (context, None) if scheme == "smtps" else (None, context)
    async with receiving(MailSink(starting, account=("me", "secret")), over) as sink:
        url = f"{scheme}://me@127.0.0.1:{sink.port}"
        trusting = mails(to(MailServer.parse(url, "secret", authority)), "here")
        await asyncio.to_thread(trusting, [BEGAN])
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(mails(to(MailServer.parse(url, "secret")), "here"), [BEGAN])
        wrong = mails(to(MailServer.parse(url, "guess", authority)), "here")
        with pytest.raises(OSError, match="535"):
            await asyncio.to_thread(wrong, [BEGAN])
    assert len(sink.mails) == 1
    assert sink.encrypted_logins == 1


def test_when_too_many_wait_the_oldest_go() -> None:
    told: list[str] = []
    outbox: Outbox[News] = Outbox("ops", lambda news: told.append(news[0].name), Impatient())
    for number in range(MOST_WAITING + 5):
        outbox.put([News(0, "r", "lag", str(number), "warning", 1, 1, is_firing=True)])

    async def run_for_a_while() -> None:
        running = asyncio.create_task(outbox.run())
        await until(lambda: len(told) == MOST_WAITING)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(run_for_a_while())
    assert told == [str(number) for number in range(5, MOST_WAITING + 5)]


def test_no_name_of_the_cluster_makes_a_header_or_a_line_of_its_own() -> None:
    evil = News(0, "r", "lag", "a\r\nBcc: all@example.org", "warning", 1, 1, is_firing=True)
    mail = written(to(MailServer("smtp", "h", 25)), "here", [evil])
    assert mail["Bcc"] is None
    assert mail["Subject"] == "[skyrocket] warning: lag of a??Bcc: all@example.org"
    assert "\nBcc" not in mail.get_content()


def test_large_numbers_are_written_out_and_a_sender_may_have_a_name() -> None:
    many = News(0, "r", "lag", "Übung", "warning", 1_234_567, 1_000_000, is_firing=True)
    mail = written(
        MailSettings(MailServer("smtp", "h", 25), ("ops@example.org",), "Wächter <sky@example.org>"), "here", [many]
    )
    assert "lag of Übung: 1234567, threshold 1000000 (rule r)" in mail.get_content()
    assert mail["Message-ID"].endswith("@example.org>")
    assert mail["Subject"] == "[skyrocket] warning: lag of Übung"
    assert mail.as_bytes().isascii()


@pytest.mark.parametrize(
    ("url", "password", "why"),
    [
        ("mail.example.org", "", "write smtp://HOST"),
        ("smtp://mail:port", "", "Port"),
        ("smtps://me:secret@mail", "", "does not belong there"),
        ("smtp://me@mail", "secret", "would show the password"),
        ("smtps://me@mail", "", "needs a password"),
    ],
)
def test_a_mail_server_that_is_given_wrongly_is_refused_with_the_reason(url: str, password: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        MailServer.parse(url, password)


def test_receivers_must_be_addresses() -> None:
    with pytest.raises(ConfigError, match="not a mail address"):
        to(MailServer("smtp", "h", 25), "ops")


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(MailServer.parse("smtps://me@mail", "secret"))
