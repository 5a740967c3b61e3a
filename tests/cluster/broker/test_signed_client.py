"""Our client with credentials, under both generations of access control."""

import asyncio
from pathlib import Path

import pytest

from skyrocket.client import ClientSettings, Message, Producer, PushConsumer, ReceivedMessage
from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.settings import Acl
from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.bodies.access import UserInfo
from skyrocket.protocol.requests.acl import CreateAcl, CreateUser
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.access_fixture import (
    ACCOUNTS,
    ALICE,
    ALICE_ACCOUNT,
    ALICE_RIGHTS,
    ROOT,
    WITH_USERS,
    acl_body,
)
from tests.cluster.servers import cluster


def signing(credentials: Credentials) -> ClientSettings:
    """Clients with other credentials are other instances: connections and heartbeats are shared within one."""
    return ClientSettings(
        instance_name=credentials.access_key, credentials=Acl(credentials.access_key, credentials.secret_key)
    )


async def send_and_consume(names: str, credentials: Credentials) -> None:
    came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    consumer = PushConsumer("CG_acl", names, client=signing(credentials))

    @consumer.on("TopicAllowed")
    async def take(message: ReceivedMessage) -> None:
        if not came.done():
            came.set_result(message.body)

    async with Producer("PG", names, client=signing(credentials)) as producer:
        await producer.send(Message("TopicAllowed", b"signed"))
        await asyncio.gather(*(producer.send(Message("TopicAllowed", b"signed")) for _ in range(20)))
        async with consumer:
            assert await asyncio.wait_for(came, 10) == b"signed"
        with pytest.raises(ClientError, match="TopicDenied"):
            await producer.send(Message("TopicDenied", b"signed"))


async def test_a_user_sends_and_consumes_what_is_allowed(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=WITH_USERS) as given, RemotingClient(signer=Signer(ROOT)) as root:
        address = str(given.brokers["broker-a"].identity.address)
        await root.call(address, CreateUser(username="alice"), UserInfo("alice", "secret123").encode())
        await root.call(address, CreateAcl(subject="User:alice"), acl_body("User:alice", *ALICE_RIGHTS))
        for topic in ("TopicAllowed", "TopicDenied"):
            async with Producer("PG", given.names, client=signing(ROOT)) as producer:
                await producer.send(Message(topic, b"signed"))
        await send_and_consume(given.names, ALICE)


async def test_an_account_sends_and_consumes_what_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    config = BrokerConfig(acl_enabled=True, acl_config_path=str(tmp_path))
    async with cluster(tmp_path, config=config) as given:
        await send_and_consume(given.names, ALICE_ACCOUNT)


async def test_without_credentials_the_client_hears_why_it_is_refused(tmp_path: Path) -> None:
    async with cluster(tmp_path, config=WITH_USERS) as given, Producer("PG", given.names) as producer:
        with pytest.raises(ClientError, match="username cannot be null"):
            await producer.send(Message("TopicAllowed", b"x"))
