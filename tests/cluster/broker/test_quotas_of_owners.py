"""Topics and stored bytes of accounts: counted are the topics that an account created while quotas were in force."""

import re
from pathlib import Path

import pytest

from skyrocket.broker.quotas.feature import QuotasFeature
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.quotas import QuotaList
from skyrocket.protocol.bodies.topics import TopicConfigList
from skyrocket.protocol.errors import InvalidParameter, NoPermission, ServiceNotAvailable
from skyrocket.protocol.requests.admin_topics import DeleteTopicInBroker, UpdateAndCreateTopicList
from skyrocket.protocol.requests.quotas import ListQuotas
from tests.cluster.broker.access_fixture import (
    ALICE,
    ROOT,
    Person,
    asking,
    broker_with_users,
    make_alice,
)
from tests.cluster.broker.access_fixture import allow as right
from tests.cluster.broker.broker_fixture import message, new_topic, running_broker
from tests.cluster.broker.test_quotas import allow

# Of administrators' requests access control asks for the right to the cluster.
EVERYTHING = tuple(right(f"{kind}:*", "All") for kind in ("Topic", "Group", "Cluster"))


async def used(root: Person, account: str, kind: str) -> float:
    rows = QuotaList.decode((await root.call(ListQuotas())).body).quotas
    (use,) = (use for row in rows if row.name == account for use in row.uses if use.kind == kind)
    return use.used


@pytest.mark.requirement("D035")
async def test_an_account_creates_no_more_topics_than_its_quota_and_deleted_ones_make_room(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as given, asking(given, ROOT) as root, asking(given, ALICE) as alice:
        await make_alice(root, *EVERYTHING)
        await alice.call(new_topic("Before"))  # nobody wrote down whose it is
        await allow(root, "account", "alice", topics=2)
        await alice.call(new_topic("One"))
        await alice.call(message("Two"), b"a first message makes a topic, too")
        words = r"\[QUOTA\] account alice: 2 topics \(topics\) exceeded: it has 2"
        with pytest.raises(NoPermission, match=words):
            await alice.call(new_topic("Three"))
        with pytest.raises(NoPermission, match=words):
            await alice.call(message("Three"), b"x")
        many = TopicConfigList((TopicConfig("One"), TopicConfig("Three"))).encode()
        with pytest.raises(NoPermission, match=words):
            await alice.call(UpdateAndCreateTopicList(), many)
        await alice.call(new_topic("One"))  # one that is there may be changed
        await root.call(new_topic("Roots"))
        assert await used(root, "alice", "topics") == 2
        await root.call(DeleteTopicInBroker(topic="One"))
        assert await used(root, "alice", "topics") == 1
        given.broker.feature(QuotasFeature).owners.forget_gone()
        await root.call(new_topic("One"))  # is root's now
        assert await used(root, "alice", "topics") == 1
        await alice.call(new_topic("Three"))


@pytest.mark.requirement("D035")
async def test_topics_of_an_account_that_keeps_too_much_take_no_more_whoever_sends(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as given, asking(given, ROOT) as root, asking(given, ALICE) as alice:
        await make_alice(root, *EVERYTHING)
        await allow(root, "account", "alice", topics=9)
        await alice.call(new_topic("Alices"))
        await root.call(new_topic("Roots"))
        for _ in range(20):
            await root.call(message("Alices"), b"x" * 1000)
            await alice.call(message("Roots"), b"x" * 1000)
        await allow(root, "account", "alice", storedBytes=10_000)
        for person in (root, alice):
            with pytest.raises(ServiceNotAvailable, match=r"\[QUOTA\] account alice: 10000 bytes stored"):
                await person.call(message("Alices"), b"x")
            await person.call(message("Roots"), b"x")
        assert 20_000 < await used(root, "alice", "storedBytes") < 30_000
        given.broker.parts.store.removal.remove_topic("Alices")
        await given.broker.feature(QuotasFeature).stored_of_accounts.sample()
        await alice.call(message("Alices"), b"x")


async def test_owners_are_known_after_a_restart_and_for_quotas_of_everybody(tmp_path: Path) -> None:
    async with broker_with_users(tmp_path) as given, asking(given, ROOT) as root, asking(given, ALICE) as alice:
        await make_alice(root, *EVERYTHING)
        await allow(root, "account", "*", topics=1)
        await alice.call(new_topic("Alices"))
        await root.call(new_topic("Roots"))
        assert await used(root, "*", "topics") == 2
    (file,) = tmp_path.rglob("config/topicOwners.json")
    assert '"Alices":"alice"' in re.sub(r"\s", "", file.read_text())
    async with broker_with_users(tmp_path) as given, asking(given, ALICE) as alice:
        with pytest.raises(NoPermission, match="account alice: 1 topic"):
            await alice.call(new_topic("More"))


async def test_nothing_is_written_down_without_access_control(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await allow(given, "account", "", sendMessagesPerSecond=1000)
        with pytest.raises(InvalidParameter, match="whoever gives no name is not written down"):
            await allow(given, "account", "", topics=1)
        await given.send(topic="Orders")
        assert given.broker.feature(QuotasFeature).owners.of("Orders") is None
    assert list(tmp_path.rglob("topicOwners.json")) == []
