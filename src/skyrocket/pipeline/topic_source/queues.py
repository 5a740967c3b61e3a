"""What the subscribed topics hold right now: their queues, and the first and last offset of each.

One request per broker and topic tells the offsets of all its queues. Routes are asked again when they are older than
`metadataTtlMs`, so that new queues, new brokers and new topics of a pattern are found while a stream runs.
"""

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from skyrocket.client.consumer.queue_ranges import QueueRange, RangeRules, first_at_or_after
from skyrocket.client.consumer.start_position import max_offset, min_offset
from skyrocket.client.consumer.subscription import SQL92
from skyrocket.client.consumer.subscription_check import check_filters
from skyrocket.client.core.errors import BrokerAbsent, BrokerRefused, ClientError, NoRoute
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.options import OptionError
from skyrocket.pipeline.topic_source.connection import SourceClient, connected
from skyrocket.pipeline.topic_source.loss import DataLost, Loss
from skyrocket.pipeline.topic_source.offsets import Bounds, Offsets
from skyrocket.pipeline.topic_source.refusals import named
from skyrocket.pipeline.topic_source.settings import ANONYMOUS_GROUP, TopicSettings
from skyrocket.protocol.bodies.heartbeat import ConsumerData, Heartbeat
from skyrocket.protocol.bodies.statistics import TopicStats
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.requests.admin_topics import GetTopicStatsInfo
from skyrocket.protocol.requests.clients import HeartBeat, UnregisterClient


@dataclass
class Seen:
    """What brokers said of all queues at one moment."""

    bounds: dict[MessageQueue, Bounds] = field(default_factory=dict)
    away: dict[str, SkyrocketError] = field(default_factory=dict)  # brokers that gave no answer
    gone: set[str] = field(default_factory=set)  # topics that their brokers have no more


class BrokersAway(ClientError):
    """Brokers that did not answer, as long as was allowed."""

    def __init__(self, what: str, away: Mapping[str, SkyrocketError], seconds: float) -> None:
        told = "; ".join(f"{name}: {error}" for name, error in sorted(away.items()))
        super().__init__(
            f"topics {what}: no answer for {seconds:.1f} s from {told}. Start what is down, check namesrvAddr, or wait "
            "longer with the option brokerAbsenceMs"
        )


