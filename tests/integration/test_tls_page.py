"""docs/guides/tls.md as it stands there: its commands make certificates with which its settings serve."""

import re
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from skyrocket.client import ClientError, ClientSettings, Message, Producer
from tests import ROOT
from tests.cluster.command_line import at
from tests.integration.program import Standalone

PAGE = (ROOT / "docs" / "guides" / "tls.md").read_text()
ADDRESS_OF_THE_PAGE = "10.0.0.5"
FOLDER_OF_THE_PAGE = "/etc/skyrocket"


def block(language: str) -> str:
    """The only one of that language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert isinstance(found, str)
    return found


async def test_the_commands_and_settings_of_the_page_serve_a_client_that_trusts_nobody_else(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: the commands of the page were not run")
    commands, settings = block("bash") + block("sh"), block("properties")
    assert ADDRESS_OF_THE_PAGE in commands
    assert FOLDER_OF_THE_PAGE in settings
    commands = commands.replace(ADDRESS_OF_THE_PAGE, "127.0.0.1")
    done = subprocess.run(["sh", "-e", "-c", commands], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    conf = tmp_path / "broker.conf"
    conf.write_text(settings.replace(FOLDER_OF_THE_PAGE, str(tmp_path)))
    with Standalone(tmp_path, arguments=("-c", str(conf))) as started:
        trusted = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        async with Producer("Shop", client=ClientSettings(started.name_server, tls=trusted)) as producer:
            await producer.send(Message("Orders", b"1"))
        with pytest.raises(ClientError, match="maybe the server wants TLS"):
            async with Producer("Other", client=ClientSettings(started.name_server, instance_name="plain")) as plain:
                await plain.send(Message("Orders", b"2"))


def test_a_server_that_wants_certificates_takes_those_of_the_page_from_the_terminal(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: the commands of the page were not run")
    commands = (block("bash") + block("sh")).replace(ADDRESS_OF_THE_PAGE, "127.0.0.1")
    subprocess.run(["sh", "-e", "-c", commands], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    wants = {
        "tls.server.need.client.auth": "require",
        "tls.server.authClient": "true",
        "tls.server.trustCertPath": tmp_path / "ca.pem",
        "tls.client.certPath": tmp_path / "client.pem",
        "tls.client.keyPath": tmp_path / "client.key",
    }
    conf = tmp_path / "broker.conf"
    settings = block("properties").replace(FOLDER_OF_THE_PAGE, str(tmp_path))
    conf.write_text(settings + "".join(f"{key}={value}\n" for key, value in wants.items()))
    with Standalone(tmp_path, arguments=("-c", str(conf))) as started:
        send = ("produce", "Orders", "1", "--tls", "--tls-ca", str(tmp_path / "ca.pem"))
        refused = at(started.name_server, *send)
        assert refused.code == 1
        assert "the server wants a certificate of the client. Show one (--tls-cert" in refused.errors
        shown = ("--tls-cert", str(tmp_path / "client.pem"), "--tls-key", str(tmp_path / "client.key"))
        done = at(started.name_server, *send, *shown)
        assert done.code == 0, done.errors
