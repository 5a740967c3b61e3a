"""A broker that speaks TLS: on the same port as plain clients, alone, and with certificates that change."""

import asyncio
import ssl
from pathlib import Path

import pytest

from skyrocket.config.sections import TlsConfig
from skyrocket.config.sources import with_tls_file
from skyrocket.errors import ConfigError
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.self_signed import self_signed
from skyrocket.remoting.tls import client_context
from tests.cluster.broker.broker_fixture import TOPIC, message, pull_request, running_broker

TRUSTS_ALL = TlsConfig()


def encrypted(settings: TlsConfig = TRUSTS_ALL) -> RemotingClient:
    return RemotingClient(tls=client_context(settings))


def write_certificate(folder: Path) -> tuple[Path, Path]:
    made = self_signed()
    certificate, key = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(made.certificate)
    key.write_bytes(made.private_key)
    return certificate, key


def from_files(certificate: Path, key: Path, mode: str = "enforcing") -> TlsConfig:
    return TlsConfig(mode=mode, test_mode=False, cert_path=str(certificate), key_path=str(key))


async def test_plain_and_encrypted_clients_meet_on_the_same_port(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given, encrypted() as client:
        await given.send(b"plain")
        sent = await client.call(given.address, message(), b"encrypted")
        assert sent.header.queue_offset == 1
        pulled = await client.call(given.address, pull_request())
        assert (b"plain" in bytes(pulled.body), b"encrypted" in bytes(pulled.body)) == (True, True)


@pytest.mark.parametrize(("mode", "plain", "tls"), [("enforcing", False, True), ("disabled", True, False)])
async def test_the_mode_decides_who_is_served(tmp_path: Path, mode: str, plain: bool, tls: bool) -> None:
    async with running_broker(tmp_path, tls=TlsConfig(mode=mode)) as given, encrypted() as client:
        assert await is_served(given.client, given.address) is plain
        assert await is_served(client, given.address) is tls


async def is_served(client: RemotingClient, address: str) -> bool:
    try:
        await client.call(address, GetMaxOffset(topic=TOPIC, queue_id=0), timeout_seconds=1.0)
    except RemotingError:
        return False
    return True


async def test_a_new_certificate_is_used_without_a_restart(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    async with running_broker(tmp_path, tls=from_files(certificate, key)) as given:
        first = await asyncio.to_thread(shown_certificate, given.port)
        async with encrypted() as early:
            assert await is_served(early, given.address)
            write_certificate(tmp_path)
            second = await asyncio.to_thread(shown_certificate, given.port)
            assert first != second
            assert second == ssl.PEM_cert_to_DER_cert(certificate.read_text())
            assert await is_served(early, given.address)  # connections of before go on
        key.write_bytes(b"half a key")
        assert await asyncio.to_thread(shown_certificate, given.port) == second  # what works stays


def shown_certificate(port: int) -> bytes:
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port), timeout=5))


async def test_clients_may_have_to_show_a_certificate(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    tls = TlsConfig(
        mode="enforcing",
        test_mode=False,
        cert_path=str(certificate),
        key_path=str(key),
        trust_cert_path=str(certificate),
        client_auth="require",
        verify_clients=True,
    )
    known = TlsConfig(
        test_mode=False,
        client_cert_path=str(certificate),
        client_key_path=str(key),
        client_trust_cert_path=str(certificate),
        verify_servers=True,
    )
    async with running_broker(tmp_path, tls=tls) as given, encrypted(known) as one, encrypted() as other:
        assert await is_served(one, given.address)
        assert not await is_served(other, given.address)


# ── tls.properties ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_file_of_rocketmq_is_read_and_counts_more_but_not_for_the_mode(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text("tls.test.mode.enable=false\ntls.server.certPath=/c.pem\ntls.server.mode=disabled\nother=1\n")
    given = {"tls.config.file": str(file), "tls.server.certPath": "/old.pem", "tls.server.mode": "enforcing"}
    assert with_tls_file(given) == {
        "tls.config.file": str(file),
        "tls.test.mode.enable": "false",
        "tls.server.certPath": "/c.pem",
        "tls.server.mode": "enforcing",
    }


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    assert with_tls_file({}) == {}
    with pytest.raises(ConfigError, match=r"tls\.config\.file=.*there is no such file"):
        with_tls_file({"tls.config.file": str(tmp_path / "missing")})
