"""Clients with an account, against brokers that ask for one."""

from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.client import (
    Acl,
    Admin,
    BrokerRefused,
    ClientSettings,
    CredentialsDiffer,
    LitePullConsumer,
    Message,
    Producer,
    PushConsumer,
    ReceivedMessage,
    SendFailed,
    WrongUse,
    blocking,
)
from skyrocket.config.sections import BrokerConfig
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.signing import SECURITY_TOKEN, is_signed_with
from tests.cluster.broker.access_fixture import ACCOUNTS, ADMIN_ACCOUNT, ROOT, WITH_ACCOUNTS, WITH_USERS
from tests.cluster.servers import Cluster, cluster
from tests.waiting import until

TOPIC, GROUP = "TopicAllowed", "CG_acl"


async def everything_works(given: Cluster, acl: Acl) -> None:
    """Send, consume with retry topic and offsets, poll, administrate."""
    got: list[bytes] = []
    settings = ClientSettings(given.names, credentials=acl)
    async with Admin(client=settings) as admin:
        await admin.create_topic(TOPIC, 2)
        await admin.create_group(GROUP)
    consumer = PushConsumer(GROUP, given.names, credentials=acl)

    @consumer.on(TOPIC)
    async def handle(message: ReceivedMessage) -> None:
        got.append(message.body)

    async with Producer("Shop", given.names, credentials=acl) as producer:
        await producer.send(Message(TOPIC, b"single", tags="TagA"))
        await producer.send_batch([Message(TOPIC, b"b1"), Message(TOPIC, b"b2")])
        await producer.send_oneway(Message(TOPIC, b"oneway"))
        async with consumer:
            await until(lambda: len(got) == 4)
    assert sorted(got) == [b"b1", b"b2", b"oneway", b"single"]
    async with LitePullConsumer("Poller", client=settings) as poller:
        await poller.assign(dict.fromkeys(await poller.message_queues(TOPIC), 0))
        found = [message.body for _ in range(2) for message in await poller.poll(5)]
        assert sorted(found) == sorted(got)


@pytest.mark.parametrize("kind", ["1.0", "2.0"])
async def test_a_client_with_an_account_may_do_what_the_account_may(tmp_path: Path, kind: str) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    config: BrokerConfig = WITH_USERS if kind == "2.0" else replace(WITH_ACCOUNTS, acl_config_path=str(tmp_path))
    account = ROOT if kind == "2.0" else ADMIN_ACCOUNT
    acl = Acl(account.access_key, account.secret_key)
    async with cluster(tmp_path, config=config) as given:
        await everything_works(given, acl)
        async with Producer("Nobody", given.names) as producer:
            with pytest.raises(SendFailed) as refused:
                await producer.send(Message(TOPIC, b"x"))
        assert refused.value.code is not None
        wrong = Acl(account.access_key, "wrong-secret")
        async with Admin(given.names, credentials=wrong) as admin:
            with pytest.raises(BrokerRefused, match="creating topic Secret was refused"):
                await admin.create_topic("Secret")


def test_every_request_is_signed_last_and_the_token_is_signed_too() -> None:
    command = RemotingCommand(310, ext_fields={"b": "Orders", "a": "Shop"}, body=b"paid")
    sign = ClientSettings(credentials=Acl("me", "secret", "token")).signer()
    assert sign is not None
    sign(command)
    assert command.ext_fields is not None
    assert command.ext_fields[SECURITY_TOKEN] == "token"
    assert is_signed_with(command, "secret")
    assert not is_signed_with(command, "other")
    command.ext_fields[SECURITY_TOKEN] = "another"
    assert not is_signed_with(command, "secret")


async def test_one_client_has_one_account() -> None:
    first = ClientSettings("127.0.0.1:1", instance_name="one", credentials=Acl("a", "secret"))
    async with Producer("Shop", client=first), Producer("Other", client=first):
        with pytest.raises(CredentialsDiffer, match="choose another instance_name for the second account"):
            await Producer("Third", client=first, credentials=Acl("b", "secret")).start()
        with pytest.raises(CredentialsDiffer):
            await Admin(client=replace(first, credentials=None)).start()


def test_wrong_credentials_are_named_without_the_secret() -> None:
    with pytest.raises(WrongUse, match="access_key is blank"):
        Acl("", "secret")
    with pytest.raises(WrongUse, match="secret_key is blank"):
        Acl("me", " ")
    with pytest.raises(WrongUse, match="credentials and sign exclude each other"):
        ClientSettings(credentials=Acl("me", "secret"), sign=lambda command: None)
    settings = ClientSettings(credentials=Acl("me", "hidden-one", "hidden-two"))
    assert "hidden" not in repr(settings)
    assert "hidden" not in repr(settings.signer())


def test_blocking_clients_take_credentials_too() -> None:
    acl = Acl("me", "secret")
    for made in (
        blocking.Producer("Shop", "a:1", credentials=acl),
        blocking.PushConsumer("Billing", "a:1", credentials=acl),
        blocking.LitePullConsumer("Report", "a:1", credentials=acl),
        blocking.Admin("a:1", credentials=acl),
        blocking.TransactionProducer("Shop", "a:1", credentials=acl),
    ):
        inner: Producer | PushConsumer | LitePullConsumer | Admin = made._inner
        assert inner._client.credentials is acl
