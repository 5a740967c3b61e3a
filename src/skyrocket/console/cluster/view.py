"""The cluster as all browsers see it: every question is asked once in a while, whoever looks."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.client.admin.places import BrokerPlace, all_places, topics_named_after
from skyrocket.client.admin.side_by_side import each
from skyrocket.client.admin.waiting_messages import PendingTimer
from skyrocket.client.admin.waits import Waits
from skyrocket.client.core.errors import BrokerRefused, NoNameServer, NoRoute, NotOffered
from skyrocket.clock import Clock
from skyrocket.console.cluster import groups, topics
from skyrocket.console.cluster.checkup import Checkup
from skyrocket.console.cluster.name_servers import name_servers
from skyrocket.console.cluster.queries import reported_queries
from skyrocket.console.cluster.runtime import BrokerState, state_of
from skyrocket.console.cluster.shared_answers import SharedAnswer, SharedAnswers
from skyrocket.console.cluster.speeds import Speeds
from skyrocket.console.cluster.trends import Trends
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.codes import ResponseCode
from skyrocket.remoting.errors import RemotingError

_OFTEN_SECONDS: Final = 4.0  # rates and lag; browsers look every five
_RARELY_SECONDS: Final = 15.0  # which topics and groups there are
_MOST_TOPICS: Final = 5000
_MOST_GROUPS: Final = 2000
MOST_TIMERS: Final = 20_000  # that are looked at, for the histogram
_MOST_TIMER_TOPICS: Final = 20
_LOST_BROKERS: Final = 200
_FEW_TOPICS: Final = 100
_PATIENCE_SECONDS: Final = 0.4
_SELDOM_SECONDS: Final = 600.0  # the age of the oldest message: logs are deleted hourly at most
_SETTINGS_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Messages that wait at brokers for something else than a consumer."""

    timers: Mapping[str, int] | None  # by topic; None: these brokers do not tell, or are not there
    halves: int | None


