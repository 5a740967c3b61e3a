"""ACL 1.0: accounts and rights of plain_acl.yml, followed while the broker runs."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from skyrocket.broker.access.feature import AccessFeature
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import ConfigError
from skyrocket.protocol.bodies.access import AclConfig
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import RequestError, SystemFailure
from skyrocket.protocol.requests.acl import (
    DeleteAclConfig,
    GetBrokerClusterAclConfig,
    GetBrokerClusterAclInfo,
    UpdateAndCreateAclConfig,
    UpdateGlobalWhiteAddrsConfig,
)
from skyrocket.protocol.signing import Credentials
from tests.cluster.broker.access_fixture import (
    ACCOUNTS,
    ADMIN_ACCOUNT,
    ALICE_ACCOUNT,
    NAMES,
    WITH_USERS,
    Person,
    asking,
    bodies,
    broker_with_accounts,
    served_codes,
)
from tests.cluster.broker.broker_fixture import PULL_CODES, RunningBroker, message, pull_request, running_broker
from tests.waiting import until

PREFIX = "org.apache.rocketmq.acl.common.AclException: "

# What a signature is enough for, as with RocketMQ: numbers and names of topics and groups, but no message.
ONLY_SIGNED = {
    *(RequestCode.GET_ALL_TOPIC_CONFIG, RequestCode.GET_BROKER_CONFIG, RequestCode.GET_BROKER_RUNTIME_INFO),
    *(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET),
    *(RequestCode.GET_EARLIEST_MSG_STORETIME, RequestCode.GET_ALL_CONSUMER_OFFSET, RequestCode.GET_ALL_DELAY_OFFSET),
    *(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, RequestCode.GET_TOPIC_STATS_INFO, RequestCode.GET_CONSUME_STATS),
    *(RequestCode.GET_CONSUMER_CONNECTION_LIST, RequestCode.GET_PRODUCER_CONNECTION_LIST),
    *(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO),
    *(RequestCode.QUERY_CONSUME_TIME_SPAN, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER),
    *(RequestCode.GET_CONSUMER_RUNNING_INFO, RequestCode.QUERY_CORRECTION_OFFSET, RequestCode.VIEW_BROKER_STATS_DATA),
    *(RequestCode.GET_BROKER_CONSUME_STATS, RequestCode.QUERY_CONSUME_QUEUE, RequestCode.GET_ALL_PRODUCER_INFO),
    *(RequestCode.QUERY_TOPICS_BY_CONSUMER, RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, RequestCode.GET_TOPIC_CONFIG),
    *(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, RequestCode.GET_BROKER_HA_STATUS, RequestCode.POLLING_INFO),
    *(RequestCode.GET_COLD_DATA_FLOW_CTR_INFO, RequestCode.GET_TIMER_CHECK_POINT, RequestCode.GET_TIMER_METRICS),
    *(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON),
    *(RequestCode.AUTH_GET_USER, RequestCode.AUTH_LIST_USER, RequestCode.AUTH_GET_ACL, RequestCode.AUTH_LIST_ACL),
    RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
}


@asynccontextmanager
async def serving(folder: Path, accounts: str = ACCOUNTS) -> AsyncIterator[tuple[RunningBroker, Person, Person]]:
    async with (
        broker_with_accounts(folder, accounts) as running,
        asking(running, ADMIN_ACCOUNT) as admin,
        asking(running, ALICE_ACCOUNT) as alice,
    ):
        yield running, admin, alice


async def may_send(person: Person, topic: str) -> bool:
    code, remark = await person.verdict(RequestCode.SEND_MESSAGE_V2, message(topic).to_fields(), b"x")
    assert code == 0 or remark.startswith(PREFIX)
    return code == 0


# ── every request ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C152")
async def test_every_request_without_a_known_account_and_its_signature_is_refused(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as (running, _, _),
        asking(running) as nobody,
        asking(running, Credentials("nobody12345", "secret12345")) as stranger,
        asking(running, Credentials("admin12345", "wrong-secret")) as impostor,
    ):
        for code in served_codes(running.broker):
            for fields in (None, NAMES, {**NAMES, "AccessKey": "", "Signature": ""}):
                assert await nobody.verdict(code, fields) == (1, PREFIX + "No accessKey is configured"), code
            assert await stranger.verdict(code, NAMES) == (1, PREFIX + "No acl config for nobody12345"), code
            wrong = PREFIX + "Check signature failed for accessKey=admin12345"
            assert await impostor.verdict(code, NAMES) == (1, wrong), code


async def test_an_account_without_rights_reads_no_message_and_changes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as (running, admin, alice):
        assert await may_send(admin, "TopicDenied")
        before = (dict(running.broker.tables.topics.topics), running.broker.store.max_offset("TopicDenied", 0))
        for code in served_codes(running.broker):
            answer, remark = await alice.verdict(code, NAMES, bodies().get(code, b""))
            is_refused = remark.startswith(PREFIX)
            assert is_refused == (code not in ONLY_SIGNED), (code, answer, remark)
            if is_refused:
                assert answer == 1
        assert before == (dict(running.broker.tables.topics.topics), running.broker.store.max_offset("TopicDenied", 0))


async def test_an_account_may_do_what_its_entries_say(tmp_path: Path) -> None:
    async with serving(tmp_path) as (running, admin, alice):
        assert await may_send(alice, "TopicAllowed")
        assert not await may_send(alice, "TopicDenied")
        assert await may_send(admin, "TopicDenied")
        assert await may_send(alice, "RMQ_SYS_TRACE_TOPIC")  # RocketMQ: whoever has signed may trace
        mine = replace(pull_request(topic="TopicAllowed"), consumer_group="CG_acl")
        assert (await alice.call(mine, accepted=PULL_CODES)).header.next_begin_offset == 1
        for group, topic in (("CG_acl", "TopicDenied"), ("CG_denied", "TopicAllowed"), ("CG_acl", "%RETRY%CG_denied")):
            with pytest.raises(SystemFailure, match="No default permission for"):
                await alice.call(replace(mine, consumer_group=group, topic=topic), accepted=PULL_CODES)
        assert running.broker.store.max_offset("TopicDenied", 0) == 1


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_changed_file_counts_at_once_and_a_broken_one_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as (running, _, alice):
        file = tmp_path / "plain_acl.yml"
        assert not await may_send(alice, "TopicDenied")
        file.write_text(ACCOUNTS.replace("TopicAllowed=", "TopicDenied="))
        access = running.broker.feature(AccessFeature).plain
        assert access is not None
        await until(lambda: "TopicDenied" in access.rules.accounts["alice12345"].topics)
        assert await may_send(alice, "TopicDenied")
        assert not await may_send(alice, "TopicAllowed")
        file.write_text("accounts: [{accessKey: alice12345, secretKey: 'secret12345")
        await until(lambda: "their files are wrong" in caplog.text)
        assert await may_send(alice, "TopicDenied")
        file.unlink()
        await until(lambda: "there is neither" in caplog.text)
        assert await may_send(alice, "TopicDenied")
        (tmp_path / "acl").mkdir()
        (tmp_path / "acl" / "team.yml").write_text(ACCOUNTS)
        await until(lambda: "TopicAllowed" in access.rules.accounts["alice12345"].topics)
        assert not await may_send(alice, "TopicDenied")
        assert "secret12345" not in caplog.text


async def test_white_addresses_need_no_signature(tmp_path: Path) -> None:
    anybody = ACCOUNTS + "globalWhiteRemoteAddresses: ['10.0.0.*', '127.0.0.1']\n"
    async with serving(tmp_path, anybody) as (running, _, _), asking(running) as nobody:
        assert await may_send(nobody, "TopicDenied")
    one = ACCOUNTS.replace("  defaultTopicPerm: DENY", "  whiteRemoteAddress: 127.0.0.*\n  defaultTopicPerm: DENY")
    async with serving(tmp_path, one) as (running, _, alice), asking(running) as nobody:
        assert await may_send(alice, "TopicDenied")
        assert not await may_send(nobody, "TopicDenied")
        async with asking(running, Credentials("alice12345", "wrong-secret")) as forgetful:
            assert await may_send(forgetful, "TopicDenied")


async def test_a_broker_without_its_file_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plain_acl\.yml"):
        async with running_broker(tmp_path, BrokerConfig(acl_enabled=True, acl_config_path=str(tmp_path))):
            raise AssertionError("it serves")


async def test_the_file_is_looked_for_beside_the_conf_file(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    config = BrokerConfig(acl_enabled=True, config_path=str(tmp_path / "broker.conf"))
    async with running_broker(tmp_path, config) as running, asking(running, ALICE_ACCOUNT) as alice:
        assert await may_send(alice, "TopicAllowed")


async def test_the_broker_signs_with_the_account_of_tools_yml(tmp_path: Path) -> None:
    (tmp_path / "tools.yml").write_text("accessKey: admin12345\nsecretKey: secret12345\n")
    async with serving(tmp_path) as (running, _, _):
        signer = running.broker.feature(AccessFeature).signer
        assert signer is not None
        assert signer.credentials == ADMIN_ACCOUNT


# ── management ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_administrators_make_change_and_remove_accounts(tmp_path: Path) -> None:
    async with (
        serving(tmp_path) as (running, admin, alice),
        asking(running, Credentials("bob1234567", "bobs-secret")) as bob,
    ):
        new = UpdateAndCreateAclConfig(
            access_key="bob1234567", secret_key="bobs-secret", topic_perms="TopicDenied=PUB, Other=SUB"
        )
        with pytest.raises(SystemFailure, match="Need admin permission for request code=50"):
            await alice.call(new)
        await admin.call(new)
        assert await may_send(bob, "TopicDenied")
        assert not await may_send(bob, "Other")
        await admin.call(replace(new, topic_perms="Other=PUB", default_group_perm="SUB"))
        assert not await may_send(bob, "TopicDenied")
        assert await may_send(bob, "Other")
        shown = AclConfig.decode((await admin.call(GetBrokerClusterAclConfig())).body)
        assert shown.accounts is not None
        assert {account.access_key for account in shown.accounts} == {"admin12345", "alice12345", "bob1234567"}
        await admin.call(DeleteAclConfig(access_key="bob1234567"))
        assert not await may_send(bob, "Other")
        info = (await admin.call(GetBrokerClusterAclInfo())).header
        assert '"counter":3' in info.version
        assert str(tmp_path / "plain_acl.yml") in info.all_acl_file_version
        assert info.cluster_name == "DefaultCluster"


async def test_administrators_set_white_addresses(tmp_path: Path) -> None:
    async with serving(tmp_path) as (running, admin, _), asking(running) as nobody:
        await admin.call(UpdateGlobalWhiteAddrsConfig(global_white_addrs="10.0.0.1,127.0.0.*"))
        assert await may_send(nobody, "TopicDenied")
        await admin.call(UpdateGlobalWhiteAddrsConfig(global_white_addrs="10.0.0.1"))
        assert not await may_send(nobody, "TopicDenied")


@pytest.mark.parametrize(
    ("request_type", "fields", "code"),
    [
        (UpdateAndCreateAclConfig, {"access_key": "short", "secret_key": "long enough"}, 209),
        (UpdateAndCreateAclConfig, {"access_key": "long enough", "secret_key": "sesame"}, 209),
        (UpdateAndCreateAclConfig, {"access_key": "long enough", "secret_key": "sesame1", "topic_perms": "x"}, 209),
        (DeleteAclConfig, {"access_key": "nobody12345"}, 210),
        (UpdateGlobalWhiteAddrsConfig, {"global_white_addrs": "nonsense"}, 211),
        (UpdateGlobalWhiteAddrsConfig, {"global_white_addrs": "*", "acl_file_full_path": "/etc/passwd"}, 211),
    ],
)
async def test_a_wrong_change_is_refused_and_changes_nothing(
    tmp_path: Path, request_type: type, fields: dict[str, str], code: int
) -> None:
    async with serving(tmp_path) as (_, admin, _):
        with pytest.raises(RequestError) as caught:
            await admin.call(request_type(**fields))
        assert caught.value.code == code
        assert "sesame" not in (caught.value.remark or "")
        assert (tmp_path / "plain_acl.yml").read_text() == ACCOUNTS


async def test_without_acl_1_its_requests_are_not_known(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as running, asking(running) as nobody:
        for code in range(50, 55):
            assert await nobody.verdict(code, {}) == (3, f" request type {code} not supported")


# ── on to ACL 2.0 ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_accounts_become_users_with_the_same_rights(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    config = replace(WITH_USERS, migrate_plain_accounts=True, acl_config_path=str(tmp_path))
    for _ in range(2):  # the second time there is nothing left to do
        async with (
            running_broker(tmp_path, config) as running,
            asking(running, ADMIN_ACCOUNT) as admin,
            asking(running, ALICE_ACCOUNT) as alice,
        ):
            await admin.call(message("TopicDenied"), b"x")
            await alice.call(message("TopicAllowed"), b"x")
            mine = replace(pull_request(topic="TopicAllowed"), consumer_group="CG_acl")
            await alice.call(mine, accepted=PULL_CODES)
            with pytest.raises(RequestError, match="the decision is deny"):
                await alice.call(message("TopicDenied"), b"x")
            with pytest.raises(RequestError, match="the decision is deny"):
                await alice.call(replace(mine, consumer_group="CG_denied"), accepted=PULL_CODES)
    assert caplog.text.count("account became a user") == 2
    assert "secret12345" not in caplog.text
