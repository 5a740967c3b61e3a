"""RocketMQ's clients and mqadmin under both generations of access control, on our server."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import ClientSettings, Message, Producer, PushConsumer, ReceivedMessage
from skyrocket.client.core.errors import ClientError
from skyrocket.client.core.settings import Acl
from tests.interop.apache import Apache
from tests.interop.apache_admin import admin_outputs
from tests.interop.rocketmq_broker import running_broker
from tests.interop.samples import SMALL_FILES
from tests.interop.standalone import Standalone, running_standalone

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

CLIENT_TIMEOUT_S = 120

USERS = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "initAuthenticationUser": '{"username":"rocketmq","password":"12345678"}',
    "innerClientAuthenticationCredentials": '{"accessKey":"inner","secretKey":"inner-secret"}',
}
ROOT = ("rocketmq", "12345678")
ALICE = ("alice", "secret123")

ACCOUNTS = """
accounts:
- accessKey: admin12345
  secretKey: secret12345
  admin: true
- accessKey: alice12345
  secretKey: secret12345
  topicPerms: [TopicAllowed=PUB|SUB]
  groupPerms: [CG_acl=SUB]
"""
ADMIN_ACCOUNT = ("admin12345", "secret12345")
ALICE_ACCOUNT = ("alice12345", "secret12345")

WANTED: dict[str, Any] = {
    "send": ["TopicAllowed", "TopicDenied"],
    "consume": [["CG_acl", "TopicAllowed", True], ["CG_denied", "TopicAllowed", False]],
}
# Of who may do everything: no consumer is expected to be refused, so all are waited for.
EVERYTHING = {**WANTED, "consume": [[group, topic, True] for group, topic, _ in WANTED["consume"]]}


def client(apache: Apache, server: Standalone, *credentials: str, wanted: dict[str, Any] = WANTED) -> dict[str, Any]:
    """What becomes of sends and consumers of this user."""
    done = apache.run(
        "AclClient", server.name_server, *credentials, stdin=json.dumps(wanted), timeout_s=CLIENT_TIMEOUT_S
    )
    assert done.exit_code == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def mqadmin(apache: Apache, credentials: tuple[str, str] | None, *commands: str) -> list[str]:
    return admin_outputs(apache, list(commands), account=credentials)


def columns(text: str) -> list[list[str]]:
    """The lines of a table without its head."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip() and line[0] != "#"]


