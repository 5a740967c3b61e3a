"""Nothing is read or written without the right to do it, on any port, by any request."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.access.feature import AccessFeature
from skyrocket.broker.access.user_file import FILE_NAME
from skyrocket.broker.broker import Broker
from skyrocket.cli.program.settings import Sections
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError
from skyrocket.format.record import decode_records
from skyrocket.protocol.bodies.access import ACLS, USERS, AclInfo, UserInfo
from skyrocket.protocol.bodies.heartbeat import Heartbeat, ProducerData
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission
from skyrocket.protocol.requests.acl import (
    CreateAcl,
    CreateUser,
    DeleteAcl,
    DeleteUser,
    GetAcl,
    GetUser,
    ListAcl,
    ListUser,
    UpdateUser,
)
from skyrocket.protocol.requests.admin_broker import GetBrokerConfig, UpdateBrokerConfig
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.protocol.requests.query import ViewMessageById
from skyrocket.protocol.signing import Credentials, is_signed_with
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from tests.cluster.broker.access_fixture import (
    ALICE,
    ALICE_RIGHTS,
    NAMES,
    ROOT,
    WITH_USERS,
    Person,
    acl_body,
    allow,
    asking,
    bodies,
    broker_with_users,
    make_alice,
    served_codes,
)
from tests.cluster.broker.broker_fixture import PULL_CODES, SMALL, heartbeat, message, pull_request, running_broker
from tests.cluster.namesrv.name_server_fixture import running as running_name_server
from tests.ports import free_port

SECRETS = ("12345678", "secret123")

# Everything that a request may name belongs to somebody else.


# ── every request ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_request_without_credentials_is_refused(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as running, asking(running) as nobody:
        for code in served_codes(running.broker):
            for fields in (None, NAMES, {**NAMES, "AccessKey": "", "Signature": ""}):
                assert await nobody.verdict(code, fields) == (16, "username cannot be null."), code


async def test_every_request_with_a_wrong_name_or_secret_is_refused(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, Credentials("rocketmq", "wrong-secret")) as impostor,
        asking(running, Credentials("nobody", "12345678")) as stranger,
    ):
        for code in served_codes(running.broker):
            assert await impostor.verdict(code, NAMES) == (16, "check signature failed."), code
            assert await stranger.verdict(code, NAMES) == (16, "User:nobody is not found."), code


async def test_every_request_of_a_user_without_rights_is_refused(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root)
        await running_send(root, "TopicDenied")
        before = (dict(running.broker.tables.topics.topics), running.broker.store.max_offset("TopicDenied", 0))
        for code in served_codes(running.broker):
            code_16, remark = await alice.verdict(code, NAMES, bodies().get(code, b""))
            assert code_16 == 16, (code, remark)
            assert remark.startswith("User:alice has no permission to access"), (code, remark)
            assert remark.endswith("from 127.0.0.1, no matched policies."), (code, remark)
        assert before == (dict(running.broker.tables.topics.topics), running.broker.store.max_offset("TopicDenied", 0))


async def test_a_signature_is_enough_for_these_and_no_others(tmp_path: Path) -> None:
    """As with RocketMQ: what names neither topic nor consumer group, and replies."""
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
        asking(running) as nobody,
    ):
        await make_alice(root)
        only_producing = Heartbeat("one", (ProducerData("PG"),), ()).encode()
        unnamed = {key: value for key, value in NAMES.items() if key not in ("topic", "b", "consumerGroup")}
        reply = {**unnamed, "topic": "DefaultCluster_REPLY_TOPIC", "b": "DefaultCluster_REPLY_TOPIC"}
        for code, fields, body in (
            (RequestCode.HEART_BEAT, unnamed, only_producing),
            (RequestCode.UNREGISTER_CLIENT, unnamed, b""),
            (RequestCode.END_TRANSACTION, unnamed, b""),
            (RequestCode.SEND_REPLY_MESSAGE, reply, b""),
            (RequestCode.SEND_REPLY_MESSAGE_V2, reply, b""),
        ):
            assert (await alice.verdict(code, fields, body))[0] != 16, code
            assert await nobody.verdict(code, fields, body) == (16, "username cannot be null."), code


async def test_a_body_that_cannot_be_read_is_refused_before_anybody_looks_at_it(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, *ALICE_RIGHTS)
        for code in bodies():
            assert await alice.verdict(code, {}, b"{nonsense") == (16, "parse authorization context error.")


async def test_the_vip_port_asks_as_well(tmp_path: Path) -> None:
    port = free_port()
    async with running_broker(tmp_path, WITH_USERS, listen_port=port) as running, RemotingClient() as client:
        answer = await client.invoke(f"127.0.0.1:{port - 2}", RemotingCommand(RequestCode.GET_BROKER_CONFIG))
        assert (answer.code, answer.remark) == (16, "username cannot be null.")
        assert running.port == port


async def test_a_name_server_asks_nobody(tmp_path: Path) -> None:
    """RocketMQ's do not either: whoever reaches one can read routes and register brokers."""
    async with running_name_server(tmp_path) as (_, address), RemotingClient() as client:
        command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
        assert (await client.invoke(str(address), command)).code == 0


