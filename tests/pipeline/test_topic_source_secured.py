"""The topic source where brokers ask for an account, or speak TLS alone."""

import asyncio
import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import Acl, Admin, ClientSettings, Message, Producer
from skyrocket.errors import ConfigError, SkyrocketError
from skyrocket.pipeline.schema import spark_schema
from skyrocket.pipeline.topic_source.batch import TopicReader
from tests.cluster.broker.access_fixture import ACCOUNTS, ADMIN_ACCOUNT, ROOT, WITH_ACCOUNTS, WITH_USERS
from tests.cluster.servers import cluster
from tests.interop.standalone import TLS_ONLY, running_standalone
from tests.loops import run_bounded
from tests.pipeline.topics import rows_of
from tests.waiting import SECONDS

TOPIC = "TopicAllowed"


def bodies(names: str, **options: str) -> list[bytes]:
    reader = TopicReader({"namesrvAddr": names, "subscribe": TOPIC, **options}, spark_schema(["body"]))
    return [row["body"] for row in rows_of(reader, reader.partitions())]


async def prepared(settings: ClientSettings) -> None:
    async with Admin(client=settings) as admin:
        await admin.create_topic(TOPIC, 1)
        async with asyncio.timeout(SECONDS):  # the broker tells its name server a moment after it has answered
            while TOPIC not in await admin.topics():
                await asyncio.sleep(0.02)
    async with Producer("Shop", client=settings) as producer:
        await producer.send(Message(TOPIC, b"secret"))


@pytest.mark.parametrize("kind", ["1.0", "2.0"])
async def test_an_account_opens_what_is_closed_to_others(tmp_path: Path, kind: str) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    config = WITH_USERS if kind == "2.0" else replace(WITH_ACCOUNTS, acl_config_path=str(tmp_path))
    account = ROOT if kind == "2.0" else ADMIN_ACCOUNT
    keys: dict[str, Any] = {"accessKey": account.access_key, "secretKey": account.secret_key}

    async with cluster(tmp_path, config=config) as given:
        acl = Acl(account.access_key, account.secret_key)
        await prepared(ClientSettings(given.names, credentials=acl))
        assert await asyncio.to_thread(bodies, given.names, **keys) == [b"secret"]
        with pytest.raises(SkyrocketError):
            await asyncio.to_thread(bodies, given.names, brokerAbsenceMs="0")
        wrong = keys | {"secretKey": "not the secret"}
        with pytest.raises(SkyrocketError):
            await asyncio.to_thread(bodies, given.names, brokerAbsenceMs="0", **wrong)


def test_tls_is_spoken_when_the_options_say_so(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with running_standalone(tmp_path, TLS_ONLY) as server:
        run_bounded(prepared(ClientSettings(server.name_server, tls=context)), 60)
        assert bodies(server.name_server, tls="true", tlsInsecureTrustAnyServer="true") == [b"secret"]
        with pytest.raises(SkyrocketError, match="the certificate is not trusted"):
            bodies(server.name_server, tls="true")
        with pytest.raises(SkyrocketError, match="no name server answered"):
            bodies(server.name_server)
        with pytest.raises(ConfigError, match=r"TLS options name files that cannot be used.*No such file"):
            bodies(server.name_server, tls="true", tlsTrustCertPath="/nowhere/ca.pem")
