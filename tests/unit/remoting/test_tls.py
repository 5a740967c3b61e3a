"""TLS and plain on one port, in all modes; certificates that change."""

import asyncio
import os
import shutil
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.client.core.tls import tls_context
from skyrocket.config.sections import TlsConfig
from skyrocket.errors import ConfigError
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import ConnectFailed, ConnectionLost
from skyrocket.remoting.peer import CloseReason
from skyrocket.remoting.router import Router
from skyrocket.remoting.self_signed import self_signed
from skyrocket.remoting.server import ServerSettings
from skyrocket.remoting.tls import (
    ClientAuth,
    ServerTls,
    TlsMode,
    client_context,
    client_tls,
    server_context,
)
from tests.unit.remoting.peers import RawPeer, request, serving
from tests.waiting import until

TRUSTS_ANYONE = client_context(TlsConfig())
ASK = GetMaxOffset(topic="T", queue_id=0)


def asked() -> Router:
    router = Router()
    router.register(ASK.code, lambda _, command: command.answer(0, None, {"offset": "5"}))
    return router


def in_mode(mode: TlsMode) -> ServerTls:
    return ServerTls(TlsConfig(mode=mode.value))


@pytest.mark.parametrize("mode", [TlsMode.PERMISSIVE, TlsMode.ENFORCING])
async def test_tls_is_spoken_with_who_speaks_it(mode: TlsMode) -> None:
    async with serving(tls=in_mode(mode)) as (_, address), RawPeer.connected(address, TRUSTS_ANYONE) as peer:
        assert (await peer.asks(request(opaque=1))).opaque == 1
        body = os.urandom(3 << 20)
        assert bytes((await peer.asks(request(opaque=2, body=body))).body) == body
        peer.send(b"".join(request(opaque=n) for n in range(200)))
        assert [answer.opaque for answer in await peer.commands(200)] == list(range(200))


async def test_plain_and_tls_share_a_port_in_permissive_mode() -> None:
    async with (
        serving(tls=in_mode(TlsMode.PERMISSIVE)) as (server, address),
        RawPeer.connected(address) as plain,
        RawPeer.connected(address, TRUSTS_ANYONE) as secret,
    ):
        assert (await plain.asks(request(opaque=1))).opaque == 1
        assert (await secret.asks(request(opaque=2))).opaque == 2
        assert len(list(server.connections())) == 2


async def test_enforcing_closes_plain_connections() -> None:
    async with serving(tls=in_mode(TlsMode.ENFORCING)) as (server, address), RawPeer.connected(address) as peer:
        peer.send(request())
        assert await peer.is_closed()
        assert server.counters.closed[CloseReason.REFUSED] == 1


@pytest.mark.parametrize("tls", [None, in_mode(TlsMode.DISABLED)])
async def test_disabled_closes_tls_connections(tls: ServerTls | None) -> None:
    async with serving(tls=tls) as (_, address):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            async with RawPeer.connected(address, TRUSTS_ANYONE):
                pass
        async with RawPeer.connected(address) as peer:
            assert (await peer.asks(request(opaque=1))).opaque == 1


async def test_tls_without_a_certificate_closes() -> None:
    tls = ServerTls(TlsConfig(test_mode=False, cert_path="/nowhere", key_path="/nowhere"))
    async with serving(tls=tls) as (_, address):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            async with RawPeer.connected(address, TRUSTS_ANYONE):
                pass
        async with RawPeer.connected(address) as peer:
            assert (await peer.asks(request(opaque=1))).opaque == 1


async def test_a_handshake_may_come_byte_by_byte() -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = TRUSTS_ANYONE.wrap_bio(incoming, outgoing)
    async with serving(tls=in_mode(TlsMode.PERMISSIVE)) as (_, address), RawPeer.connected(address) as peer:
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                for byte in outgoing.read():
                    peer.send(bytes([byte]))
                    await asyncio.sleep(0)
                incoming.write(await peer.reader.read(1 << 16))
        session.write(request(opaque=77))
        peer.send(outgoing.read())
        for _ in range(5):  # session tickets may come first
            incoming.write(await peer.reader.read(1 << 16))
            try:
                assert b'"opaque":77' in session.read()
                break
            except ssl.SSLWantReadError:
                continue
        else:
            pytest.fail("no answer")