class ClusterView:
    """Shared answers of one cluster; `forget` is called after each change."""

    def __init__(self, admin: Admin, clock: Clock) -> None:
        self._admin = admin
        self._clock = clock
        self._speeds = Speeds()
        self._trends = Trends()
        self.waits = Waits(admin.waited_ms, clock)
        self._seen: dict[str, BrokerPlace] = {}
        self.moved_ms: dict[str, int] = {}  # when each group was last seen to go on
        self.checkup = Checkup(admin, clock)
        self.cluster = SharedAnswer(admin.cluster, _OFTEN_SECONDS, clock)
        self.name_servers = SharedAnswer(lambda: name_servers(admin), _OFTEN_SECONDS, clock)
        self.brokers = SharedAnswer(self._brokers, _OFTEN_SECONDS, clock)
        self.topics = SharedAnswer(self._topics, _RARELY_SECONDS, clock)
        self.groups = SharedAnswer(self._groups, _RARELY_SECONDS, clock)
        self.lags = SharedAnswer(self._lags, _OFTEN_SECONDS, clock)
        self.waiting = SharedAnswer(self._waiting, _RARELY_SECONDS, clock)
        self.topic_figures = SharedAnswers(self._topic_figures, _OFTEN_SECONDS, _MOST_TOPICS, clock)
        self.timers = SharedAnswers(self._timers, _RARELY_SECONDS, _MOST_TIMER_TOPICS, clock)
        self.oldest = SharedAnswers(self._oldest, _SELDOM_SECONDS, _MOST_TOPICS, clock)
        self.settings = SharedAnswer(self._settings, _SETTINGS_SECONDS, clock)
        self.members = SharedAnswers(self._members, _OFTEN_SECONDS, _MOST_GROUPS, clock)
        self.queries = SharedAnswer(lambda: reported_queries(admin), _OFTEN_SECONDS, clock)

    def _single(self) -> tuple[SharedAnswer[Any], ...]:
        return (
            self.cluster,
            self.name_servers,
            self.brokers,
            self.topics,
            self.groups,
            self.lags,
            self.waiting,
            self.settings,
            self.queries,
        )

    def forget(self) -> None:
        """Something was changed: what is asked next is asked anew."""
        for answer in self._single():
            answer.forget()
        self.topic_figures.forget()
        self.members.forget()
        self.oldest.forget()
        self.timers.forget()
        self.checkup.forget()

    async def end(self) -> None:
        """Leave no question open."""
        for answer in self._single():
            await answer.end()
        await self.topic_figures.end()
        await self.members.end()
        await self.oldest.end()
        await self.timers.end()
        await self.checkup.end()

    async def group_figures(self, *, fresh: bool = False, within: float = 0.0) -> dict[str, groups.GroupFigures]:
        """How far each group is; `fresh` and `within` as of `SharedAnswer.get`."""
        now_ms, lags = self._clock.now_ms(), await self.lags.get(fresh=fresh, within=within)
        return {group: groups.figures(queues, self.waits.since(group), now_ms) for group, queues in lags.items()}

    async def figures_of(self, names: Sequence[str]) -> dict[str, topics.TopicFigures]:
        """Of many topics, to sort by: of more than some hundred as they were last seen, for each is a question."""
        if len(names) <= _FEW_TOPICS:
            return await each(list(names), self.topic_figures.get)
        unseen = [name for name in names if self.topic_figures.latest(name) is None]
        asking = asyncio.create_task(each(unseen, self.topic_figures.get))
        try:
            await asyncio.wait({asking}, timeout=_PATIENCE_SECONDS)
        finally:
            asking.cancel()  # what it has heard is kept; the recorder and the next look ask for the rest
            await asyncio.gather(asking, return_exceptions=True)
        return {name: self.topic_figures.latest(name) or topics.NO_FIGURES for name in names}

    async def oldest_of(self, names: Sequence[str]) -> dict[str, int | None]:
        """When the oldest message of each topic was stored, as far as brokers say so soon: each queue is a question."""
        asking = asyncio.create_task(each(list(names), self.oldest.get))
        try:
            await asyncio.wait({asking}, timeout=_PATIENCE_SECONDS / 4)
        finally:
            asking.cancel()  # as above
            await asyncio.gather(asking, return_exceptions=True)
        return {name: self.oldest.latest(name) for name in names}

    def out_per_second(self, group: str, topic: str | None = None) -> float | None:
        """How fast a group goes on, None before the second look."""
        return self._speeds.rate(("out", group, topic))

    def queue_in_per_second(self, queue: MessageQueue, max_offset: int) -> float | None:
        """How fast a queue grows, None before the second look."""
        return self._speeds.look(("in", queue), max_offset, self._clock.monotonic())

    def lag_change(self, group: str, lag: int) -> int | None:
        """How much more waits for it than some minutes ago, None before the second look."""
        return self._trends.change(("lag", group), lag, self._clock.monotonic())

    # ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _brokers(self) -> list[BrokerState]:
        """All that are registered, and those that were since the console began."""
        try:
            places = list(all_places(await self.cluster.get()))
        except (NoNameServer, RemotingError):  # brokers are asked where they were: they may have gone as well
            if not self._seen:
                raise
            places = list(self._seen.values())
        for place in places:
            self._seen[place.address] = place
        gone = [place for address, place in self._seen.items() if address not in {each.address for each in places}]
        for place in gone[:-_LOST_BROKERS]:
            del self._seen[place.address]
        states = await asyncio.gather(*(self._broker(place) for place in places))
        return sorted(
            [*states, *(_lost(place, "it is no longer registered at the name servers") for place in gone)],
            key=lambda state: (state.cluster, state.broker, state.broker_id),
        )

    async def _broker(self, place: BrokerPlace) -> BrokerState:
        try:
            rows = next(iter((await self._admin.runtime_info(broker=place.address)).values()))
        except SkyrocketError as error:
            return _lost(place, str(error))
        return state_of(place.cluster, place.broker_name, place.broker_id, place.address, rows)

    async def _nobody_is_up(self) -> bool:
        """Then there is nothing to ask for, and the pages show which brokers are down."""
        return not any(state.is_up and state.role == "master" for state in await self.brokers.get())

    async def _topics(self) -> dict[str, topics.TopicShape]:
        if await self._nobody_is_up():
            return {}
        info = await self.cluster.get()
        return topics.shapes(await self._admin.topic_table(), topics_named_after(info))

    async def _groups(self) -> dict[str, SubscriptionGroup]:
        return {} if await self._nobody_is_up() else await self._admin.groups()

    async def _lags(self) -> dict[str, list[QueueLag]]:
        lags = {} if await self._nobody_is_up() else await self._admin.all_lag()
        now = self._clock.monotonic()
        for group, queues in lags.items():
            by_topic: dict[str, int] = {}
            for queue in queues:
                topic = queue.queue.topic
                by_topic[topic] = by_topic.get(topic, 0) + max(queue.consumer_offset, 0)
            self._trends.look(("lag", group), sum(max(queue.lag, 0) for queue in queues), now)
            for topic, total in by_topic.items():
                self._speeds.look(("out", group, topic), total, now)
            if self._speeds.look(("out", group, None), sum(by_topic.values()), now):
                self.moved_ms[group] = self._clock.now_ms()
        self.moved_ms = {group: at for group, at in self.moved_ms.items() if group in lags}
        await self.waits.look(lags)
        return lags

    async def _waiting(self) -> Waiting:
        if await self._nobody_is_up():
            return Waiting(None, None)
        try:
            timers: Mapping[str, int] | None = await self._admin.timer_counts()
        except (BrokerRefused, RemotingError):  # RocketMQ 4 has no timers; or one of the brokers is down
            timers = None
        try:
            halves: int | None = len(await self._admin.open_transactions(most=1000))
        except (BrokerRefused, RemotingError):
            halves = None
        return Waiting(timers, halves)

    async def _timers(self, topic: str) -> list[PendingTimer] | None:
        """Soonest first, of one topic or (with "") of all; None at brokers that do not list them."""
        try:
            return await self._admin.pending_timers(topic or None, most=MOST_TIMERS)
        except NotOffered:
            return None

    async def _topic_figures(self, topic: str) -> topics.TopicFigures:
        try:
            places = await self._masters_of(topic)
            stats = list((await self._admin.topic_statistics(topic, places=places)).values())
        except (NoRoute, RemotingError):  # its brokers are gone, or down
            return topics.NO_FIGURES
        rate = self._speeds.look(("in", topic), topics.total_of(stats), self._clock.monotonic())
        return topics.figures(stats, rate)

    async def _oldest(self, topic: str) -> int | None:
        """None where nothing is, or nobody says."""
        try:
            offsets = await self._admin.topic_offsets(topic)
            filled = [queue for queue, offset in offsets.items() if offset.max_offset > offset.min_offset]
            times = (await each(filled, self._admin.earliest_time)).values()
        except (NoRoute, RemotingError, BrokerRefused):
            return None
        return min((time for time in times if time > 0), default=None)

    async def _settings(self) -> dict[str, dict[str, str]]:
        """Of the brokers that are up and say so, by address."""
        found: dict[str, dict[str, str]] = {}
        for state in await self.brokers.get():
            if state.is_up:
                try:
                    (found[state.address],) = (await self._admin.broker_settings(broker=state.address)).values()
                except (BrokerRefused, RemotingError):
                    continue
        return found

    async def _masters_of(self, topic: str) -> list[BrokerPlace]:
        """From what is known of all topics: a question to the name servers less for each."""
        shape = (await self.topics.get()).get(topic)
        if shape is None:
            return []
        places = all_places(await self.cluster.get())
        return [place for place in places if place.is_master and place.broker_name in shape.brokers]

    async def _members(self, group: str) -> ConsumerConnections | None:
        """Who is connected to the masters that are up, which are asked at once; None when nobody is."""
        states = [state for state in await self.brokers.get() if state.is_up and state.role == "master"]
        answers = await asyncio.gather(*(self._members_at(group, state.address) for state in states))
        known = [answer for answer in answers if answer is not None]
        return reduce(_both, known) if known else None

    async def _members_at(self, group: str, address: str) -> ConsumerConnections | None:
        try:
            return await self._admin.consumer_connections(group, broker=address)
        except BrokerRefused as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
        except RemotingError:  # it has gone down since
            pass
        return None


def _both(one: ConsumerConnections, other: ConsumerConnections) -> ConsumerConnections:
    clients = {client.client_id: client for client in (*one.connections, *other.connections)}
    return replace(one, connections=tuple(clients.values()), subscriptions={**one.subscriptions, **other.subscriptions})


def _lost(place: BrokerPlace, why: str) -> BrokerState:
    role = "master" if place.is_master else "slave"
    return BrokerState(place.cluster, place.broker_name, place.broker_id, place.address, role, is_up=False, trouble=why)