# ── with rights ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def running_send(person: Person, topic: str, body: bytes = b"x") -> str:
    return str((await person.call(message(topic), body)).header.msg_id)


async def test_a_user_may_do_what_the_policies_say_and_nothing_more(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, *ALICE_RIGHTS)
        await running_send(alice, "TopicAllowed", b"mine")
        await running_send(root, "TopicDenied", b"not yours")
        with pytest.raises(NoPermission, match=r"^User:alice has no permission to access Topic:TopicDenied from"):
            await running_send(alice, "TopicDenied")
        assert running.broker.store.max_offset("TopicDenied", 0) == 1
        await alice.call(HeartBeat(), heartbeat("one", "CG_acl", "TopicAllowed"))
        pulled = await alice.call(_pull("CG_acl", "TopicAllowed"), accepted=PULL_CODES)
        assert [record.body for record in decode_records(pulled.body)] == [b"mine"]
        for group, topic in (("CG_acl", "TopicDenied"), ("CG_denied", "TopicAllowed"), ("CG_acl", "%RETRY%CG_denied")):
            with pytest.raises(NoPermission):
                await alice.call(_pull(group, topic), accepted=PULL_CODES)
            with pytest.raises(NoPermission):
                await alice.call(HeartBeat(), heartbeat("one", group, topic))
        await alice.call(_pull("CG_acl", "%RETRY%CG_acl"), accepted={*PULL_CODES, 17})


async def test_a_message_is_shown_only_to_those_who_may_read_its_own_topic(tmp_path: Path) -> None:
    """Whatever topic the request names; and nobody can have it sent to his group instead."""
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, *ALICE_RIGHTS, allow("Topic:TopicAllowed", "Pub", "Sub", "Get"))
        message_id = await running_send(root, "TopicDenied", b"not yours")
        end = running.broker.store.max_offset("TopicDenied", 0)
        await running_send(root, "TopicAllowed", b"yours")
        offset = len(bytes(running.broker.store.by_physical_offset(0) or b""))
        assert end == 1
        shown = await alice.call(ViewMessageById(offset=offset, topic="TopicAllowed"))
        assert [record.body for record in decode_records(shown.body)] == [b"yours"]
        for topic in ("TopicAllowed", None):
            with pytest.raises(NoPermission, match="Topic:TopicDenied"):
                await alice.call(ViewMessageById(offset=0, topic=topic))
        for zero in ("0", "+0", "-0", "00", "\uff10"):  # in whatever way it is written
            code, remark = await alice.verdict(
                RequestCode.VIEW_MESSAGE_BY_ID, {"offset": zero, "topic": "TopicAllowed"}
            )
            assert (code, "Topic:TopicDenied" in remark) == (16, True), zero
        back = {"group": "CG_acl", "offset": "+0", "delayLevel": "0"}
        given = {"consumerGroup": "CG_acl", "clientId": "mine", "msgId": message_id}
        for code, fields in (
            (RequestCode.CONSUMER_SEND_MSG_BACK, back),
            (RequestCode.CONSUME_MESSAGE_DIRECTLY, given),
            (RequestCode.CONSUME_MESSAGE_DIRECTLY, {**given, "topic": "TopicAllowed"}),
        ):
            refusal = await alice.verdict(code, fields)
            assert refusal[0] == 16
            assert "Topic:TopicDenied" in refusal[1]


async def test_a_transaction_is_ended_only_by_those_who_may_send_to_its_topic(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, *ALICE_RIGHTS)
        for person, topic in ((root, "TopicDenied"), (alice, "TopicAllowed")):
            half = replace(message(topic, properties="TRAN_MSG\1true\2PGROUP\1Producers\2"), sys_flag=4)
            sent = (await person.call(half, b"half")).header
            end = {
                "producerGroup": "Producers",
                "tranStateTableOffset": str(sent.queue_offset),
                "commitLogOffset": str(int(sent.msg_id[-16:], 16)),
                "commitOrRollback": "8",
            }
            for claimed in ({}, {"topic": "TopicAllowed"}):
                code, remark = await alice.verdict(RequestCode.END_TRANSACTION, {**end, **claimed})
                assert (code == 16) == (person is root), remark
                if code == 16:
                    assert "Topic:TopicDenied" in remark
        assert running.broker.store.max_offset("TopicDenied", 0) == 0
        assert running.broker.store.max_offset("TopicAllowed", 0) == 1


