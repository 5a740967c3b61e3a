"""What tools ask about a broker: how it is, how its topics fill, how far groups lag, what it has counted."""

import asyncio
from typing import Final, TypeVar

from skyrocket.broker.core.slices import Slices
from skyrocket.broker.state.counters import Counters
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.broker.statistics.lag import Lag
from skyrocket.broker.statistics.runtime_info import RuntimeInfo
from skyrocket.protocol.bodies.json_body import BodyBase
from skyrocket.protocol.bodies.statistics import (
    BrokerConsumeStats,
    BrokerStatsData,
    ConsumeStats,
    ConsumeTimeSpans,
    TopicStats,
)
from skyrocket.protocol.bodies.tables import KvTable
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.admin_broker import GetBrokerRuntimeInfo, ViewBrokerStatsData
from skyrocket.protocol.requests.admin_groups import GetBrokerConsumeStats, GetConsumeStats
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo
from skyrocket.protocol.requests.query import QueryConsumeTimeSpan
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve

B = TypeVar("B", bound=BodyBase)

_SHORT_QUEUES: Final = 256


class StatisticsProcessor:
    """Reads what others count."""

    def __init__(
        self,
        runtime_info: RuntimeInfo,
        counters: Counters,
        lag: Lag,
        tables: Tables,
        identity: BrokerIdentity,
        slices: Slices,
    ) -> None:
        self._runtime_info = runtime_info
        self._counters = counters
        self._lag = lag
        self._groups = tables.groups
        self._offsets = tables.offsets
        self._identity = identity
        self._slices = slices

    def handlers(self) -> Handlers:
        return (
            serve(GetBrokerRuntimeInfo, self.runtime_info),
            serve(ViewBrokerStatsData, self.view),
            serve(GetTopicStatsInfo, self.topic),
            serve(GetConsumeStats, self.group),
            serve(GetBrokerConsumeStats, self.all_groups),
            serve(QueryConsumeTimeSpan, self.time_spans),
        )

    def runtime_info(self, _: Peer, __: GetBrokerRuntimeInfo, ___: Body) -> KvTable:
        """How the broker is, in RocketMQ's words."""
        return KvTable(self._runtime_info.table())

    def view(self, _: Peer, header: ViewBrokerStatsData, __: Body) -> BrokerStatsData:
        """One counter over the last minute, hour and day."""
        return self._counters.view(header.stats_name, header.stats_key)

    async def topic(self, _: Peer, header: GetTopicStatsInfo, __: Body) -> TopicStats | bytes:
        """Where the queues of a topic begin and end."""
        stats = await self._lag.topic(header.topic)
        return await self._short(stats, len(stats.offsets))

    async def group(self, _: Peer, header: GetConsumeStats, __: Body) -> ConsumeStats | bytes:
        """How far a group lags; one that nobody knows has an empty table."""
        named = [header.topic or "", *(header.topic_list or "").split(";")]
        topics = [name for name in dict.fromkeys(named) if name.strip()]
        stats = await self._lag.group(header.consumer_group, topics or self._offsets.topics_of(header.consumer_group))
        return await self._short(stats, len(stats.offsets))

    async def all_groups(self, _: Peer, header: GetBrokerConsumeStats, __: Body) -> BrokerConsumeStats | bytes:
        """How far all groups lag; others are served between one group and the next."""
        by_group: list[dict[str, list[ConsumeStats]]] = []
        lag = inflight = queues = 0
        for group in tuple(self._groups.groups):
            stats = await self._lag.topics_of_group(group, only_ordered=header.is_order)
            by_group.append({group: stats})
            for each in (queue for topic in stats for queue in topic.offsets.values()):
                queues += 1
                lag += each.broker_offset - each.consumer_offset
                inflight += (each.pull_offset or 0) - each.consumer_offset
            await asyncio.sleep(0)
        found = BrokerConsumeStats(tuple(by_group), str(self._identity.address), lag, inflight)
        return await self._short(found, queues)

    async def time_spans(self, _: Peer, header: QueryConsumeTimeSpan, __: Body) -> ConsumeTimeSpans | bytes:
        """How old the messages of a topic's queues are, and those that a group has reached."""
        found = await self._lag.time_spans(header.topic, header.group)
        return await self._short(found, len(found.spans))

    async def _short(self, content: B, queues: int) -> B | bytes:
        """The content itself, or its JSON if that is long work."""
        if queues <= _SHORT_QUEUES:
            return content
        return await self._slices.in_thread(content.encode)