async def test_a_handshake_that_does_not_go_on_is_cut_off() -> None:
    settings = ServerSettings(handshake_seconds=0.1)
    async with serving(settings=settings, tls=in_mode(TlsMode.PERMISSIVE)) as (server, address):
        async with RawPeer.connected(address) as peer:
            peer.send(b"\x16\x03\x01\x02\x00\x01")
            assert await peer.is_closed(2)
        assert server.counters.closed[CloseReason.SLOW] == 1
        assert server.counters.opened == 0


async def test_nonsense_instead_of_a_handshake_closes() -> None:
    async with serving(tls=in_mode(TlsMode.PERMISSIVE)) as (server, address), RawPeer.connected(address) as peer:
        peer.send(b"\x16\x03\x01\x00\x05hello" + bytes(1000))
        assert await peer.is_closed()
        await until(lambda: server.connection_count == 0)


async def test_the_client_speaks_tls() -> None:
    router = Router()
    router.register(ASK.code, lambda _, command: command.answer(0, None, {"offset": "5"}, command.body))
    async with serving(router, tls=in_mode(TlsMode.ENFORCING)) as (server, address):
        async with RemotingClient(tls=TRUSTS_ANYONE) as client:
            for _ in range(3):
                reply = await client.call(str(address), ASK, b"x" * 100_000)
                assert (reply.header.offset, len(reply.body)) == (5, 100_000)
        assert server.counters.opened == 1


async def test_a_client_with_tls_meets_a_server_without() -> None:
    async with serving() as (_, address), RemotingClient(tls=TRUSTS_ANYONE) as client:
        with pytest.raises(ConnectFailed, match=str(address)):
            await client.call(str(address), ASK)


# ── certificates from files ──────────────────────────────────────────────────────────────────────────────────────────


class Files:
    """A certificate and its key, in two files."""

    def __init__(self, folder: Path, name: str, host: str = "localhost") -> None:
        self.cert, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        self.host = host
        self.renew()

    def renew(self) -> bytes:
        """A new certificate; returns it as it is shown in a handshake."""
        made = self_signed(self.host)
        self.cert.write_bytes(made.certificate)
        self.key.write_bytes(made.private_key)
        return ssl.PEM_cert_to_DER_cert(made.certificate.decode())

    def shown(self) -> bytes:
        return ssl.PEM_cert_to_DER_cert(self.cert.read_text())


def from_files(
    files: Files, trust: Files | None = None, auth: ClientAuth = ClientAuth.NONE, password: str = ""
) -> TlsConfig:
    return TlsConfig(
        "enforcing",
        test_mode=False,
        cert_path=str(files.cert),
        key_path=str(files.key),
        key_password=password,
        trust_cert_path=str(trust.cert) if trust else "",
        client_auth=auth.value,
        verify_clients=trust is not None,
    )


def shown_to(peer: RawPeer) -> bytes:
    certificate: bytes = peer.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    return certificate


async def test_changed_certificates_are_used_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files(tmp_path, "server")
    async with serving(tls=ServerTls(from_files(files))) as (_, address):
        async with RawPeer.connected(address, TRUSTS_ANYONE) as before:
            old = files.shown()
            assert shown_to(before) == old
            new = files.renew()
            async with RawPeer.connected(address, TRUSTS_ANYONE) as after:
                assert shown_to(after) == new != old
                assert (await before.asks(request(opaque=1))).opaque == 1, "open connections go on"
        files.cert.write_text("half a certi")
        async with RawPeer.connected(address, TRUSTS_ANYONE) as still:
            assert shown_to(still) == new, "what cannot be loaded changes nothing"
            assert "could not be loaded" in caplog.text
        newest = files.renew()
        async with RawPeer.connected(address, TRUSTS_ANYONE) as again:
            assert shown_to(again) == newest