class Queues:
    """Watches the queues of one source."""

    def __init__(self, settings: TopicSettings) -> None:
        self._settings = settings
        self._ttl = settings.transport.metadata_ttl_ms / 1000
        self._asked: dict[str, float] = {}  # topic → when its route was asked for
        self._names: tuple[str, ...] = ()
        self._names_asked: float | None = None
        self._introduced: set[str] = set()
        self._checked = settings.wanted.expression_type != SQL92

    async def look(self, known: Collection[MessageQueue] = ()) -> Seen:
        """What there is; `known` are queues of before, by which a deleted topic is told from a broker that is away.

        Raises NoRoute for a topic that never was there.
        """
        connection = await connected(self._settings.cluster)
        seen = Seen()
        try:
            topics = await self._topics(connection)
        except SkyrocketError as error:
            if not known:
                raise
            seen.away["the name servers"] = error
            return seen
        # A checkpoint of another namespace has topics that this source does not mean.
        of_before = {queue.topic for queue in known if self._settings.cluster.has(queue.topic)}
        await asyncio.gather(
            *(
                self._look_at(connection, topic, seen, [queue for queue in known if queue.topic == topic])
                for topic in sorted({*topics, *(of_before if self._settings.subscribed.pattern else ())})
            )
        )
        return seen

    async def _topics(self, connection: SourceClient) -> tuple[str, ...]:
        subscribed = self._settings.subscribed
        if not subscribed.pattern:
            return subscribed.topics or tuple(sorted({queue.topic for queue in subscribed.queues}))
        if self._names_asked is None or time.monotonic() - self._names_asked >= self._ttl:
            found = subscribed.matching(await connection.admin.topics())  # those of the namespace, without it
            self._names = tuple(map(self._settings.cluster.full, found))
            self._names_asked = time.monotonic()
        return self._names

    async def _look_at(self, connection: SourceClient, topic: str, seen: Seen, known: Collection[MessageQueue]) -> None:
        try:
            queues = await self._queues(connection, topic)
        except NoRoute as error:
            await self._no_route(connection, topic, seen, known, error)
            return
        except OptionError:
            raise
        except SkyrocketError as error:
            if not known:
                raise
            seen.away["the name servers"] = error
            return
        if not self._checked:
            await self._check_filter(connection, topic)
        by_broker: dict[str, list[MessageQueue]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker_name, []).append(queue)
        await asyncio.gather(
            *(self._ask(connection, topic, name, asked, seen) for name, asked in sorted(by_broker.items()))
        )

    async def _check_filter(self, connection: SourceClient, topic: str) -> None:
        """Whether brokers evaluate conditions at all; raises OptionError. One that is away is asked the next time."""
        wanted, group = self._settings.wanted, self._settings.group or ANONYMOUS_GROUP
        asked = SubscriptionData(topic=topic, expression=wanted.expression, expression_type=wanted.expression_type)
        try:
            await check_filters(connection.instance, group, [asked])
        except BrokerRefused as refusal:
            raise named(refusal, wanted) from refusal
        except SkyrocketError:
            return
        self._checked = True

    async def _queues(self, connection: SourceClient, topic: str) -> list[MessageQueue]:
        asked = self._asked.get(topic)
        fresh = asked is None or time.monotonic() - asked >= self._ttl
        route = await connection.instance.route(topic, fresh=fresh)
        if fresh:
            self._asked[topic] = time.monotonic()
        assigned = [queue for queue in self._settings.subscribed.queues if queue.topic == topic]
        missing = sorted(set(assigned) - set(route.read_queues))
        with_address = {broker.broker_name for broker in route.data.brokers}
        if missing and any(queue.broker_name in with_address for queue in missing):
            there = ", ".join(f"{queue.broker_name}/{queue.queue_id}" for queue in sorted(route.read_queues))
            names = ", ".join(f"{queue.broker_name}/{queue.queue_id}" for queue in missing)
            raise OptionError(f'option "assign" names queues {names}, which topic {topic} has not; it has {there}')
        return assigned or list(route.read_queues)

    async def _no_route(
        self, connection: SourceClient, topic: str, seen: Seen, known: Collection[MessageQueue], error: NoRoute
    ) -> None:
        """A broker that stops takes its topics out of the name servers: only one that is there can have deleted it."""
        self._asked.pop(topic, None)
        if not known:
            raise error
        registered = set((await connection.admin.cluster()).brokers)
        holders = {queue.broker_name for queue in known}
        absent = holders - registered
        if not absent:
            try:
                await connection.instance.route(topic, fresh=True)
            except NoRoute:
                seen.gone.add(topic)
            else:
                absent = holders  # it came back between the two questions: the next look will see it
        for name in absent:
            seen.away[name] = BrokerAbsent(name, topic, "address")

    async def _ask(
        self, connection: SourceClient, topic: str, broker_name: str, queues: list[MessageQueue], seen: Seen
    ) -> None:
        try:
            seen.bounds.update(await self._with_retries(connection, topic, broker_name, queues))
        except BrokerRefused:
            raise
        except SkyrocketError as error:
            seen.away[broker_name] = error
            self._asked.pop(topic, None)  # perhaps it is somewhere else now

    async def _with_retries(
        self, connection: SourceClient, topic: str, broker_name: str, queues: list[MessageQueue]
    ) -> dict[MessageQueue, Bounds]:
        transport = self._settings.transport
        for attempt in range(transport.retries + 1):
            try:
                return await _bounds(connection, topic, broker_name, queues)
            except BrokerRefused:
                raise
            except SkyrocketError:
                if attempt == transport.retries:
                    raise
                await asyncio.sleep(transport.retry_interval_ms / 1000)
        raise AssertionError("unreachable")

    async def committed(self, queue: MessageQueue) -> int | None:
        """How far the consumer group is."""
        connection = await connected(self._settings.cluster)
        return await connection.admin.committed(self._settings.group, queue)

    async def offset_at(self, queue: MessageQueue, at_ms: int, bounds: Bounds) -> int:
        """The first message that was stored at or after a moment, exactly; the end when there is none."""
        connection = await connected(self._settings.cluster)
        hint = await connection.admin.offset_at(queue, at_ms / 1000) if bounds.low < bounds.high else bounds.high
        reader, rules = connection.reader(), self.plain_rules()
        return await first_at_or_after(
            at_ms, bounds.low, bounds.high, hint, lambda offset: reader.store_time(queue, offset, rules)
        )

    def plain_rules(self) -> RangeRules:
        """To read messages whatever the filter."""
        return RangeRules(
            lost=_must_be_there,
            group=self._settings.group or ANONYMOUS_GROUP,
            in_flight=1,
            timeout=self._settings.transport.timeout_ms / 1000,
            patience=self._settings.transport.absence_ms / 1000,
        )

    async def mean_record_bytes(self, start: Offsets, end: Offsets) -> float:
        """From the first messages of the longest backlog: what a limit in bytes goes by."""
        queue = max(end, key=lambda queue: end[queue] - start.get(queue, end[queue]))
        connection = await connected(self._settings.cluster)
        first = start[queue]
        sample = QueueRange(queue, first, min(end[queue], first + 32))
        pieces = [piece async for group in connection.reader().groups([sample], self.plain_rules()) for piece in group]
        count = sum(piece.offsets.end - piece.offsets.begin for piece in pieces)
        return max(sum(len(piece.body) for piece in pieces) / max(count, 1), 1.0)

    async def commit(self, offsets: Offsets) -> None:
        """Tell brokers how far the group is; those that do not answer hear it next time."""
        connection = await connected(self._settings.cluster)
        await self._introduce(connection, offsets)
        admin, group = connection.admin, self._settings.group
        await asyncio.gather(*(admin.set_offset(group, queue, offset) for queue, offset in sorted(offsets.items())))

    async def _introduce(self, connection: SourceClient, offsets: Offsets) -> None:
        """Once per broker: a group that was never seen has no retry topic, and without it no tool shows its lag."""
        group, instance = self._settings.group, connection.instance
        data = ConsumerData(group, "CONSUME_ACTIVELY", "CLUSTERING", "CONSUME_FROM_LAST_OFFSET")
        body = Heartbeat(instance.client_id, (), (data,)).encode()
        for queue in sorted(offsets):
            if queue.broker_name in self._introduced:
                continue
            address = await instance.master_of(queue)
            await instance.ask(address, HeartBeat(), body, doing=f"introducing group {group}")
            goodbye = UnregisterClient(client_id=instance.client_id, consumer_group=group)
            await instance.ask(address, goodbye, doing=f"leaving group {group}")
            self._introduced.add(queue.broker_name)


async def _bounds(
    connection: SourceClient, topic: str, broker_name: str, queues: list[MessageQueue]
) -> dict[MessageQueue, Bounds]:
    instance = connection.instance
    found = instance.brokers.replica(instance.leader(queues[0]), 0)
    if found is None:
        raise BrokerAbsent(broker_name, topic, "address")
    reply = await instance.ask(
        found[0], GetTopicStatsInfo(topic=topic), doing=f"asking for the offsets of topic {topic}"
    )
    told = TopicStats.decode(reply.body).offsets
    bounds = {}
    for queue in queues:
        if queue in told:
            bounds[queue] = Bounds(max(told[queue].min_offset, 0), told[queue].max_offset)
        else:  # RocketMQ: only queues that may be written to are told, and those that may be read can be more
            low, high = await min_offset(instance, queue), await max_offset(instance, queue)
            bounds[queue] = Bounds(max(low, 0), high)
    return bounds


def _must_be_there(offsets: QueueRange, why: str) -> None:
    raise DataLost([Loss(offsets, why)])
