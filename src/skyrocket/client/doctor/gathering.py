"""Gathers facts: everybody is asked, and who does not answer is a fact as well."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from skyrocket.client.admin.admin import Admin
from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.client.admin.places import BrokerPlace, all_places
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.client.doctor.facts import BrokerFacts, ClusterFacts, GroupFacts, NameServerFacts
from skyrocket.client.doctor.namespaces import shown_info, shown_members
from skyrocket.clock import Clock, SystemClock
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.system_groups import is_system_group
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.bodies.statistics import TopicOffset
from skyrocket.protocol.codes import ResponseCode

T = TypeVar("T")

_AT_ONCE: Final = 16
_SEEMS_LATE_MS: Final = 30 * 60_000


def is_of_applications(topic: str) -> bool:
    """Whether a topic is neither the system's nor a group's."""
    return not is_system_topic(topic) and not topic.startswith((RETRY_PREFIX, DLQ_PREFIX))


@dataclass(frozen=True, slots=True)
class Scope:
    """What to look at: everything, or one group or topic."""

    group: str | None = None
    topic: str | None = None
    sample_seconds: float = 0.0  # between two looks at offsets; 0: one look


class Gatherer:
    """Asks through one admin; nothing that fails ends it.

    Who shares its process with others asks less `at_once`, and rests after each answer.
    """

    def __init__(
        self,
        admin: Admin,
        scope: Scope,
        clock: Clock | None = None,
        *,
        at_once: int = _AT_ONCE,
        rest_seconds: float = 0.0,
    ) -> None:
        self._admin = admin
        self._scope = scope
        self._clock = clock or SystemClock()
        self._slots = asyncio.Semaphore(at_once)
        self._rest_seconds = rest_seconds

    @property
    def _namespace(self) -> str:
        return self._admin.settings.effective_namespace()

    async def gather(self) -> ClusterFacts:
        """All facts of the scope."""
        name_servers = await self._all(map(self._name_server, self._admin.name_servers()))
        facts = ClusterFacts(self._clock.now_ms(), tuple(name_servers))
        places = sorted({place for each in name_servers if each.cluster for place in all_places(each.cluster)})
        if not places:
            return facts
        facts = replace(facts, brokers=tuple(await self._all(map(self._broker, places))))
        alive = [broker.place for broker in facts.answering if broker.place.is_master]
        known = await self._topics(alive)
        topics = {name: configs for name, configs in known.items() if self._scope.topic in (None, name)}
        groups = await self._groups(alive)
        earlier, lags, seconds = await self._two_looks(groups)
        named = [self._group(name, configs, lags, earlier) for name, configs in sorted(groups.items())]
        members = {each.name: each for each in await self._all(named) if self._is_looked_at(each)}
        return replace(
            facts,
            topics=topics,
            topic_names=frozenset(known),
            routes=await self._routes(topics),
            groups=members,
            offsets=await self._offsets(topics, members),
            transactions=tuple(await self._or(self._admin.open_transactions(most=100), [])),
            sample_seconds=seconds,
        )

    def _is_looked_at(self, group: GroupFacts) -> bool:
        wanted = group.members.subscriptions if group.members else ()
        return self._scope.topic is None or bool(group.lags) or self._scope.topic in wanted

    # ── servers ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _name_server(self, address: str) -> NameServerFacts:
        try:
            return NameServerFacts(address, await self._admin.cluster_at(address))
        except SkyrocketError as error:
            unknown = isinstance(error, BrokerRefused) and error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            return NameServerFacts(address, problem=str(error), is_refusal=unknown)

    async def _broker(self, place: BrokerPlace) -> BrokerFacts:
        address = place.address
        facts = BrokerFacts(place, asked_at_ms=self._clock.now_ms())
        try:
            (runtime,) = (await self._admin.runtime_info(broker=address)).values()
            facts = replace(facts, answered_at_ms=self._clock.now_ms())
            (settings,) = (await self._admin.broker_settings(broker=address)).values()
        except SkyrocketError as error:
            return replace(facts, problem=str(error), is_refusal=isinstance(error, BrokerRefused))
        facts = replace(facts, runtime=runtime, settings=settings)
        statuses = list((await self._or(self._admin.ha_status(broker=address), {})).values())
        tables = list((await self._or(self._admin.producers(broker=address), {})).values())
        users = list((await self._or(self._admin.users(broker=address), {})).values())
        return replace(
            facts,
            ha=statuses[0] if statuses else None,
            producers=sum(len(each) for table in tables for each in table.groups.values()),
            users=users[0] if users else (),
        )

    # ── topics and groups ────────────────────────────────────────────────────────────────────────────────────────────

    async def _topics(self, places: list[BrokerPlace]) -> dict[str, dict[BrokerPlace, TopicConfig]]:
        found: dict[str, dict[BrokerPlace, TopicConfig]] = {}
        for place in places:
            for table in (await self._or(self._admin.topic_table(broker=place.address), {})).values():
                for name, config in table.items():
                    found.setdefault(name, {})[place] = config
        clusters = {place.cluster for place in places}
        names = clusters | {f"{cluster}_REPLY_TOPIC" for cluster in clusters} | {place.broker_name for place in places}
        return {name: configs for name, configs in found.items() if name not in names}

    async def _routes(self, topics: Mapping[str, object]) -> dict[str, TopicRoute]:
        async def route(topic: str) -> tuple[str, TopicRoute]:
            found = await self._or(self._admin.route(topic), None)
            return topic, TopicRoute() if found is None else found.data

        return dict(await self._all(route(topic) for topic in topics if is_of_applications(topic)))

    async def _groups(self, places: list[BrokerPlace]) -> dict[str, dict[BrokerPlace, SubscriptionGroup]]:
        found: dict[str, dict[BrokerPlace, SubscriptionGroup]] = {}
        for place in places:
            for table in (await self._or(self._admin.group_table(broker=place.address), {})).values():
                for name, config in table.items():
                    if self._scope.group in (None, name) and not is_system_group(name):
                        found.setdefault(name, {})[place] = config
        return found

    async def _two_looks(
        self, groups: Mapping[str, object]
    ) -> tuple[dict[str, list[QueueLag]], dict[str, list[QueueLag]], float]:
        """Earlier, now, and how many seconds lie between; 0 and the same twice when one look is wanted."""
        began, earlier = self._clock.monotonic(), await self._lags(groups)
        wanted = self._scope.sample_seconds
        if wanted <= 0:
            return earlier, earlier, 0.0
        await asyncio.sleep(wanted)
        seconds = max(self._clock.monotonic() - began, wanted)  # a large cluster answers slowly
        return earlier, await self._lags(groups), seconds

    async def _lags(self, groups: Mapping[str, object]) -> dict[str, list[QueueLag]]:
        found = await self._or(self._admin.all_lag(), {})
        return {
            name: [each for each in found[name] if self._scope.topic in (None, each.queue.topic)]
            for name in groups
            if name in found
        }

    async def _group(
        self,
        name: str,
        configs: Mapping[BrokerPlace, SubscriptionGroup],
        lags: Mapping[str, list[QueueLag]],
        earlier: Mapping[str, list[QueueLag]],
    ) -> GroupFacts:
        facts = GroupFacts(
            name,
            configs,
            lags=tuple(lags.get(name, ())),
            earlier={each.queue: each for each in earlier.get(name, ())},
        )
        facts = replace(facts, waited_ms=await self._waits(facts))
        members = await self._or(self._admin.consumer_connections(name), None)
        if members is None:
            return facts
        infos = {}
        for client in members.connections:
            info = await self._or(self._admin.running_info(name, client.client_id), None)
            if (
                info is not None and info.properties
            ):  # Apache's proxies tell the stacks of gRPC clients, and nothing else
                infos[client.client_id] = shown_info(self._namespace, info)
        return replace(facts, members=shown_members(self._namespace, members), infos=infos)

    async def _waits(self, group: GroupFacts) -> dict[MessageQueue, int]:
        """How long the oldest message has waited that is next in each queue, where that matters."""
        now_ms = self._clock.now_ms()
        waiting = [each for each in group.lags if each.lag > 0]
        is_asked_for = self._scope.group is not None
        topics = {each.queue.topic for each in waiting if is_asked_for or now_ms - each.last_timestamp > _SEEMS_LATE_MS}
        found: dict[MessageQueue, int] = {}
        for topic in sorted(topics):
            found.update(await self._or(self._admin.waited_ms(group.name, topic), {}))
        return found

    async def _offsets(
        self, topics: Mapping[str, object], groups: Mapping[str, GroupFacts]
    ) -> dict[MessageQueue, TopicOffset]:
        consumed = {each.queue.topic for group in groups.values() for each in group.lags}
        own = {prefix + name for name in groups for prefix in (RETRY_PREFIX, DLQ_PREFIX)}
        answers = await self._all(map(self._offsets_of, sorted((consumed | own) & topics.keys())))
        return {queue: offset for answer in answers for queue, offset in answer.items()}

    async def _offsets_of(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        return await self._or(self._admin.topic_offsets(topic), {})

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _or(self, work: Awaitable[T], otherwise: T) -> T:
        """What is told, or something else where nobody tells: an old broker, nobody online, no rights."""
        try:
            return await work
        except SkyrocketError:
            return otherwise

    async def _all(self, work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        async def bounded(one: Coroutine[Any, Any, T]) -> T:
            async with self._slots:
                answer = await one
                if self._rest_seconds:
                    await asyncio.sleep(self._rest_seconds)
                return answer

        questions = list(work)
        try:
            return await asyncio.gather(*map(bounded, questions))
        finally:
            for one in questions:
                one.close()  # those that were never asked, because nobody waits any more
