"""Quotas over real connections: what is refused, in which words, who waits, and who notices nothing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from skyrocket.broker.quotas.feature import QuotasFeature
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.quotas import QuotaLimits, QuotaList, QuotaUse
from skyrocket.protocol.bodies.topics import TopicConfigList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import (
    FlowControl,
    InvalidParameter,
    NoPermission,
    RequestError,
    ServiceNotAvailable,
    SystemBusy,
)
from skyrocket.protocol.requests.admin_topics import UpdateAndCreateTopicList
from skyrocket.protocol.requests.clients import HeartBeat
from skyrocket.protocol.requests.quotas import ListQuotas, RemoveQuota, SetQuota
from skyrocket.protocol.signing import Credentials
from skyrocket.remoting.client import RemotingClient
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.access_fixture import (
    ADMIN_ACCOUNT,
    ALICE,
    ALICE_ACCOUNT,
    ALICE_RIGHTS,
    ROOT,
    Person,
    asking,
    broker_with_accounts,
    broker_with_users,
    make_alice,
)
from tests.cluster.broker.broker_fixture import (
    RunningBroker,
    heartbeat,
    message,
    new_topic,
    pull_request,
    running_broker,
)
from tests.cluster.broker.test_pop import messages, pop
from tests.waiting import until

BOB_AND_ALICE = """
accounts:
- {accessKey: admin12345, secretKey: secret12345, admin: true}
- {accessKey: alice12345, secretKey: secret12345, defaultTopicPerm: PUB|SUB, defaultGroupPerm: SUB}
- {accessKey: bobby12345, secretKey: secret12345, defaultTopicPerm: PUB|SUB, defaultGroupPerm: SUB}
"""
BOB_ACCOUNT = Credentials("bobby12345", "secret12345")


async def allow(given: "RunningBroker | Person", subject: str, name: str, **limits: int) -> None:
    request, body = SetQuota(subject_type=subject, name=name), QuotaLimits(limits).encode()
    if isinstance(given, Person):
        await given.call(request, body)
    else:
        await given.client.call(given.address, request, body)


async def quotas_of(given: RunningBroker) -> dict[tuple[str, str], dict[str, QuotaUse]]:
    answer = await given.client.call(given.address, ListQuotas())
    rows = QuotaList.decode(answer.body).quotas
    return {(row.subject_type, row.name): {use.kind: use for use in row.uses} for row in rows}


@contextlib.asynccontextmanager
async def still(tmp_path: Path) -> AsyncIterator[tuple[RunningBroker, FakeClock]]:
    """A broker whose time stands still until the test moves it."""
    clock = FakeClock()
    async with running_broker(tmp_path, clock=clock) as given:
        yield given, clock


async def test_a_broker_without_quotas_asks_nothing_of_any_request(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        parts = given.broker.parts
        assert parts.router._checks == []
        assert parts.counters.read_meter is None
        await allow(given, "account", "", sendMessagesPerSecond=1000)
        assert len(parts.router._checks) == 1
        await given.client.call(given.address, RemoveQuota(subject_type="account", name=""))
        assert parts.router._checks == []
        assert parts.counters.read_meter is None


@pytest.mark.requirement("D035")
async def test_sends_beyond_the_rate_are_refused_as_busy_and_the_refusal_names_the_quota(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        await allow(given, "account", "", sendMessagesPerSecond=3)
        for _ in range(3):
            await given.send()
        with pytest.raises(SystemBusy) as refused:
            await given.send()
        assert refused.value.remark == (
            "[QUOTA] account anonymous: 3 messages/s (sendMessagesPerSecond) exceeded, retry in 333 ms"
        )
        clock.advance(ms=334)
        await given.send()
        with pytest.raises(SystemBusy):
            await given.send()
        used = (await quotas_of(given))["account", ""]["sendMessagesPerSecond"]
        assert (used.limit, used.exceeded, round(used.used)) == (3, 2, 3)
        assert given.broker.store.max_offset("Orders", 0) == 4


async def test_bytes_are_counted_for_a_namespace_whoever_sends_them(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, _):
        await allow(given, "namespace", "shop", sendBytesPerSecond=1000)
        await given.send(b"x" * 900, topic="shop%Orders")
        with pytest.raises(SystemBusy, match=r"\[QUOTA\] namespace shop: 1000 bytes/s \(sendBytesPerSecond\)"):
            await given.send(b"x" * 200, topic="shop%Others")
        await given.send(b"x" * 5000, topic="bank%Orders")
        await given.send(b"x" * 5000)


async def test_every_message_of_a_batch_counts(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, _):
        await given.send()
        await allow(given, "account", "", sendMessagesPerSecond=4)
        one = (4 + 4 + 4 + 4 + 4 + 1 + 2).to_bytes(4) + bytes(12) + (1).to_bytes(4) + b"x" + bytes(2)
        fields = {**(message().ext_fields() or {}), "m": "true"}
        async with asking(given) as somebody:
            assert (await somebody.verdict(RequestCode.SEND_BATCH_MESSAGE, fields, one * 3))[0] == 0
            code, remark = await somebody.verdict(RequestCode.SEND_BATCH_MESSAGE, fields, one * 2)
            assert (code, remark[:7]) == (2, "[QUOTA]")
            assert (await somebody.verdict(RequestCode.SEND_BATCH_MESSAGE, fields, one))[0] == 0


@pytest.mark.requirement("D035")
async def test_one_account_at_its_limit_does_not_slow_another(tmp_path: Path) -> None:
    async with (
        broker_with_accounts(tmp_path, BOB_AND_ALICE) as given,
        asking(given, ADMIN_ACCOUNT) as admin,
        asking(given, ALICE_ACCOUNT) as alice,
        asking(given, BOB_ACCOUNT) as bob,
    ):
        await allow(admin, "account", "alice12345", sendMessagesPerSecond=1)
        await admin.call(message(), b"x")
        refused = 0
        for _ in range(30):
            await bob.call(message(), b"x")
            with contextlib.suppress(SystemBusy):
                await alice.call(message(), b"x")
                continue
            refused += 1
        assert refused
        stored = given.broker.store.max_offset("Orders", 0)
        assert stored == 1 + 30 + 30 - refused


async def test_a_user_of_access_control_is_charged_by_name_and_a_stranger_not_at_all(tmp_path: Path) -> None:
    async with (
        broker_with_users(tmp_path) as given,
        asking(given, ROOT) as root,
        asking(given, ALICE) as alice,
        asking(given) as stranger,
    ):
        await make_alice(root, *ALICE_RIGHTS)
        await allow(root, "account", "alice", sendBytesPerSecond=100)
        with pytest.raises(NoPermission):  # refused before anything is charged
            await stranger.call(message("TopicAllowed"), b"x" * 1000)
        await alice.call(message("TopicAllowed"), b"x" * 1000)
        with pytest.raises(SystemBusy, match="account alice: 100 bytes/s"):
            await alice.call(message("TopicAllowed"), b"x" * 1000)
        await root.call(message("TopicAllowed"), b"x" * 1000)
        with pytest.raises(NoPermission):
            await alice.call(ListQuotas())
        with pytest.raises(NoPermission):
            await allow(alice, "account", "alice", sendBytesPerSecond=1000)


@pytest.mark.requirement("D035")
async def test_pulls_beyond_the_rate_wait_and_are_answered_when_the_debt_is_paid(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        for _ in range(10):
            await given.send()
        await allow(given, "account", "", readMessagesPerSecond=8)
        feature = given.broker.feature(QuotasFeature)
        assert len((await given.pull()).body) > 0  # ten messages: two on credit
        held = asyncio.ensure_future(given.pull())
        await until(lambda: feature.charging.held_count == 1)
        await given.send()  # others of the same connection do not wait
        clock.advance(seconds=1)
        answer = await held
        assert answer.code == 0
        assert len(answer.body) > 0
        assert (await quotas_of(given))["account", ""]["readMessagesPerSecond"].exceeded == 1


async def test_a_held_pull_that_finds_nothing_waits_for_messages_as_any_other(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        for _ in range(10):
            await given.send()
        await allow(given, "namespace", "*", readMessagesPerSecond=9)
        await given.pull()
        feature = given.broker.feature(QuotasFeature)
        held = asyncio.ensure_future(given.pull(10, suspend_ms=20_000))
        await until(lambda: feature.charging.held_count == 1)
        clock.advance(seconds=1)
        await until(lambda: feature.charging.held_count == 0)
        await given.send()
        assert (await held).code == 0


async def test_pops_beyond_the_rate_wait_as_pulls_do(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        for _ in range(10):
            await given.send()
        await allow(given, "namespace", "", readMessagesPerSecond=8)
        assert len(messages(await pop(given))) == 10
        held = asyncio.ensure_future(pop(given, poll_time=10_000))
        await until(lambda: given.broker.feature(QuotasFeature).charging.held_count == 1)
        await given.send()
        clock.advance(seconds=1)
        assert len(messages(await held)) == 1


async def test_a_reader_whose_debt_is_not_paid_in_time_is_told_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skyrocket.broker.quotas.charging._LONGEST_PAUSE", 0.05)
    async with still(tmp_path) as (given, _):
        for _ in range(10):
            await given.send()
        await allow(given, "account", "", readBytesPerSecond=10)
        await given.pull()
        with pytest.raises(FlowControl, match=r"\[QUOTA\] account anonymous: 10 bytes/s \(readBytesPerSecond\)"):
            await given.pull()


async def test_a_pull_that_is_held_when_its_connection_is_lost_is_forgotten(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        for _ in range(10):
            await given.send()
        await allow(given, "account", "", readMessagesPerSecond=1)
        await given.pull()
        feature = given.broker.feature(QuotasFeature)
        async with RemotingClient() as other:
            held = asyncio.ensure_future(other.call(given.address, pull_request()))
            await until(lambda: feature.charging.held_count == 1)
        with pytest.raises(Exception, match=r"."):
            await held
        clock.advance(seconds=60)
        feature.charging.let_go()
        await until(lambda: not given.broker.parts.router.tasks)
        assert given.broker.parts.classes.pull.in_hand == 0


async def test_connections_beyond_the_quota_are_refused_until_one_is_closed(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await allow(given, "account", "", connections=2)
        await given.send()  # from the first of them
        async with RemotingClient() as second, RemotingClient() as third:
            await second.call(given.address, HeartBeat(), heartbeat("two"))
            with pytest.raises(SystemBusy) as refused:
                await third.call(given.address, HeartBeat(), heartbeat("three"))
            assert refused.value.remark == "[QUOTA] account anonymous: 2 connections (connections) exceeded"
            await third.call(given.address, ListQuotas())  # who is shut out can still see why
            await given.send()
        async with RemotingClient() as fourth:
            await until(lambda: given.broker.parts.server.connection_count == 1)
            await fourth.call(given.address, HeartBeat(), heartbeat("four"))
            assert (await quotas_of(given))["account", ""]["connections"].used == 2


async def test_new_connections_are_counted_by_the_second(tmp_path: Path) -> None:
    async with still(tmp_path) as (given, clock):
        await allow(given, "account", "", newConnectionsPerSecond=2)
        await given.send()
        async with RemotingClient() as second, RemotingClient() as third:
            await second.call(given.address, message(), b"x")
            with pytest.raises(SystemBusy, match="2 new connections/s"):
                await third.call(given.address, message(), b"x")
            await given.send()
            clock.advance(ms=501)
            await third.call(given.address, message(), b"x")


@pytest.mark.requirement("D035")
async def test_topics_beyond_the_quota_are_neither_created_nor_made_by_a_send(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        call = given.client.call
        await allow(given, "namespace", "shop", topics=2)
        await given.send(topic="shop%A")
        await call(given.address, new_topic("shop%B"))
        words = r"\[QUOTA\] namespace shop: 2 topics \(topics\) exceeded: it has 2"
        with pytest.raises(NoPermission, match=words):
            await call(given.address, new_topic("shop%C"))
        with pytest.raises(NoPermission, match=words):
            await given.send(topic="shop%C")
        both = TopicConfigList((TopicConfig("bank%C"), TopicConfig("shop%C")))
        with pytest.raises(NoPermission, match=words):
            await call(given.address, UpdateAndCreateTopicList(), both.encode())
        assert given.broker.parts.tables.topics.find("bank%C") is None
        await call(given.address, new_topic("shop%B"))  # one that is there may be changed
        await given.send(topic="bank%C")
        assert (await quotas_of(given))["namespace", "shop"]["topics"].used == 2


@pytest.mark.requirement("D035")
async def test_a_namespace_that_keeps_too_much_takes_no_more_until_there_is_room(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for _ in range(20):
            await given.send(b"x" * 1000, topic="shop%Orders")
        await allow(given, "namespace", "shop", storedBytes=10_000)
        with pytest.raises(ServiceNotAvailable, match=r"\[QUOTA\] namespace shop: 10000 bytes stored \(storedBytes\)"):
            await given.send(topic="shop%Orders")
        await given.send(topic="bank%Orders")
        used = (await quotas_of(given))["namespace", "shop"]["storedBytes"].used
        assert 20_000 < used < 30_000
        given.broker.parts.store.removal.remove_topic("shop%Orders")
        await given.broker.feature(QuotasFeature).stored.sample()
        await given.send(topic="shop%Orders")


@pytest.mark.requirement("D035")
async def test_quotas_are_there_again_after_a_restart_and_visible_in_the_metrics(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await allow(given, "account", "alice", sendMessagesPerSecond=7)
        await allow(given, "account", "", sendMessagesPerSecond=2, connections=5)
        await allow(given, "account", "", connections=-1)
    async with still(tmp_path) as (given, _):
        found = await quotas_of(given)
        assert {key: {kind: use.limit for kind, use in uses.items()} for key, uses in found.items()} == {
            ("account", ""): {"sendMessagesPerSecond": 2},
            ("account", "alice"): {"sendMessagesPerSecond": 7},
        }
        for _ in range(2):
            await given.send()
        with pytest.raises(SystemBusy):
            await given.send()
        samples = {
            (metric.name, labels["name"]): value
            for metric in given.broker.feature(QuotasFeature).metrics()
            for labels, value in metric.samples
            if "name" in labels
        }
        assert samples["skyrocket_quota_limit", "alice"] == 7
        assert samples["skyrocket_quota_used", ""] == 2
        assert samples["skyrocket_quota_exceeded_total", ""] == 1


async def test_wrong_quotas_are_refused_and_change_nothing(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for subject, limits, words in (
            ("namespace", {"connections": 3}, "connections is counted for each account"),
            ("account", {"cpu": 3}, "cpu is no quota"),
            ("group", {"connections": 3}, "subjectType is 'group'"),
            ("account", {}, "no limits are named"),
        ):
            with pytest.raises(InvalidParameter, match=words):
                await allow(given, subject, "x", **limits)
        with pytest.raises(InvalidParameter, match="account nobody has no quota of its own"):
            await given.client.call(given.address, RemoveQuota(subject_type="account", name="nobody"))
        with pytest.raises(RequestError):
            await given.client.call(given.address, SetQuota(subject_type="account", name="x"), b"not json")
        assert await quotas_of(given) == {}