async def test_where_a_request_comes_from_can_matter(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, allow("Topic:TopicAllowed", "Pub", sources=("10.0.0.0/8",)))
        with pytest.raises(NoPermission, match="no matched policies"):
            await running_send(alice, "TopicAllowed")
        here = allow("Topic:TopicAllowed", "Pub", sources=("127.0.0.0/8", "::1"))
        await root.call(CreateAcl(subject="User:alice"), acl_body("User:alice", here))
        await running_send(alice, "TopicAllowed")


async def test_a_change_of_rights_counts_from_the_next_request_on(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, *ALICE_RIGHTS)
        await running_send(alice, "TopicAllowed")
        denied = acl_body("User:alice", allow("Topic:TopicAllowed", "Pub", decision="Deny"))
        await root.call(CreateAcl(subject="User:alice"), denied)
        with pytest.raises(NoPermission, match="the decision is deny"):
            await running_send(alice, "TopicAllowed")
        await root.call(DeleteAcl(subject="User:alice", resource="Topic:TopicAllowed"))
        with pytest.raises(NoPermission, match="no matched policies"):
            await running_send(alice, "TopicAllowed")
        await root.call(CreateAcl(subject="User:alice"), acl_body("User:alice", allow("Topic:T*", "All")))
        await running_send(alice, "TopicAllowed")
        await root.call(UpdateUser(username="alice"), UserInfo(password="another1").encode())
        with pytest.raises(NoPermission, match="check signature failed"):
            await running_send(alice, "TopicAllowed")
        await root.call(UpdateUser(username="alice"), UserInfo(password="secret123").encode())
        await running_send(alice, "TopicAllowed")
        await root.call(UpdateUser(username="alice"), UserInfo(user_status="disable").encode())
        with pytest.raises(NoPermission, match="User:alice is disabled"):
            await running_send(alice, "TopicAllowed")
        await root.call(DeleteUser(username="alice"))
        with pytest.raises(NoPermission, match="User:alice is not found"):
            await running_send(alice, "TopicAllowed")


# ── management ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_users_and_policies_outlive_the_broker_and_are_private(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as running, asking(running, ROOT) as root:
        await make_alice(root, *ALICE_RIGHTS)
        await root.call(UpdateUser(username="alice"), UserInfo(user_status="disable").encode())
    file = tmp_path / "store" / "config" / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.with_name(FILE_NAME + ".bak").stat().st_mode & 0o777 == 0o600
    again = replace(WITH_USERS, init_authentication_user='{"username":"rocketmq","password":"not taken: it exists"}')
    async with broker_with_users(tmp_path, again) as running, asking(running, ROOT) as root:
        users = USERS.decode((await root.call(ListUser())).body)
        assert [(user.username, user.user_status) for user in users] == [("alice", "disable"), ("rocketmq", "enable")]
        (acl,) = ACLS.decode((await root.call(ListAcl())).body)
        assert acl.policies is not None
        assert acl.policies[0].entries == ALICE_RIGHTS


