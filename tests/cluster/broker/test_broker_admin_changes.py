"""Operators change a running broker: topics, groups, settings, files. What was answered is on disk."""

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from skyrocket.broker.delay.feature import DelayFeature
from skyrocket.broker.pull.feature import PullFeature
from skyrocket.cli.broker import broker_sections
from skyrocket.cli.fleet.plan import plan_brokers
from skyrocket.config.sections import BrokerConfig, FlushDiskType, StoreConfig
from skyrocket.config.sources import parse_properties
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupConfigList, GroupForbidden, GroupTable
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable, DelayOffsetTable
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.bodies.topics import DATA_VERSION, TopicConfigList, TopicTable
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import (
    GroupNotExist,
    InvalidParameter,
    NoPermission,
    RequestError,
    SystemFailure,
    TopicNotExist,
)
from skyrocket.protocol.requests.admin_broker import (
    CleanExpiredConsumeQueue,
    DeleteExpiredCommitLog,
    GetBrokerConfig,
    GetColdDataFlowCtrInfo,
    RemoveColdDataFlowCtrConfig,
    SetCommitLogReadMode,
    UpdateBrokerConfig,
    UpdateColdDataFlowCtrConfig,
)
from skyrocket.protocol.requests.admin_groups import (
    DeleteSubscriptionGroup,
    GetAllSubscriptionGroupConfig,
    GetSubscriptionGroupConfig,
    UpdateAndCreateSubscriptionGroup,
    UpdateAndCreateSubscriptionGroupList,
    UpdateAndGetGroupForbidden,
)
from skyrocket.protocol.requests.admin_topics import (
    CleanUnusedTopic,
    DeleteTopicInBroker,
    GetAllTopicConfig,
    GetTopicConfig,
    UpdateAndCreateTopicList,
)
from skyrocket.protocol.requests.offsets import (
    GetAllConsumerOffset,
    GetAllDelayOffset,
    QueryConsumerOffset,
    UpdateConsumerOffset,
)
from skyrocket.protocol.requests.route import GetRouteInfoByTopic
from tests import ROOT
from tests.cluster.broker.broker_fixture import GROUP, SMALL, TOPIC, RunningBroker, message, new_topic, running_broker
from tests.cluster.namesrv import name_server_fixture


def saved(folder: Path, name: str) -> Any:
    return json.loads((folder / "store" / "config" / name).read_bytes())


async def change(given: RunningBroker, text: str) -> None:
    await given.client.call(given.address, UpdateBrokerConfig(), text.encode())


async def shown(given: RunningBroker) -> dict[str, str]:
    reply = await given.client.call(given.address, GetBrokerConfig())
    return parse_properties(bytes(reply.body).decode())


# ── topics ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_topic_is_on_disk_when_its_creator_hears_of_success(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        for number in range(5):
            attributes = "+message.type=FIFO" if number else None
            await given.client.call(given.address, new_topic(f"T{number}", order=True, attributes=attributes))
            table = saved(tmp_path, "topics.json")
            assert f"T{number}" in table["topicConfigTable"]
            assert table["dataVersion"]["counter"] == number + 1
        await given.client.call(given.address, new_topic("T0", order=True))  # as it is: no change
        assert given.broker.tables.topics.data_version.counter == 5
        reply = await given.client.call(given.address, GetTopicConfig(topic="T1"))
        config = json.loads(bytes(reply.body))
        assert (config["order"], config["attributes"]) == (True, {"message.type": "FIFO"})


