"""`haTlsEnable`: the log travels by TLS, to brokers that show a certificate of the set."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.config.sections import BrokerRole, TlsConfig
from skyrocket.errors import ConfigError
from skyrocket.protocol.ha import REPORT
from skyrocket.remoting.addresses import Address
from skyrocket.remoting.self_signed import self_signed
from tests.cluster.broker.broker_fixture import SMALL, RunningBroker, running_broker
from tests.cluster.namesrv import name_server_fixture
from tests.cluster.replication.broker_pair import CONFIG, Pair, log_of, replication
from tests.waiting import until

ENCRYPTED = replace(SMALL, ha_tls=True)


def of_one_set(folder: Path) -> TlsConfig:
    """One certificate for all of a set, which is also the authority that all are checked by."""
    made = self_signed()
    certificate, key = folder / "set.pem", folder / "set.key"
    certificate.write_bytes(made.certificate)
    key.write_bytes(made.private_key)
    return TlsConfig(
        test_mode=False,
        cert_path=str(certificate),
        key_path=str(key),
        trust_cert_path=str(certificate),
        client_auth="require",
        verify_clients=True,
        client_cert_path=str(certificate),
        client_key_path=str(key),
        client_trust_cert_path=str(certificate),
        verify_servers=True,
    )


def ha_address(master: RunningBroker) -> Address:
    return Address.parse(master.broker.parts.broker_set.ha_address)


async def test_a_slave_with_the_sets_certificate_gets_the_log_by_tls_and_others_get_nothing(tmp_path: Path) -> None:
    tls = of_one_set(tmp_path)
    async with name_server_fixture.running(tmp_path) as (_, names):
        config = replace(CONFIG, name_servers=str(names))
        slave_store = replace(ENCRYPTED, broker_role=BrokerRole.SLAVE)
        async with (
            running_broker(tmp_path / "master", config, ENCRYPTED, tls=tls) as master,
            running_broker(tmp_path / "slave", replace(config, broker_id=1), slave_store, tls=tls) as slave,
        ):
            await master.send(b"secret")
            await Pair(master, slave).follows()
            assert log_of(slave.broker.store) == log_of(master.broker.store)
            assert await bytes_heard(ha_address(master), None) == b""
            stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            stranger.check_hostname = False
            stranger.verify_mode = ssl.CERT_NONE
            assert await bytes_heard(ha_address(master), stranger) == b""
            side = replication(master.broker).master
            assert side is not None
            await until(lambda: len(list(side.slaves)) == 1)


async def bytes_heard(address: Address, tls: ssl.SSLContext | None) -> bytes:
    """What a master says to somebody who asks for its log from the beginning."""
    try:
        reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
        writer.write(REPORT.pack(0))
        try:
            return await reader.read(1)
        finally:
            writer.close()
    except (OSError, ssl.SSLError):
        return b""


async def test_without_a_certificate_the_master_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="haTlsEnable=true needs a certificate"):
        async with running_broker(tmp_path, store=ENCRYPTED, tls=TlsConfig(test_mode=False)):
            pass
