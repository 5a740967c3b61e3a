"""`skyrocket standalone` with the certificates that tls.properties names."""

import re
import subprocess
import sys
from pathlib import Path

from skyrocket.config.sections import TlsConfig
from skyrocket.protocol.requests.offsets import GetMaxOffset
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.self_signed import self_signed
from skyrocket.remoting.tls import client_context
from tests.cluster.broker.broker_fixture import TOPIC, message

TRUSTS_ALL = TlsConfig()


def encrypted(settings: TlsConfig = TRUSTS_ALL) -> RemotingClient:
    return RemotingClient(tls=client_context(settings))


def write_certificate(folder: Path) -> tuple[Path, Path]:
    made = self_signed()
    certificate, key = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(made.certificate)
    key.write_bytes(made.private_key)
    return certificate, key


async def is_served(client: RemotingClient, address: str) -> bool:
    try:
        await client.call(address, GetMaxOffset(topic=TOPIC, queue_id=0), timeout_seconds=1.0)
    except RemotingError:
        return False
    return True


async def test_the_program_takes_certificates_from_tls_properties(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    file = tmp_path / "tls.properties"
    file.write_text(f"tls.test.mode.enable=false\ntls.server.certPath={certificate}\ntls.server.keyPath={key}\n")
    command = [sys.executable, "-m", "skyrocket", "standalone", "--namesrv-port", "0", "--listen-port", "0"]
    command += ["--broker-ip", "127.0.0.1", "--store", str(tmp_path / "store")]
    for setting in (f"tls.config.file={file}", "tls.server.mode=enforcing", "metricsExporterType=DISABLE"):
        command += ["--set", setting]

    async def ask(name_server: str, broker: str) -> None:
        trusting = TlsConfig(test_mode=False, verify_servers=True, client_trust_cert_path=str(certificate))
        async with encrypted(trusting) as client, RemotingClient() as plain:
            await client.call(broker, message(), b"x")
            assert (await client.call(name_server, GetRouteInfoByTopic(topic="TBW102"))).body
            assert not await is_served(plain, broker)

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = re.search(r"namesrv=\S+:(\d+) broker=(\S+)", process.stdout.readline())
            assert ready is not None
            await ask(f"127.0.0.1:{ready[1]}", ready[2])
        finally:
            process.kill()