async def test_wrong_requests_about_users_are_refused_in_rocketmqs_words(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as running, asking(running, ROOT) as root:
        await make_alice(root, *ALICE_RIGHTS)

        async def verdict(code: int, body: bytes = b"", **fields: str) -> tuple[int, str]:
            return await root.verdict(code, fields, body)

        nobody = UserInfo("bob", "", "Normal")
        wrong = {
            "The resource is null.": allow("Queue:x", "Pub"),
            "The actions is empty.": allow("Topic:x"),
            "The actions can not be Any.": allow("Topic:x", "Any"),
            "The source ip is invalid.": allow("Topic:x", "Pub", sources=("10.0.0.300",)),
            "The source ip is empty.": allow("Topic:x", "Pub", sources=(" ",)),
            "The decision is null or illegal.": allow("Topic:x", "Pub", decision="Perhaps"),
        }
        assert await verdict(3001, username="") == (29, "The username is blank")
        assert await verdict(3001, nobody.encode(), username="bob") == (16, "password can not be blank")
        assert await verdict(3002, nobody.encode(), username="bob") == (16, "The user is not exist")
        assert await verdict(3003, username=" ") == (16, "username can not be blank")
        assert await verdict(3004, username=" ") == (29, "The username is blank")
        assert await verdict(3006, subject="User:alice") == (1, "The body of acl is null")
        assert await verdict(3006, acl_body("Role:x", ALICE_RIGHTS[0])) == (16, "The subject is null.")
        unknown = acl_body("User:bob", ALICE_RIGHTS[0])
        assert await verdict(3007, unknown) == (16, "The subject of User:bob is not exist.")
        assert await verdict(3006, acl_body("User:alice")) == (16, "The policy entries is empty.")
        for remark, entry in wrong.items():
            assert await verdict(3006, acl_body("User:alice", entry)) == (16, remark)
        assert (await verdict(3006, acl_body("User:alice", allow("Topic:x", "Fly"))))[0] == 16
        assert await verdict(3008, subject="") == (16, "The subject is null.")
        assert await verdict(3008, subject="User:bob") == (16, "The subject is not exist.")
        assert await verdict(3008, subject="User:rocketmq") == (16, "The acl is not exist.")
        assert await verdict(3008, subject="User:alice", resource="nonsense") == (16, "The resource is null.")
        assert await verdict(3009, subject="User:bob") == (16, "The subject is not exist.")
        assert await verdict(3009) == (16, "The subject is null.")
        (acl,) = running.broker.feature(AccessFeature).users.acls.values()
        assert len(acl.policies[0].entries) == 2  # nothing of all that has changed a thing


async def test_what_is_not_there_is_a_success_without_a_body(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as running, asking(running, ROOT) as root:
        assert (await root.call(GetUser(username="bob"))).body == b""
        assert (await root.call(GetAcl(subject="User:rocketmq"))).body == b""
        assert (await root.call(ListAcl())).body == b""
        assert (await root.call(ListUser(filter="bob"))).body == b""
        await root.call(DeleteUser(username="bob"))


async def test_lists_can_be_filtered(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as running, asking(running, ROOT) as root:
        await make_alice(root, *ALICE_RIGHTS)
        users = USERS.decode((await root.call(ListUser(filter="lic"))).body)
        assert [user.username for user in users] == ["alice"]
        (acl,) = ACLS.decode((await root.call(ListAcl(subject_filter="alice", resource_filter="Group:"))).body)
        assert acl.policies is not None
        assert acl.policies[0].entries == (ALICE_RIGHTS[1],)
        assert (await root.call(ListAcl(subject_filter="bob"))).body == b""
        shown = AclInfo.decode((await root.call(GetAcl(subject="User:alice"))).body)
        assert shown.subject == "User:alice"


async def test_who_manages_the_cluster_cannot_become_or_see_a_super_user(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
    ):
        await make_alice(root, allow("Cluster:DefaultCluster", "Get", "Update"))
        await alice.call(CreateUser(username="bob"), UserInfo("bob", "password").encode())
        super_user = UserInfo(password="mine", user_type="super").encode()
        created = await alice.verdict(3001, {"username": "eve"}, super_user)
        assert created == (1, "The super user can only be create by super user")
        updated = await alice.verdict(3002, {"username": "alice"}, super_user)
        assert updated == (1, "The super user can only be update by super user")
        only_by_super = (16, "The super user can only be update by super user")
        assert await alice.verdict(3002, {"username": "rocketmq"}, UserInfo(password="x").encode()) == only_by_super
        assert await alice.verdict(3003, {"username": "rocketmq"}) == only_by_super
        users = USERS.decode((await alice.call(ListUser())).body)
        assert [user.username for user in users] == ["alice", "bob", "rocketmq"]
        assert {user.password for user in users} == {None}
        assert UserInfo.decode((await root.call(GetUser(username="bob"))).body).password == "password"


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_secrets_are_neither_shown_nor_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    own = '{"accessKey":"inner","secretKey":"inner-secret"}'
    config = replace(WITH_USERS, inner_client_credentials=own)
    assert "12345678" not in repr(config)
    assert "12345678" not in Sections({BrokerConfig: config}).text()
    assert "inner-secret" not in repr(config)
    async with broker_with_users(tmp_path, config) as running, asking(running, ROOT) as root:
        await make_alice(root, *ALICE_RIGHTS)
        shown = (await root.call(GetBrokerConfig())).body.decode()
        assert "initAuthenticationUser=******\n" in shown
        assert "innerClientAuthenticationCredentials=******\n" in shown
        assert "authenticationEnabled=true\n" in shown
        await root.call(UpdateBrokerConfig(), b"initAuthenticationUser=******\nfileReservedTime=50\n")
        assert running.broker.settings.broker.init_authentication_user == config.init_authentication_user
        await root.verdict(RequestCode.SEND_MESSAGE, {})
        things = (
            running.broker.feature(AccessFeature).users.users,
            running.broker.feature(AccessFeature).signer,
            running.broker.feature(AccessFeature).users.acls,
        )
        for secret in (*SECRETS, "inner-secret"):
            assert secret not in shown
            assert secret not in caplog.text
            assert not any(secret in repr(thing) for thing in things)


async def test_listed_requests_need_no_signature_or_no_right(tmp_path: Path) -> None:
    config = replace(WITH_USERS, authentication_whitelist="28", authorization_whitelist="28, 26")
    async with (
        broker_with_users(tmp_path, config) as running,
        asking(running, ROOT) as root,
        asking(running, ALICE) as alice,
        asking(running) as nobody,
    ):
        await make_alice(root)
        assert (await nobody.verdict(28))[0] == 0
        assert (await nobody.verdict(26))[0] == 16
        assert (await alice.verdict(26))[0] == 0
        assert (await alice.verdict(21))[0] == 16


async def test_authentication_alone_lets_every_user_do_everything(tmp_path: Path) -> None:
    config = replace(WITH_USERS, authorization_enabled=False)
    async with broker_with_users(tmp_path, config) as running, asking(running, ROOT) as root:
        await make_alice(root)
        async with asking(running, ALICE) as alice, asking(running) as nobody:
            await running_send(alice, "TopicDenied")
            assert (await nobody.verdict(26))[0] == 16


async def test_authorization_alone_believes_names_but_needs_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = replace(WITH_USERS, authentication_enabled=False)
    async with broker_with_users(tmp_path, config) as running, asking(running) as nobody:
        assert (await nobody.verdict(26))[1].startswith("Authorization failed.")
        assert (await nobody.verdict(26, {"AccessKey": "bob"})) == (16, "User:bob not found.")
        assert (await nobody.verdict(26, {"AccessKey": "rocketmq"}))[0] == 0
    assert "without a proof" in caplog.text


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"init_authentication_user": "rocketmq:hidden-secret"}, "initAuthenticationUser"),
        ({"init_authentication_user": '{"username":"hidden-secret"}'}, "initAuthenticationUser"),
        ({"inner_client_credentials": '["hidden-secret"]'}, "innerClientAuthenticationCredentials"),
        ({"authentication_whitelist": "10,send"}, "authenticationWhitelist"),
    ],
)
def test_a_wrong_setting_is_named_but_its_secret_is_not(tmp_path: Path, settings: dict[str, str], named: str) -> None:
    config = replace(WITH_USERS, listen_port=0, store_root=str(tmp_path / "store"), **settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=named) as caught:
        Broker(config, SMALL)
    assert "hidden-secret" not in str(caught.value)