async def test_many_topics_are_created_together_or_not_at_all(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        good = TopicConfigList((TopicConfig("A"), TopicConfig("B", 2, 2))).encode()
        await given.client.call(given.address, UpdateAndCreateTopicList(), good)
        assert {"A", "B"} <= saved(tmp_path, "topics.json")["topicConfigTable"].keys()
        bad = TopicConfigList((TopicConfig("C"), TopicConfig("TBW102"))).encode()
        with pytest.raises(InvalidParameter, match="conflict with system topic"):
            await given.client.call(given.address, UpdateAndCreateTopicList(), bad)
        assert given.broker.tables.topics.find("C") is None


async def test_topics_come_in_pages_for_those_who_ask_so(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        call, address = given.client.call, given.address
        everything = await call(address, GetAllTopicConfig())
        total = everything.header.total_topic_num
        names = set(TopicTable.decode(everything.body).topics)
        assert len(names) == total
        collected: list[str] = []
        version = ""
        while len(collected) < total:
            request = GetAllTopicConfig(topic_seq=len(collected), max_topic_num=5, data_version=version)
            table = TopicTable.decode((await call(address, request)).body)
            assert len(table.topics) <= 5
            version = DATA_VERSION.encode(table.data_version).decode()
            collected += table.topics
        assert collected == sorted(names)
        stale = GetAllTopicConfig(topic_seq=5, max_topic_num=5, data_version='{"counter":99}')
        assert list(TopicTable.decode((await call(address, stale)).body).topics) == collected[:5]
        groups = await call(address, GetAllSubscriptionGroupConfig(group_seq=0, max_group_num=3, data_version=""))
        assert len(GroupTable.decode(groups.body).groups) == 3
        assert groups.header.total_group_num == len(given.broker.tables.groups.groups)


async def test_a_deleted_topic_takes_queues_offsets_and_retry_topics_with_it(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        call, address = given.client.call, given.address
        for _ in range(3):
            await given.send(b"old")
        given.broker.tables.groups.find_or_create(GROUP)
        commit = UpdateConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0, commit_offset=2)
        await call(address, commit)
        retry_topics = [f"%RETRY%{GROUP}{joint}{TOPIC}" for joint in "+_"]
        for name in retry_topics:
            given.broker.tables.topics.ensure(name, 1)
        await given.send(b"again", topic=retry_topics[1])  # clients may not write to the other
        await call(address, DeleteTopicInBroker(topic=TOPIC))
        left = saved(tmp_path, "topics.json")["topicConfigTable"]
        assert not {TOPIC, *retry_topics} & left.keys()
        assert saved(tmp_path, "consumerOffset.json")["offsetTable"] == {}
        assert not [queue for queue in given.broker.store.queues if queue.topic in (TOPIC, *retry_topics)]
        with pytest.raises(TopicNotExist, match="No topic in this broker"):
            await call(address, GetTopicConfig(topic=TOPIC))
        await call(address, DeleteTopicInBroker(topic=TOPIC))  # not there: no error
        await call(address, new_topic(TOPIC))
        assert (await given.send(b"new")).queue_offset == 0
        query = QueryConsumerOffset(consumer_group=GROUP, topic=TOPIC, queue_id=0)
        assert (await call(address, query)).header.offset == 0


@pytest.mark.parametrize("flush", FlushDiskType)
async def test_a_message_sent_in_the_same_breath_does_not_bring_a_deleted_topic_back(
    tmp_path: Path, flush: FlushDiskType
) -> None:
    async with running_broker(tmp_path, store=replace(SMALL, flush_disk_type=flush)) as given:
        await given.send(b"first")
        deletion = given.client.call(given.address, DeleteTopicInBroker(topic=TOPIC))
        await asyncio.gather(*(given.send(b"more") for _ in range(20)), deletion)
        assert given.broker.tables.topics.find(TOPIC) is None
        assert not [queue for queue in given.broker.store.queues if queue.topic == TOPIC]
    assert not (tmp_path / "store" / "consumequeue" / TOPIC).exists()
    async with running_broker(tmp_path, store=replace(SMALL, flush_disk_type=flush)) as given:
        assert not [queue for queue in given.broker.store.queues if queue.topic == TOPIC]


async def test_system_topics_are_guarded_unless_the_setting_says_otherwise(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        request = new_topic("BenchmarkTest", write_queue_nums=2)
        with pytest.raises(InvalidParameter, match="conflict with system topic"):
            await given.client.call(given.address, request)
        mixed = new_topic("Mixed", attributes="+message.type=MIXED")
        with pytest.raises(InvalidParameter, match="MIXED message type is not supported"):
            await given.client.call(given.address, mixed)
        await change(given, "validateSystemTopicWhenUpdateTopic=false\nenableMixedMessageType=true\n")
        await given.client.call(given.address, request)
        await given.client.call(given.address, mixed)
        assert given.broker.tables.topics.topics["BenchmarkTest"].write_queues == 2


# ── groups ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("field", [{}, {"clean_offset": True}, {"remove_offset": True}])
async def test_a_deleted_group_leaves_its_offsets_unless_told_otherwise(tmp_path: Path, field: dict[str, bool]) -> None:
    async with running_broker(tmp_path) as given:
        call, address = given.client.call, given.address
        group = SUBSCRIPTION_GROUP.encode(SubscriptionGroup("Buyers", retry_max_times=3))
        await call(address, UpdateAndCreateSubscriptionGroup(), group)
        assert saved(tmp_path, "subscriptionGroup.json")["subscriptionGroupTable"]["Buyers"]["retryMaxTimes"] == 3
        await given.send(b"x")
        await call(address, UpdateConsumerOffset(consumer_group="Buyers", topic=TOPIC, queue_id=0, commit_offset=1))
        await call(address, DeleteSubscriptionGroup(group_name="Buyers", **field))
        assert "Buyers" not in saved(tmp_path, "subscriptionGroup.json")["subscriptionGroupTable"]
        reply = await call(address, GetAllConsumerOffset())
        offsets = ConsumerOffsetTable.decode(reply.body).offsets
        assert dict(offsets) == ({} if field else {f"{TOPIC}@Buyers": {0: 1}})


async def test_to_look_at_a_group_makes_it_only_where_groups_make_themselves(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.client.call(given.address, GetSubscriptionGroupConfig(group="Curious"))
        assert given.broker.tables.groups.find("Curious") is not None
        await change(given, "autoCreateSubscriptionGroup=false\n")
        with pytest.raises(GroupNotExist, match="No group in this broker"):
            await given.client.call(given.address, GetSubscriptionGroupConfig(group="Other"))
        both = GroupConfigList((SubscriptionGroup("Good"), SubscriptionGroup("no good"))).encode()
        with pytest.raises(InvalidParameter, match="illegal characters"):
            await given.client.call(given.address, UpdateAndCreateSubscriptionGroupList(), both)
        assert given.broker.tables.groups.find("Good") is None


async def test_a_topic_can_be_forbidden_to_a_group_and_allowed_again(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:

        async def asked(readable: bool | None) -> bool | None:
            request = UpdateAndGetGroupForbidden(group=GROUP, topic=TOPIC, readable=readable)
            reply = await given.client.call(given.address, request)
            return GroupForbidden.decode(reply.body).readable

        assert await asked(None) is True
        assert await asked(False) is False
        assert saved(tmp_path, "subscriptionGroup.json")["forbiddenTable"] == {GROUP: {TOPIC: 4}}
        assert await asked(None) is False
        assert await asked(True) is True
        assert saved(tmp_path, "subscriptionGroup.json")["forbiddenTable"] == {}


# ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_changed_setting_is_in_force_shown_and_kept(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("# ours\nfileReservedTime = 48\nbrokerName=broker-a\\")
    config = broker_sections("broker", conf, {}, [])[BrokerConfig]

    async with running_broker(tmp_path, config) as given:
        before = await given.client.call(given.address, GetBrokerConfig())
        await change(given, "fileReservedTime=24\nmaxTransferCountOnMessageInMemory=2\nnoSuchKey=1\nuseTLS=true\n")
        assert given.broker.store.config.file_reserved_hours == 24
        for number in range(4):
            await given.send(b"%d" % number)
        assert len((await given.pull(0)).body) > 0
        assert (await given.pull(0)).header.next_begin_offset == 2
        after = await given.client.call(given.address, GetBrokerConfig())
        versions = [DATA_VERSION.decode((reply.header.version or "").encode()) for reply in (before, after)]
        assert [version.counter for version in versions] == [0, 1]
        pairs = parse_properties(bytes(after.body).decode())
        assert (pairs["fileReservedTime"], pairs["brokerIP1"]) == ("24", "127.0.0.1")
        assert pairs["listenPort"] == given.address.rpartition(":")[2]
        assert "noSuchKey" not in pairs

    text = conf.read_text()
    assert text.startswith("# ours\nfileReservedTime = 48\nbrokerName=broker-a\\\n\n#")
    assert parse_properties(text) == {
        "fileReservedTime": "24",
        "brokerName": "broker-a",
        "maxTransferCountOnMessageInMemory": "2",
    }
    assert broker_sections("broker", conf, {}, [])[StoreConfig].file_reserved_hours == 24
    assert broker_sections("broker", conf, {}, ["fileReservedTime=12"])[StoreConfig].file_reserved_hours == 12


async def test_without_a_conf_file_changes_are_kept_in_the_store_and_read_at_the_next_start(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await change(given, "deleteWhen=05\nbrokerPermission=4\n")
    options = {"storePathRootDir": str(tmp_path / "store")}
    sections = broker_sections("broker", None, options, [])
    assert (sections[StoreConfig].delete_when, sections[BrokerConfig].broker_permission) == ("05", 4)

    async with running_broker(tmp_path, sections[BrokerConfig]) as given:
        await given.client.call(given.address, new_topic("Ordered", order=True))
        with pytest.raises(NoPermission, match="sending message is forbidden"):
            await given.send(b"x", topic="Ordered")
        await change(given, "deleteWhen=06\n")

    again = broker_sections("broker", None, options, [])
    assert (again[StoreConfig].delete_when, again[BrokerConfig].broker_permission) == ("06", 4)


def test_brokers_that_share_a_conf_file_keep_their_changes_apart(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(f"storePathRootDir={tmp_path / 'fleet'}\nfileReservedTime=48\ndeleteWhen=03\n")
    shared = broker_sections("broker", conf, {}, [])[BrokerConfig]
    paths = []
    for plan in plan_brokers(shared, 2, conf, []):
        single = [word for option, word in pairwise(plan.arguments) if option == "--set"]
        options = {"storePathRootDir": str(plan.store)}
        before = broker_sections("broker", conf, options, single)
        paths.append(Path(before[BrokerConfig].config_path))
        paths[-1].parent.mkdir(parents=True)
        paths[-1].write_text(f"fileReservedTime={len(paths)}\nbrokerName=other\n")
        after = broker_sections("broker", conf, options, single)
        assert (after[StoreConfig].file_reserved_hours, after[StoreConfig].delete_when) == (len(paths), "03")
        assert after[BrokerConfig].broker_name == plan.name  # what the command line says counts more
    assert conf not in paths
    assert len(set(paths)) == 2


async def test_a_conf_file_behind_a_link_stays_behind_it(tmp_path: Path) -> None:
    real, link = tmp_path / "real.conf", tmp_path / "link.conf"
    real.write_text("traceOn=true\n")
    link.symlink_to(real)
    async with running_broker(tmp_path, BrokerConfig(config_path=str(link))) as given:
        await change(given, "fileReservedTime=24")
    assert link.is_symlink()
    assert parse_properties(real.read_text()) == {"traceOn": "true", "fileReservedTime": "24"}


@pytest.mark.parametrize(
    ("text", "code", "remark"),
    [
        ("brokerConfigPath=/tmp/x\n", 16, "Can not update config in black list."),
        ("fileReservedTime=1\nconfigBlackList=\n", 16, "Can not update config in black list."),
        ("rocketmqHome=/\n", 16, "Can not update config in black list."),
        ("deleteWhen=07\n", 16, "Can not update config in black list."),
        ("fileReservedTime=soon\n", 1, "fileReservedTime='soon' is not a whole number"),
        ("brokerPermission=9\nfileReservedTime=1\n", 1, "brokerPermission=9 is above the largest allowed value 7"),
        ("fileReservedTime=\\u12\n", 1, "string2Properties error"),
    ],
)
async def test_a_change_that_is_not_allowed_changes_nothing(tmp_path: Path, text: str, code: int, remark: str) -> None:
    async with running_broker(tmp_path, BrokerConfig(config_black_list="configBlackList;deleteWhen")) as given:
        before = await shown(given)
        with pytest.raises(RequestError, match=remark) as refused:
            await change(given, text)
        assert refused.value.code == code
        assert await shown(given) == before
        assert not (tmp_path / "store" / "config" / "broker.properties").exists()


async def test_a_change_that_cannot_be_kept_is_not_made(tmp_path: Path) -> None:
    async with running_broker(tmp_path, BrokerConfig(config_path=str(tmp_path / "missing" / "broker.conf"))) as given:
        with pytest.raises(SystemFailure, match="nothing was changed, because the settings could not be saved"):
            await change(given, "fileReservedTime=24\n")
        assert given.broker.store.config.file_reserved_hours == 72


async def test_topics_are_created_by_their_first_message_only_while_the_setting_says_so(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"x", topic="First")
        await change(given, "autoCreateTopicEnable=false\n")
        with pytest.raises(TopicNotExist):
            await given.send(b"x", topic="Second")
        await given.send(b"x", topic="First")


async def test_the_keys_that_take_effect_at_once_are_those_of_the_documentation(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guides" / "operations.md").read_text()
    section = page.partition("## Changing a running broker")[2].partition("\n## ")[0]
    listed = section.partition("<!-- at once -->")[2].partition("<!-- end -->")[0]

    async with running_broker(tmp_path) as given:
        assert set(listed.replace("`", "").replace(",", " ").split()) == given.broker.settings.followed_keys


# ── the broker's own permission ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("C078")
async def test_without_write_permission_ordered_topics_are_refused(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.client.call(given.address, new_topic("Ordered", order=True))
        await change(given, "brokerPermission=4\n")
        raw = await name_server_fixture.RawConnection.to(given.broker.identity.address)
        request = message("Ordered")
        refused = await raw.ask(RemotingCommand(request.code, 7, ext_fields=request.ext_fields(), body=b"x"))
        assert (refused.code, refused.remark) == (16, "the broker[127.0.0.1] sending message is forbidden")
        assert refused.ext_fields == {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        raw.close()
        await given.send(b"x")  # RocketMQ: for other topics only the route tells
        assert (await given.pull(0)).code == 0
        await change(given, "brokerPermission=6\n")
        await given.send(b"x", topic="Ordered")


async def test_without_read_permission_pulls_are_refused_and_those_who_wait_are_woken(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"x")
        waiting = asyncio.create_task(given.pull(1, suspend_ms=20_000))
        while given.broker.feature(PullFeature).polling.held_count == 0:
            await asyncio.sleep(0.01)
        await change(given, "brokerPermission=2\n")
        assert (await asyncio.wait_for(waiting, 15)).code == 19
        with pytest.raises(NoPermission, match=r"the broker\[127.0.0.1\] pulling message is forbidden") as refused:
            await given.pull(0)
        assert refused.value.ext_fields == {"forbiddenType": "1"}
        await change(given, "brokerPermission=6\n")
        assert (await given.pull(0)).code == 0


async def test_another_permission_raises_the_version_of_topics_and_reaches_the_name_server(tmp_path: Path) -> None:
    async with name_server_fixture.running(tmp_path / "names") as (_, names):
        config = BrokerConfig(name_servers=str(names))
        async with running_broker(tmp_path, config) as given:
            await given.client.call(given.address, new_topic(TOPIC))

            async def permission() -> int | None:
                try:
                    reply = await given.client.call(str(names), GetRouteInfoByTopic(topic=TOPIC))
                except TopicNotExist:
                    return None  # it is told soon, with other changes
                return TopicRoute.decode(reply.body).queues[0].permission

            async def becomes(expected: int) -> None:
                while await permission() != expected:
                    await asyncio.sleep(0.02)

            counter = given.broker.tables.topics.data_version.counter
            await change(given, "brokerPermission=4\n")
            await asyncio.wait_for(becomes(4), 60)
            assert given.broker.tables.topics.data_version.counter == counter + 1
            assert given.broker.tables.topics.topics[TOPIC].permission == 6
            await given.client.call(given.address, new_topic(TOPIC, write_queue_nums=2))
            await asyncio.sleep(0.1)
            assert await permission() == 4  # what is registered alone is masked as well
            await change(given, "brokerPermission=6\n")
            await asyncio.wait_for(becomes(6), 60)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_queues_of_topics_that_are_gone_are_cleaned(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        await given.send(b"x", topic="Gone")
        await given.send(b"x", topic="Stays")
        given.broker.tables.topics.delete("Gone")  # as after a crash between the table and the queues
        for request in (CleanUnusedTopic(), CleanExpiredConsumeQueue(), DeleteExpiredCommitLog()):
            await given.client.call(given.address, request)
        assert {queue.topic for queue in given.broker.store.queues} == {"Stays"}


async def test_the_kernel_is_told_how_the_log_is_read(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        call, address = given.client.call, given.address
        await given.send(b"x")
        reply = await call(address, SetCommitLogReadMode(read_ahead_mode="1"))
        assert reply.remark == "set commitlog readahead mode success, mode: 1"
        assert _flags_of_log(tmp_path) == {"rr"}
        await call(address, SetCommitLogReadMode(read_ahead_mode="0"))
        assert _flags_of_log(tmp_path) == set()
        with pytest.raises(InvalidParameter, match="param value error"):
            await call(address, SetCommitLogReadMode(read_ahead_mode="2"))
        with pytest.raises(SystemFailure, match="set commitlog readahead mode failed"):
            await call(address, SetCommitLogReadMode(read_ahead_mode="x"))


def _flags_of_log(folder: Path) -> set[str]:
    """Advice on mapped log files as the kernel knows it: `rr` is random."""
    flags: set[str] = set()
    is_log = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.startswith("VmFlags:"):
            flags |= {flag for flag in line.split()[1:] if is_log and flag in ("rr", "sr")}
        elif "-" in line.split(" ", 1)[0]:
            is_log = str(folder / "store" / "commitlog") in line
    return flags


async def test_limits_of_cold_reads_are_kept_and_shown(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        call, address = given.client.call, given.address
        await call(address, UpdateColdDataFlowCtrConfig(), b"Shop=1048576\nOther=many\n")
        info = json.loads(bytes((await call(address, GetColdDataFlowCtrInfo())).body))
        assert info["configTable"] == {"Shop": 1048576}
        await call(address, RemoveColdDataFlowCtrConfig(), b"Shop")
        info = json.loads(bytes((await call(address, GetColdDataFlowCtrInfo())).body))
        assert info["configTable"] == {}


async def test_a_slave_can_copy_the_offsets_of_delay_levels(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as given:
        given.broker.feature(DelayFeature).offsets.advance({1: 5, 18: 7})
        reply = await given.client.call(given.address, GetAllDelayOffset())
        table = DelayOffsetTable.decode(reply.body)
        assert dict(table.offsets) == {1: 5, 18: 7}
        assert table.data_version == given.broker.feature(DelayFeature).offsets.data_version
