"""What a running broker tells: runtime info, statistics, lag, connections, who consumes what, entries of queues."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from skyrocket.broker.broker import Broker
from skyrocket.broker.pull.feature import PullFeature
from skyrocket.broker.statistics.feature import StatisticsFeature
from skyrocket.config.sections import BrokerConfig
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.connections import ConsumerConnections, ProducerConnections, ProducerTable
from skyrocket.protocol.bodies.groups import GroupList
from skyrocket.protocol.bodies.statistics import (
    BrokerConsumeStats,
    BrokerStatsData,
    ConsumeStats,
    ConsumeTimeSpans,
    OffsetLag,
    StatsItem,
    TopicStats,
)
from skyrocket.protocol.bodies.subscription import ClientConfigCheck, GroupSubscription, SubscriptionData
from skyrocket.protocol.bodies.tables import KvTable, QueueEntries
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.errors import ConsumerNotOnline, SystemFailure, TopicNotExist
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo, ViewBrokerStatsData
from skyrocket.protocol.requests.admin_groups import (
    GetAllProducerInfo,
    GetBrokerConsumeStats,
    GetConsumeStats,
    GetProducerConnectionList,
)
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo
from skyrocket.protocol.requests.consumers import CheckClientConfig, GetConsumerConnectionList
from skyrocket.protocol.requests.messaging import ConsumerSendMsgBack
from skyrocket.protocol.requests.offsets import UpdateConsumerOffset
from skyrocket.protocol.requests.query import (
    QueryConsumeQueue,
    QueryConsumeTimeSpan,
    QuerySubscriptionByConsumer,
    QueryTopicConsumeByWho,
    QueryTopicsByConsumer,
    ViewMessageById,
)
from skyrocket.testing.clock import FakeClock
from tests.cluster.broker.broker_fixture import GROUP, TOPIC, RunningBroker, running_broker
from tests.golden_wire import capture
from tests.waiting import until

NUMBER = r"\d+"
DECIMAL = r"\d+\.\d+(E-?\d+)?"
THREE = r"[\d.eE+-]+ [\d.eE+-]+ [\d.eE+-]+"


class Observed(RunningBroker):
    """A broker whose clock the test moves."""

    def __init__(self, broker: Broker, clock: FakeClock) -> None:
        super().__init__(broker, broker.identity.address)
        self.clock = clock

    async def commit(self, offset: int, *, group: str = GROUP, topic: str = TOPIC, queue_id: int = 0) -> None:
        header = UpdateConsumerOffset(consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=offset)
        await self.client.call(self.address, header)

    async def runtime_info(self) -> dict[str, str]:
        return dict(KvTable.decode((await self.client.call(self.address, GetBrokerRuntimeInfo())).body).table)

    async def statistic(self, name: str, key: str) -> BrokerStatsData:
        header = ViewBrokerStatsData(stats_name=name, stats_key=key)
        return BrokerStatsData.decode((await self.client.call(self.address, header)).body)

    async def consume_stats(self, group: str = GROUP, topic: str | None = None) -> ConsumeStats:
        header = GetConsumeStats(consumer_group=group, topic=topic)
        return ConsumeStats.decode((await self.client.call(self.address, header)).body)

    async def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(seconds=1)
            self.broker.feature(StatisticsFeature).sampling.sample()


@asynccontextmanager
async def observed(folder: Path, config: BrokerConfig | None = None) -> AsyncIterator[Observed]:
    clock = FakeClock()
    async with running_broker(folder, config, clock=clock) as running:
        given = Observed(running.broker, clock)
        async with given.client:
            yield given


def queue(queue_id: int, topic: str = TOPIC) -> MessageQueue:
    return MessageQueue(topic, "broker-a", queue_id)


# ── runtime info ─────────────────────────────────────────────────────────────────────────────────────────────────────


def captured_runtime_info() -> dict[str, str]:
    frames = [frame for frame in capture("admin54-brokerStatus.jsonl") if frame.is_response and frame.body_size]
    (table,) = (frame.body_json["table"] for frame in frames if "bootTimestamp" in frame.body_json.get("table", {}))
    assert isinstance(table, dict)
    return table


async def test_runtime_info_has_every_key_of_a_real_broker_in_the_same_form(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        table = await given.runtime_info()
        real = captured_runtime_info()
        path = next(key for key in table if key.startswith("commitLogDiskRatio_"))
        assert path == f"commitLogDiskRatio_{tmp_path}/store/commitlog"
        wanted = {key for key in real if not key.startswith(("commitLogDiskRatio_", "scheduleMessageOffset_"))}
        assert wanted <= set(table)
        assert set(table) - wanted == {
            path,
            "getTransferedTps",
            "brokerRole",
            "haSlaves",
            "haInSyncReplicas",
            "haLagBytes",
        }
        for key in wanted - {"putMessageDistributeTime", "commitLogDirCapacity", "runtime"}:
            if key.endswith("Tps") and not key.startswith("timer"):
                assert re.fullmatch(THREE, table[key]), key
            else:
                # Digits may be others: the kind of text is the same.
                form = next(form for form in (NUMBER, DECIMAL, r"\d+ B", "true", r"V\d_\d_\d") if _is(form, real[key]))
                assert _is(form, table[key]), (key, real[key], table[key])
        pattern = re.sub(NUMBER, NUMBER.replace("\\", r"\\"), re.escape(real["runtime"]))
        assert _is(pattern, table["runtime"])
        assert _is(r"Total : [\d.]+ [KMGTPE]iB, Free : [\d.]+ [KMGTPE]iB\.", table["commitLogDirCapacity"])
        assert re.sub(r":\d+", "", table["putMessageDistributeTime"]) == re.sub(
            r":\d+", "", real["putMessageDistributeTime"]
        )


def _is(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None


async def test_runtime_info_tells_what_really_happened(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        given.broker.feature(StatisticsFeature).sampling.sample()
        for number in range(20):
            await given.send(b"x" * 100, queue_id=number % 4)
        await given.pull(0)
        await given.pull(5)  # nothing there
        await given.pass_time(10)
        table = await given.runtime_info()
        log_end = given.broker.store.commit_log.written_offset
        assert table["msgPutTotalTodayNow"] == table["putMessageTimesTotal"] == "20"
        assert table["msgGetTotalTodayNow"] == "5"
        assert table["msgPutTotalTodayMorning"] == table["msgPutTotalYesterdayMorning"] == "0"
        assert table["putMessageSizeTotal"] == table["commitLogMaxOffset"] == str(log_end)
        assert float(table["putMessageAverageSize"]) == log_end / 20
        assert table["putTps"].split()[0] == "2.0"
        assert table["getTransferredTps"].split()[0] == "0.5"
        assert table["getFoundTps"].split()[0] == table["getMissTps"].split()[0] == "0.1"
        assert table["getTotalTps"].split()[0] == "0.2"
        assert table["bootTimestamp"] == str(given.clock.now_ms() - 10_000)
        assert table["runtime"] == "[ 0 days, 0 hours, 0 minutes, 10 seconds ]"
        assert table["earliestMessageTimeStamp"] == str(given.clock.now_ms() - 10_000)
        assert table["sendThreadPoolQueueCapacity"] == "10000"
        assert table["dispatchBehindBytes"] == "0"
        assert 0 < float(table["commitLogDiskRatio"]) <= 1


async def test_a_new_day_keeps_the_count_of_the_morning(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        for _ in range(3):
            await given.send()
        given.clock.advance(hours=24)
        given.broker.feature(StatisticsFeature).sampling.sample()
        await given.send()
        table = await given.runtime_info()
        assert table["msgPutTotalTodayMorning"] == "3"
        assert table["msgPutTotalTodayNow"] == "4"


async def test_pulls_that_wait_for_messages_are_no_backlog(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        waiting = asyncio.ensure_future(given.pull(1, suspend_ms=20_000))
        await until(lambda: given.broker.feature(PullFeature).polling.held_count == 1)
        table = await given.runtime_info()
        assert table["pullThreadPoolQueueSize"] == "0"
        await given.send()
        assert (await waiting).code == 0


async def test_queries_without_a_thread_are_a_backlog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with observed(tmp_path, BrokerConfig(query_threads=1)) as given:
        go_on = threading.Event()
        monkeypatch.setattr(given.broker.store, "shown_at", lambda _: go_on.wait(10) and None)
        asking = [
            asyncio.ensure_future(given.client.call(given.address, ViewMessageById(offset=number)))
            for number in range(3)
        ]
        await until(lambda: given.broker.parts.workers.waiting_count == 2)
        given.clock.advance(ms=250)
        table = await given.runtime_info()
        go_on.set()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        assert table["queryThreadPoolQueueSize"] == "3"
        assert table["queryThreadPoolQueueHeadWaitTimeMills"] == "250"
        assert [type(answer) for answer in answers] == [SystemFailure] * 3


# ── statistics items ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_statistics_are_sampled_over_a_minute_an_hour_and_a_day(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        for number in range(30):
            await given.send(b"%d" % number)
        await given.pull(0)
        await given.pass_time(10)
        put = await given.statistic("TOPIC_PUT_NUMS", TOPIC)
        assert put.minute == StatsItem(30, 3.0, 1.0)
        assert put.hour == put.day == StatsItem()
        size = await given.statistic("TOPIC_PUT_SIZE", TOPIC)
        assert size.minute.sum == given.broker.store.commit_log.written_offset
        got = await given.statistic("GROUP_GET_NUMS", f"{TOPIC}@{GROUP}")
        assert got.minute == StatsItem(30, 3.0, 30.0)
        assert (await given.statistic("BROKER_PUT_NUMS", "DefaultCluster")).minute.sum == 30
        assert (await given.statistic("BROKER_GET_NUMS", "DefaultCluster")).minute.sum == 30
        await given.pass_time(3600)
        put = await given.statistic("TOPIC_PUT_NUMS", TOPIC)
        assert (put.minute.sum, put.hour.sum, put.day.sum) == (0, 30, 30)
        with pytest.raises(SystemFailure, match=r"The stats <TOPIC_PUT_NUMS> <Nothing> not exist"):
            await given.statistic("TOPIC_PUT_NUMS", "Nothing")


@pytest.mark.requirement("C126")
async def test_messages_that_are_sent_back_are_counted_by_topic_and_group(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        sent = await given.send()
        await given.beat()
        back = ConsumerSendMsgBack(
            offset=int(sent.msg_id[-16:], 16), group=GROUP, delay_level=0, origin_msg_id="", origin_topic=TOPIC
        )
        await given.client.call(given.address, back)
        await given.pass_time(10)
        assert (await given.statistic("SNDBCK_PUT_NUMS", f"{TOPIC}@{GROUP}")).minute.sum == 1


async def test_what_a_restart_reads_again_is_not_counted_again(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
    async with observed(tmp_path) as given:
        assert (await given.runtime_info())["msgPutTotalTodayNow"] == "0"
        await given.send()
        assert (await given.runtime_info())["msgPutTotalTodayNow"] == "1"


async def test_statistics_of_a_deleted_topic_are_forgotten(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        await given.pass_time(10)
        given.broker.tables.topics.delete(TOPIC)
        await given.pass_time(600)
        with pytest.raises(SystemFailure, match="not exist"):
            await given.statistic("TOPIC_PUT_NUMS", TOPIC)
        assert (await given.statistic("BROKER_PUT_NUMS", "DefaultCluster")).day.sum == 0


# ── topics and groups ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_status_of_a_topic_is_first_last_and_time_of_each_queue(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        given.clock.advance(seconds=5)
        await given.send()
        await given.pass_time(10)
        header = GetTopicStatsInfo(topic=TOPIC)
        stats = TopicStats.decode((await given.client.call(given.address, header)).body)
        assert set(stats.offsets) == {queue(number) for number in range(4)}
        first = stats.offsets[queue(0)]
        assert (first.min_offset, first.max_offset) == (0, 2)
        assert first.last_update_timestamp == given.clock.now_ms() - 10_000
        assert stats.offsets[queue(1)].last_update_timestamp == 0
        assert stats.put_tps == pytest.approx(0.2)
        with pytest.raises(TopicNotExist, match=r"topic\[Nothing\] not exist"):
            await given.client.call(given.address, GetTopicStatsInfo(topic="Nothing"))


async def test_the_lag_of_a_group_is_what_it_has_not_committed(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        sent_ms = given.clock.now_ms()
        for _ in range(3):
            await given.send()
            given.clock.advance(seconds=1)
        await given.pull(0)
        await given.commit(2)
        stats = await given.consume_stats()
        assert set(stats.offsets) == {queue(number) for number in range(4)}
        assert stats.offsets[queue(0)] == OffsetLag(3, 2, 3, sent_ms + 1000)
        assert stats.offsets[queue(1)] == OffsetLag(0, 0, 0, 0)
        await given.pass_time(10)
        assert (await given.consume_stats()).consume_tps == pytest.approx(0.3)
        assert (await given.consume_stats("Nobody")).offsets == {}


async def test_an_online_group_shows_only_topics_that_it_still_subscribes_to(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        await given.send(topic="Former")
        await given.beat()
        await given.commit(1)
        await given.commit(1, topic="Former")
        assert {found.topic for found in (await given.consume_stats()).offsets} == {TOPIC}
        named = await given.consume_stats(topic="Former")
        assert named.offsets == {}
        await given.commit(1, topic="Former", group="CID_ONSAPI_OWNER")  # of the groups that are always there: offline
        offline = await given.consume_stats("CID_ONSAPI_OWNER")
        assert {found.topic for found in offline.offsets} == {"Former"}


async def test_several_topics_may_be_named_at_once(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        for topic in ("One", "Two", "Three"):
            await given.send(topic=topic)
        header = GetConsumeStats(consumer_group=GROUP, topic_list="One;Three;Nothing")
        stats = ConsumeStats.decode((await given.client.call(given.address, header)).body)
        assert {found.topic for found in stats.offsets} == {"One", "Three"}


async def test_the_lag_of_all_groups_is_summed(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        for _ in range(5):
            await given.send()
        await given.pull(0)
        await given.commit(2)
        reply = await given.client.call(given.address, GetBrokerConsumeStats(is_order=False))
        stats = BrokerConsumeStats.decode(reply.body)
        assert (stats.total_lag, stats.total_inflight_lag) == (3, 3)
        assert stats.broker_address == given.address
        by_group = {group: topics for entry in stats.groups for group, topics in entry.items()}
        assert set(by_group) == set(given.broker.tables.groups.groups)
        (topic,) = by_group[GROUP]
        assert topic.offsets[queue(0)].consumer_offset == 2
        ordered = await given.client.call(given.address, GetBrokerConsumeStats(is_order=True))
        assert BrokerConsumeStats.decode(ordered.body).total_lag == 0


async def test_time_spans_tell_how_old_the_messages_are_that_wait(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        began_ms = given.clock.now_ms()
        for _ in range(3):
            await given.send()
            given.clock.advance(seconds=10)
        await given.commit(1, group="CID_ONSAPI_OWNER")
        header = QueryConsumeTimeSpan(topic=TOPIC, group="CID_ONSAPI_OWNER")
        body = (await given.client.call(given.address, header)).body
        spans = {span.queue: span for span in ConsumeTimeSpans.decode(body).spans}
        span = spans[queue(0)]
        assert (span.min_timestamp, span.max_timestamp) == (began_ms, began_ms + 20_000)
        assert (span.consume_timestamp, span.delay_ms) == (began_ms, 20_000)
        empty = spans[queue(1)]
        assert (empty.min_timestamp, empty.max_timestamp, empty.delay_ms) == (-1, -1, 0)
        new = QueryConsumeTimeSpan(topic=TOPIC, group="New")
        spans = {s.queue: s for s in ConsumeTimeSpans.decode((await given.client.call(given.address, new)).body).spans}
        assert spans[queue(0)].delay_ms == 30_000
        with pytest.raises(TopicNotExist):
            await given.client.call(given.address, QueryConsumeTimeSpan(topic="Nothing", group=GROUP))


# ── connections ──────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_connected_clients_are_shown_with_address_language_and_version(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        with pytest.raises(ConsumerNotOnline, match=r"the consumer group\[Shop\] not online"):
            await given.client.call(given.address, GetConsumerConnectionList(consumer_group=GROUP))
        with pytest.raises(SystemFailure, match=r"the producer group\[Producers\] not exist"):
            await given.client.call(given.address, GetProducerConnectionList(producer_group="Producers"))
        await given.beat("client-1")
        reply = await given.client.call(given.address, GetConsumerConnectionList(consumer_group=GROUP))
        consumers = ConsumerConnections.decode(reply.body)
        (connection,) = consumers.connections
        assert (connection.client_id, connection.language, connection.version) == ("client-1", "JAVA", 493)
        assert re.fullmatch(r"127\.0\.0\.1:\d+", connection.client_address)
        assert set(consumers.subscriptions) == {TOPIC}
        assert consumers.message_model == "CLUSTERING"
        reply = await given.client.call(given.address, GetProducerConnectionList(producer_group="Producers"))
        assert ProducerConnections.decode(reply.body).connections == (connection,)
        reply = await given.client.call(given.address, GetAllProducerInfo())
        (producer,) = ProducerTable.decode(reply.body).groups["Producers"]
        assert producer.remote_address == f"/{connection.client_address}"
        assert producer.last_update_timestamp == given.clock.now_ms()


async def test_who_consumes_a_topic_is_who_subscribes_or_has_offsets(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        await given.beat()
        await given.commit(1, group="CID_ONSAPI_OWNER")
        reply = await given.client.call(given.address, QueryTopicConsumeByWho(topic=TOPIC))
        assert set(GroupList.decode(reply.body).groups) == {GROUP, "CID_ONSAPI_OWNER"}
        reply = await given.client.call(given.address, QueryTopicsByConsumer(group="CID_ONSAPI_OWNER"))
        topics = TopicList.decode(reply.body)
        assert (topics.topics, topics.broker_address) == ((TOPIC,), given.address)
        header = QuerySubscriptionByConsumer(group=GROUP, topic=TOPIC)
        found = GroupSubscription.decode((await given.client.call(given.address, header)).body)
        assert found.subscription is not None
        assert (found.group, found.topic, found.subscription.expression) == (GROUP, TOPIC, "*")
        header = QuerySubscriptionByConsumer(group="CID_ONSAPI_OWNER", topic=TOPIC)
        found = GroupSubscription.decode((await given.client.call(given.address, header)).body)
        assert found.subscription is None


async def test_a_filter_that_the_broker_does_not_know_is_refused_when_asked(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        tags = ClientConfigCheck("one", GROUP, SubscriptionData(TOPIC, "A || B"))
        await given.client.call(given.address, CheckClientConfig(), tags.encode())
        other = ClientConfigCheck("one", GROUP, SubscriptionData(TOPIC, "a > 1", "XPATH"))
        with pytest.raises(SystemFailure, match="does not support consumer to filter message by XPATH"):
            await given.client.call(given.address, CheckClientConfig(), other.encode())


# ── entries of queues ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_entries_of_a_queue_are_shown_with_what_a_group_subscribes_to(tmp_path: Path) -> None:
    async with observed(tmp_path) as given:
        sent = [await given.send() for _ in range(5)]
        header = QueryConsumeQueue(topic=TOPIC, queue_id=0, index=1, count=3)
        reply = await given.client.call(given.address, header)
        assert reply.remark == "not set any response code"
        found = QueueEntries.decode(reply.body)
        assert (found.min_index, found.max_index) == (0, 5)
        assert found.entries is not None
        assert [entry.physical_offset for entry in found.entries] == [int(s.msg_id[-16:], 16) for s in sent[1:4]]
        assert not any(entry.matches for entry in found.entries)
        header = QueryConsumeQueue(topic=TOPIC, queue_id=0, index=0, count=10, consumer_group=GROUP)
        offline = QueueEntries.decode((await given.client.call(given.address, header)).body)
        assert offline.filter_data == f"{GROUP}@{TOPIC} is not online!"
        await given.beat()
        online = QueueEntries.decode((await given.client.call(given.address, header)).body)
        assert online.entries is not None
        assert len(online.entries) == 5
        assert not any(entry.matches for entry in online.entries)  # RocketMQ: only of extended entries
        assert online.subscription is not None


@pytest.mark.parametrize(("topic", "index"), [("Nothing", 0), (TOPIC, 99), (TOPIC, -1)])
async def test_an_entry_that_is_not_there_is_a_success_with_a_remark(tmp_path: Path, topic: str, index: int) -> None:
    async with observed(tmp_path) as given:
        await given.send()
        header = QueryConsumeQueue(topic=topic, queue_id=0, index=index, count=3)
        reply = await given.client.call(given.address, header)
        assert (reply.code, reply.body) == (0, b"")
        assert reply.remark == f"Index {index} of 0@{topic} is not exist!"