def test_users_of_acl_2_can_do_what_mqadmin_allowed_them(
    tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    apache = apache_of_version("5.4.0")
    with running_standalone(tmp_path, USERS) as server:
        n, b = server.name_server, server.broker
        made = mqadmin(
            apache,
            ROOT,
            f"updateTopic -n {n} -b {b} -t TopicAllowed -r 2 -w 2",
            f"updateTopic -n {n} -b {b} -t TopicDenied -r 2 -w 2",
            f"createUser -n {n} -b {b} -u alice -p secret123 -t Normal",
            f"createAcl -n {n} -b {b} -s User:alice -r Topic:TopicAllowed,Group:CG_acl -a Pub,Sub -d Allow",
        )
        assert all("success" in text for text in made), made
        expected_topics(apache_of_version, server, ALICE, "User:alice has no permission to access Topic:TopicDenied")
        refused = client(apache, server)["send"]
        assert "username cannot be null." in refused["TopicAllowed"]
        assert "check signature failed." in client(apache, server, "alice", "wrong-secret")["send"]["TopicAllowed"]
        everything = client(apache, server, *ROOT, wanted=EVERYTHING)
        assert everything["send"]["TopicDenied"].startswith("sent")
        assert everything["consume"]["CG_denied TopicAllowed"] != []


def expected_topics(
    apache_of_version: Callable[[str], Apache], server: Standalone, credentials: tuple[str, str], refusal: str
) -> None:
    for version in ("5.4.0", "4.9.7"):
        result = client(apache_of_version(version), server, *credentials)
        assert result["send"]["TopicAllowed"].startswith("sent, found"), result
        assert refusal in result["send"]["TopicDenied"], result
        assert "to TopicAllowed" in result["consume"]["CG_acl TopicAllowed"], result
        assert [body for body in result["consume"]["CG_denied TopicAllowed"] if body.startswith("to ")] == [], result


def test_mqadmin_manages_users_and_policies(tmp_path: Path, apache_of_version: Callable[[str], Apache]) -> None:
    apache = apache_of_version("5.4.0")
    with running_standalone(tmp_path, USERS) as server:
        n, b = server.name_server, server.broker
        at = f"-n {n} -b {b}"
        printed = mqadmin(
            apache,
            ROOT,
            f"createUser {at} -u alice -p secret123",
            f"createUser {at} -u alice -p secret123",
            f"updateUser {at} -u alice -p secret456",
            f"updateUser {at} -u alice -s disable",
            f"getUser {at} -u alice",
            f"listUser {at}",
            f"createAcl {at} -s User:alice -r Topic:Orders,Group:Shop -a Pub,Sub -i 127.0.0.1 -d Allow",
            f"updateAcl {at} -s User:alice -r Topic:Orders -a Pub -d Deny",
            f"getAcl {at} -s User:alice",
            f"deleteAcl {at} -s User:alice -r Topic:Orders",
            f"listAcl {at}",
            f"deleteAcl {at} -s User:alice",
            f"listAcl {at}",
            f"deleteUser {at} -u alice",
            f"listUser {at} -f alice",
            f"createUser -n {n} -c DefaultCluster -u bob -p secret789 -t Super",
            f"getUser {at} -u bob",
        )
        assert "create user to" in printed[0]
        assert "The user is existed" in printed[1]
        assert columns(printed[4]) == [["alice", "secret456", "Normal", "disable"]]
        assert [line[0] for line in columns(printed[5])] == ["alice", "inner", "rocketmq"]
        assert columns(printed[8]) == [
            ["User:alice", "Custom", "Topic:Orders", "[Pub]", "null", "Deny"],
            ["User:alice", "Custom", "Group:Shop", "[Pub, Sub]", "[127.0.0.1]", "Allow"],
        ]
        assert [line[2] for line in columns(printed[10])] == ["Group:Shop"]
        assert columns(printed[12]) == []
        assert columns(printed[14]) == []
        assert columns(printed[16]) == [["bob", "secret789", "Super", "enable"]]
        (unsigned,) = mqadmin(apache, None, f"getBrokerConfig {at}")
        assert "username cannot be null." in unsigned
        (config,) = mqadmin(apache, ROOT, f"getBrokerConfig {at}")
        assert re.search(r"initAuthenticationUser\s+=\s+\*{6}", config), config
        assert "12345678" not in config
        assert "inner-secret" not in config


def test_accounts_of_acl_1_can_do_what_their_file_says(
    tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    with running_standalone(tmp_path, {"aclEnable": "true", "aclConfigPath": str(tmp_path)}) as server:
        n, b = server.name_server, server.broker
        made = mqadmin(
            apache_of_version("4.9.7"),
            ADMIN_ACCOUNT,
            f"updateTopic -n {n} -b {b} -t TopicAllowed -r 2 -w 2",
            f"updateTopic -n {n} -b {b} -t TopicDenied -r 2 -w 2",
        )
        assert all("success" in text for text in made), made
        refusal = "AclException: No default permission for topic:TopicDenied"
        expected_topics(apache_of_version, server, ALICE_ACCOUNT, refusal)
        apache = apache_of_version("4.9.7")
        assert "No accessKey is configured" in client(apache, server)["send"]["TopicAllowed"]
        wrong = client(apache, server, "alice12345", "wrong-secret")["send"]["TopicAllowed"]
        assert "Check signature failed for accessKey=alice12345" in wrong


def test_mqadmin_4_9_manages_accounts(tmp_path: Path, apache_of_version: Callable[[str], Apache]) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    with running_standalone(tmp_path, {"aclEnable": "true", "aclConfigPath": str(tmp_path)}) as server:
        n, b = server.name_server, server.broker
        at = f"-n {n} -b {b}"
        printed = mqadmin(
            apache_of_version("4.9.7"),
            ADMIN_ACCOUNT,
            f"updateAclConfig {at} -a bob1234567 -s bobs-secret -t TopicA=PUB,TopicB=DENY -i DENY -u SUB -m false",
            f"getAclConfig {at}",
            f"clusterAclConfigVersion {at}",
            f"updateGlobalWhiteAddr {at} -g 10.0.0.1,10.0.0.2",
            f"deleteAclConfig {at} -a bob1234567",
            f"getAclConfig {at}",
        )
        assert "success" in printed[0], printed[0]
        assert "bob1234567" in printed[1], printed[1]
        assert "TopicA=PUB" in printed[1]
        assert "DefaultCluster" in printed[2]
        assert "success" in printed[3]
        assert "success" in printed[4]
        assert "bob1234567" not in printed[5]
        assert "10.0.0.2" in printed[5]
        assert "10.0.0.2" in (tmp_path / "plain_acl.yml").read_text()
        (refused,) = mqadmin(apache_of_version("4.9.7"), ALICE_ACCOUNT, f"getAclConfig {at}")
        assert "Need admin permission for request code=54" in refused


# ── our client, their broker ─────────────────────────────────────────────────────────────────────────────────────────

_AUTH = "org.apache.rocketmq.auth"
APACHE_USERS = {
    **USERS,
    "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
}


async def our_client(names: str, *credentials: str) -> bytes:
    """What our consumer gets of what our producer sent."""
    came: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    shared = ClientSettings(instance_name=credentials[1], credentials=Acl(*credentials))
    consumer = PushConsumer("CG_acl", names, client=shared)

    @consumer.on("TopicAllowed")
    async def take(message: ReceivedMessage) -> None:
        if not came.done():
            came.set_result(message.body)

    async with Producer("PG", names, client=shared) as producer:
        await _send_when_routed(producer)
        async with consumer:
            return await asyncio.wait_for(came, 30)


async def _send_when_routed(producer: Producer) -> None:
    for attempt in range(30):
        try:
            await producer.send(Message("TopicAllowed", b"signed by us"))
        except ClientError:
            if attempt == 29:
                raise
            await asyncio.sleep(1)
        else:
            return


async def test_rocketmq_believes_the_signatures_of_our_client(
    tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    with running_broker(apache_of_version("5.4.0"), tmp_path / "store", SMALL_FILES, APACHE_USERS) as server:
        assert await our_client(server.name_server, *ROOT) == b"signed by us"

        async def with_wrong_secret() -> None:
            shared = ClientSettings(instance_name="wrong", credentials=Acl("rocketmq", "wrong-secret"))
            async with Producer("PG", server.name_server, client=shared) as producer:
                await producer.send(Message("TopicAllowed", b"x"))

        with pytest.raises(ClientError, match=r"check signature failed\."):
            await with_wrong_secret()