@pytest.mark.parametrize(
    ("auth", "shows", "welcome"),
    [
        (ClientAuth.NONE, None, True),
        (ClientAuth.OPTIONAL, None, True),
        (ClientAuth.OPTIONAL, "known", True),
        (ClientAuth.OPTIONAL, "stranger", False),
        (ClientAuth.REQUIRE, None, False),
        (ClientAuth.REQUIRE, "known", True),
        (ClientAuth.REQUIRE, "stranger", False),
    ],
)
async def test_clients_show_certificates(tmp_path: Path, auth: ClientAuth, shows: str | None, welcome: bool) -> None:
    server, known = Files(tmp_path, "server"), Files(tmp_path, "known")
    Files(tmp_path, "stranger")
    shown = "" if shows is None else str(tmp_path / f"{shows}.pem")
    settings = TlsConfig(
        test_mode=False,
        client_cert_path=shown,
        client_key_path=shown.replace(".pem", ".key"),
        client_trust_cert_path=str(server.cert),
        verify_servers=True,
    )
    async with serving(tls=ServerTls(from_files(server, known, auth))) as (_, address):
        answered = False
        try:
            async with RawPeer.connected(address, client_context(settings)) as peer:
                peer.send(request(opaque=1))
                answered = not await peer.is_quiet(20.0) and not peer.reader.at_eof()
        except (ssl.SSLError, ConnectionError):
            pass
        assert answered is welcome


async def test_a_client_without_a_certificate_is_told_that_the_server_wants_one(tmp_path: Path) -> None:
    server, known = Files(tmp_path, "server"), Files(tmp_path, "known")
    wants = ServerTls(from_files(server, known, ClientAuth.REQUIRE))
    async with serving(asked(), tls=wants) as (_, address):
        async with RemotingClient(tls=tls_context(server.cert)) as client:
            with pytest.raises(ConnectionLost, match=r"the server wants a certificate of the client.*--tls-cert"):
                await client.call(str(address), ASK)
        async with RemotingClient(tls=tls_context(server.cert, known.cert, known.key)) as client:
            assert (await client.call(str(address), ASK)).header.offset == 5


async def test_a_client_that_checks_refuses_a_strange_server(tmp_path: Path) -> None:
    server, other = Files(tmp_path, "server"), Files(tmp_path, "other")
    checks = client_context(TlsConfig(test_mode=False, client_trust_cert_path=str(other.cert), verify_servers=True))
    async with serving(tls=ServerTls(from_files(server))) as (_, address), RemotingClient(tls=checks) as client:
        with pytest.raises(ConnectFailed):
            await client.call(str(address), ASK)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl encrypts the key")
def test_a_key_with_a_password(tmp_path: Path) -> None:
    files = Files(tmp_path, "server")
    encrypt = f"openssl pkcs8 -topk8 -in {files.key} -out {files.key}.enc -passout pass:secret"
    subprocess.run(encrypt.split(), check=True, capture_output=True)
    Path(f"{files.key}.enc").rename(files.key)
    assert "ENCRYPTED" in files.key.read_text()
    server_context(from_files(files, password="secret"))
    for wrong in ("", "wrong"):
        with pytest.raises(ssl.SSLError):
            server_context(from_files(files, password=wrong))


def test_files_are_needed_outside_test_mode() -> None:
    with pytest.raises(ConfigError, match=r"tls\.server\.certPath"):
        server_context(TlsConfig(test_mode=False))


def test_words_of_the_settings() -> None:
    assert TlsMode.parse("Enforcing") is TlsMode.ENFORCING
    assert ClientAuth.parse("require") is ClientAuth.REQUIRE
    with pytest.raises(
        ConfigError, match=r"tls\.server\.mode='enforced' is not one of disabled, permissive, enforcing"
    ):
        TlsMode.parse("enforced")
    with pytest.raises(ConfigError, match=r"need\.client\.auth='' is not one of none, optional, require"):
        ClientAuth.parse("")