async def test_the_broker_signs_what_it_asks_of_name_servers(tmp_path: Path) -> None:
    seen: list[RemotingCommand] = []

    def take(_: object, command: RemotingCommand) -> RemotingCommand:
        seen.append(command)
        return command.answer(0, None, {})

    router = Router()
    router.register(RequestCode, take)
    server = RemotingServer(router)
    address = await server.listen("127.0.0.1", 0)
    try:
        own = '{"accessKey":"inner","secretKey":"inner-secret"}'
        config = replace(WITH_USERS, inner_client_credentials=own, name_servers=str(address))
        async with broker_with_users(tmp_path, config) as running:
            assert running.broker.feature(AccessFeature).users.users["inner"].is_super
    finally:
        await server.stop()
    assert {command.code for command in seen} >= {RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER}
    for command in seen:
        assert (command.ext_fields or {})["AccessKey"] == "inner"
        assert is_signed_with(command, "inner-secret")


async def test_a_send_of_a_known_shape_is_asked_for_its_signature_too(tmp_path: Path) -> None:
    """Unsigned sends of one shape are read without a parser; the check sees them all the same."""
    async with broker_with_users(tmp_path) as running, asking(running) as nobody:
        for _ in range(5):
            with pytest.raises(NoPermission, match="username cannot be null"):
                await running_send(nobody, "TopicDenied")
        sends = (nobody.call(message("TopicDenied"), b"x") for _ in range(50))
        answers = await asyncio.gather(*sends, return_exceptions=True)
        assert {type(answer) for answer in answers} == {NoPermission}
        assert running.broker.store.max_offset("TopicDenied", 0) == 0


def _pull(group: str, topic: str) -> PullMessage:
    return replace(pull_request(topic=topic), consumer_group=group)
