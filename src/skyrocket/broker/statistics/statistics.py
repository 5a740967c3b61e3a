"""What tools ask about a broker: how it is, how its topics fill, how far groups lag, what it has counted."""

import asyncio

from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.broker.statistics.lag import Lag
from skyrocket.broker.statistics.runtime_info import RuntimeInfo
from skyrocket.protocol.bodies.statistics import (
    BROKER_CONSUME_STATS,
    BROKER_STATS_DATA,
    CONSUME_STATS,
    CONSUME_TIME_SPANS,
    TOPIC_STATS,
    BrokerConsumeStats,
    ConsumeStats,
)
from skyrocket.protocol.bodies.tables import KV_TABLE, KvTable
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.requests.admin_broker import ViewBrokerStatsData
from skyrocket.protocol.requests.admin_groups import GetBrokerConsumeStats, GetConsumeStats
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo
from skyrocket.protocol.requests.query import QueryConsumeTimeSpan
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw


class StatisticsProcessor:
    """Reads what others count."""

    def __init__(
        self,
        runtime_info: RuntimeInfo,
        counters: Counters,
        lag: Lag,
        tables: Tables,
        identity: BrokerIdentity,
    ) -> None:
        self._runtime_info = runtime_info
        self._counters = counters
        self._lag = lag
        self._groups = tables.groups
        self._offsets = tables.offsets
        self._identity = identity

    def handlers(self) -> Handlers:
        return (
            serve_raw(RequestCode.GET_BROKER_RUNTIME_INFO, self.runtime_info),
            serve_raw(RequestCode.VIEW_BROKER_STATS_DATA, self.view),
            serve_raw(RequestCode.GET_TOPIC_STATS_INFO, self.topic),
            serve_raw(RequestCode.GET_CONSUME_STATS, self.group),
            serve_raw(RequestCode.GET_BROKER_CONSUME_STATS, self.all_groups),
            serve_raw(RequestCode.QUERY_CONSUME_TIME_SPAN, self.time_spans),
        )

    def runtime_info(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_RUNTIME_INFO."""
        return _success(request, KV_TABLE.encode(KvTable(self._runtime_info.table())))

    def view(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """VIEW_BROKER_STATS_DATA."""
        header = ViewBrokerStatsData.from_fields(request.ext_fields)
        return _success(request, BROKER_STATS_DATA.encode(self._counters.view(header.stats_name, header.stats_key)))

    def topic(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_TOPIC_STATS_INFO."""
        header = GetTopicStatsInfo.from_fields(request.ext_fields)
        return _success(request, TOPIC_STATS.encode(self._lag.topic(header.topic)))

    def group(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_CONSUME_STATS; a group that nobody knows has an empty table."""
        header = GetConsumeStats.from_fields(request.ext_fields)
        named = [header.topic or "", *(header.topic_list or "").split(";")]
        topics = [name for name in dict.fromkeys(named) if name.strip()]
        stats = self._lag.group(header.consumer_group, topics or self._offsets.topics_of(header.consumer_group))
        return _success(request, CONSUME_STATS.encode(stats))

    async def all_groups(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CONSUME_STATS; others are served between one group and the next."""
        header = GetBrokerConsumeStats.from_fields(request.ext_fields)
        by_group: list[dict[str, list[ConsumeStats]]] = []
        lag = inflight = 0
        for group in tuple(self._groups.groups):
            stats = list(self._lag.topics_of_group(group, only_ordered=header.is_order))
            by_group.append({group: stats})
            for each in (queue for topic in stats for queue in topic.offsets.values()):
                lag += each.broker_offset - each.consumer_offset
                inflight += (each.pull_offset or 0) - each.consumer_offset
            await asyncio.sleep(0)
        body = BrokerConsumeStats(tuple(by_group), str(self._identity.address), lag, inflight)
        return _success(request, BROKER_CONSUME_STATS.encode(body))

    def time_spans(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """QUERY_CONSUME_TIME_SPAN."""
        header = QueryConsumeTimeSpan.from_fields(request.ext_fields)
        return _success(request, CONSUME_TIME_SPANS.encode(self._lag.time_spans(header.topic, header.group)))


def _success(request: RemotingCommand, body: bytes) -> RemotingCommand:
    return request.answer(ResponseCode.SUCCESS, None, None, body)