@pytest.mark.parametrize(
    "config",
    [
        TlsConfig(client_auth="require"),
        TlsConfig(client_auth="optional", test_mode=False, trust_cert_path="ca.pem"),
        TlsConfig(client_auth="require", test_mode=False, verify_clients=True),
    ],
)
def test_certificates_that_nobody_would_check_are_an_error_at_the_start(config: TlsConfig) -> None:
    with pytest.raises(ConfigError, match=r"need\.client\.auth=\w+ would check nobody.*authClient=true"):
        ServerTls(config)


async def test_a_client_checks_the_host_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files(tmp_path, "server", "broker.example")
    async with serving(asked(), tls=ServerTls(from_files(files))) as (server, address):
        async with RemotingClient(tls=tls_context(files.cert)) as client:
            assert (await client.call(str(address), ASK)).header.offset == 5, "the certificate names 127.0.0.1"
            with pytest.raises(
                ConnectFailed, match=r"the host name differs .*'\. Give the server a certificate that names localhost"
            ):
                await client.call(f"localhost:{address.port}", ASK)
        await until(lambda: server.connection_count == 0)
        assert "TLS failed peer=" in caplog.text


async def test_servers_check_the_host_names_of_other_servers_unless_a_setting_says_no(tmp_path: Path) -> None:
    files = Files(tmp_path, "server", "broker.example")
    config = TlsConfig(
        client_enabled=True, test_mode=False, client_trust_cert_path=str(files.cert), verify_servers=True
    )
    async with serving(asked(), tls=ServerTls(from_files(files))) as (_, address):
        async with RemotingClient(tls=client_tls(config)) as client:
            assert (await client.call(str(address), ASK)).header.offset == 5, "the certificate names 127.0.0.1"
            with pytest.raises(ConnectFailed, match="the host name differs"):
                await client.call(f"localhost:{address.port}", ASK)
        async with RemotingClient(tls=client_tls(replace(config, check_host_names=False))) as client:
            assert (await client.call(f"localhost:{address.port}", ASK)).header.offset == 5


async def test_a_client_checks_the_certificate(tmp_path: Path) -> None:
    files = Files(tmp_path, "server")
    async with serving(asked(), tls=ServerTls(from_files(files))) as (_, address):
        async with RemotingClient(tls=tls_context()) as client:
            with pytest.raises(ConnectFailed, match=r"the certificate is not trusted: self.signed .*--tls-ca"):
                await client.call(str(address), ASK)
        async with RemotingClient(tls=tls_context(insecure_trust_any_server=True)) as careless:
            assert (await careless.call(f"localhost:{address.port}", ASK)).header.offset == 5


async def test_both_sides_say_that_one_of_them_speaks_no_tls(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(asked(), tls=in_mode(TlsMode.ENFORCING)) as (_, address), RemotingClient() as plain:
        with pytest.raises(ConnectionLost, match="the server wants TLS"):
            await plain.call(str(address), ASK)
        assert "tls.server.mode is enforcing" in caplog.text
    async with serving(asked()) as (_, address), RemotingClient(tls=TRUSTS_ANYONE) as client:
        with pytest.raises(ConnectFailed, match="the server does not speak TLS"):
            await client.call(str(address), ASK)
        assert "it speaks TLS, and tls.server.mode is disabled" in caplog.text


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl looks at the certificate")
def test_a_self_signed_certificate_is_sound(tmp_path: Path) -> None:
    files = Files(tmp_path, "server")
    text = subprocess.run(
        ["openssl", "verify", "-CAfile", files.cert, "-x509_strict", files.cert], capture_output=True, text=True
    )
    looked_at = subprocess.run(
        ["openssl", "x509", "-in", files.cert, "-noout", "-text"], capture_output=True, text=True
    )
    assert "CN = localhost" in looked_at.stdout, text.stdout + text.stderr
    assert "IP Address:127.0.0.1" in looked_at.stdout
    assert "ecdsa-with-SHA256" in looked_at.stdout
    assert self_signed() != self_signed()


def test_without_cryptography_test_mode_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ConfigError, match=r"pip install 'skyrocket\[tls\]', or set tls.test.mode.enable=false"):
        server_context(TlsConfig())
    assert ServerTls(TlsConfig()).context() is None  # a server without it runs, and turns TLS clients away
    assert "skyrocket[tls]" in caplog.text
