"""Brokers that let in only those who may, and people who ask them."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from skyrocket.broker.broker import Broker
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.access import AclInfo, Policy, PolicyEntry, UserInfo
from skyrocket.protocol.bodies.assignment import AssignmentQuery, RequestMode
from skyrocket.protocol.bodies.batch_ack import BatchAck, BatchAckEntry
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupConfigList
from skyrocket.protocol.bodies.locks import QueueLocks
from skyrocket.protocol.bodies.subscription import ClientConfigCheck, SubscriptionData
from skyrocket.protocol.bodies.topics import TopicConfigList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.acl import CreateAcl, CreateUser
from skyrocket.protocol.signing import Credentials, Signer
from skyrocket.remoting.client import RemotingClient
from tests.cluster.broker.broker_fixture import RunningBroker, heartbeat, running_broker

ROOT = Credentials("rocketmq", "12345678")
ALICE = Credentials("alice", "secret123")

WITH_USERS = BrokerConfig(
    authentication_enabled=True,
    authorization_enabled=True,
    init_authentication_user='{"username":"rocketmq","password":"12345678"}',
)
WITH_ACCOUNTS = BrokerConfig(acl_enabled=True)

ADMIN_ACCOUNT = Credentials("admin12345", "secret12345")
ALICE_ACCOUNT = Credentials("alice12345", "secret12345")
ACCOUNTS = """
accounts:
- accessKey: admin12345
  secretKey: secret12345
  admin: true
- accessKey: alice12345
  secretKey: secret12345
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - TopicAllowed=PUB|SUB
  groupPerms:
  - CG_acl=SUB
"""


class Person:
    """Asks a broker, and signs unless without credentials."""

    def __init__(self, broker: RunningBroker, credentials: Credentials | None) -> None:
        self._broker = broker
        self.client = RemotingClient(signer=None if credentials is None else Signer(credentials))

    async def ask(
        self, code: int, fields: dict[str, str] | None = None, body: bytes = b"", *, seconds: float = 3.0
    ) -> RemotingCommand:
        command = RemotingCommand(code, ext_fields=None if fields is None else dict(fields), body=body)
        return await self.client.invoke(self._broker.address, command, seconds)

    async def verdict(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> tuple[int, str]:
        answer = await self.ask(code, fields, body)
        return answer.code, answer.remark or ""

    async def call(self, request: Any, body: bytes = b"", **options: Any) -> Any:
        return await self.client.call(self._broker.address, request, body, **options)


@contextlib.asynccontextmanager
async def asking(broker: RunningBroker, credentials: Credentials | None = None) -> AsyncIterator[Person]:
    person = Person(broker, credentials)
    async with person.client:
        yield person


@contextlib.asynccontextmanager
async def broker_with_users(folder: Path, config: BrokerConfig = WITH_USERS) -> AsyncIterator[RunningBroker]:
    """The super user is rocketmq."""
    async with running_broker(folder, config) as broker:
        yield broker


@contextlib.asynccontextmanager
async def broker_with_accounts(
    folder: Path, accounts: str = ACCOUNTS, config: BrokerConfig = WITH_ACCOUNTS
) -> AsyncIterator[RunningBroker]:
    (folder / "plain_acl.yml").write_text(accounts)
    async with running_broker(folder, replace(config, acl_config_path=str(folder))) as broker:
        yield broker


async def make_alice(root: Person, *entries: PolicyEntry) -> None:
    """A user with rights, in the way of mqadmin."""
    await root.call(CreateUser(username="alice"), UserInfo("alice", "secret123", "Normal").encode())
    if entries:
        await root.call(CreateAcl(subject="User:alice"), acl_body("User:alice", *entries))


def acl_body(subject: str, *entries: PolicyEntry, policy_type: str | None = None) -> bytes:
    return AclInfo(subject, (Policy(policy_type, entries),)).encode()


def allow(resource: str, *actions: str, decision: str = "Allow", sources: tuple[str, ...] | None = None) -> PolicyEntry:
    return PolicyEntry(resource, actions, sources, decision)


ALICE_RIGHTS = (allow("Topic:TopicAllowed", "Pub", "Sub"), allow("Group:CG_acl", "Pub", "Sub"))


NAMES = {
    **dict.fromkeys(("topic", "b", "originTopic"), "TopicDenied"),
    **dict.fromkeys(("group", "consumerGroup", "groupName", "destGroup", "srcGroup", "compareGroup"), "CG_denied"),
    "a": "PG",
    "producerGroup": "PG",
    "queueId": "0",
    "offset": "0",
    "username": "rocketmq",
    "subject": "User:alice",
    "topicList": "TopicDenied",
    "filterGroups": "CG_denied",
    "clientID": "one",
}


def bodies() -> dict[int, bytes]:
    """Of those requests that name things in their bodies."""
    topic, group = TopicConfig("TopicDenied"), SubscriptionGroup("CG_denied")
    return {
        RequestCode.HEART_BEAT: heartbeat("one", "CG_denied", "TopicDenied"),
        RequestCode.CHECK_CLIENT_CONFIG: ClientConfigCheck("one", "CG", SubscriptionData("TopicDenied")).encode(),
        RequestCode.LOCK_BATCH_MQ: QueueLocks("CG_denied", "one").encode(),
        RequestCode.UNLOCK_BATCH_MQ: QueueLocks("CG_denied", "one").encode(),
        RequestCode.BATCH_ACK_MESSAGE: BatchAck("b", (BatchAckEntry("CG_denied", "TopicDenied"),)).encode(),
        RequestCode.QUERY_ASSIGNMENT: AssignmentQuery("TopicDenied", "CG_denied").encode(),
        RequestCode.SET_MESSAGE_REQUEST_MODE: RequestMode("TopicDenied", "CG_denied").encode(),
        RequestCode.UPDATE_AND_CREATE_TOPIC_LIST: TopicConfigList((topic,)).encode(),
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: SUBSCRIPTION_GROUP.encode(group),
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: GroupConfigList((group,)).encode(),
    }


def served_codes(broker: Broker) -> list[int]:
    codes = [route.code for route in broker.parts.router.routes() if route.code is not None]
    assert len(codes) > 70
    return [*codes, 60_000]  # and one that nobody knows
