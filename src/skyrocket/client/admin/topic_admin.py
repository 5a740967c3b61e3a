"""Topics: create, change and delete them, and the offsets of their queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from skyrocket.client.admin.admin_calls import AdminCalls, moment_ms
from skyrocket.client.admin.patches import patched
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.consumer.start_position import max_offset, min_offset, offset_at
from skyrocket.client.core.errors import BrokerRefused, ClientError, NotFound, WrongUse
from skyrocket.client.core.names import TEMPLATE_TOPIC, check_creatable, unwrap
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.model.topic_config import MOST_QUEUES, SINGLE_TAG, TopicConfig
from skyrocket.model.words import counted
from skyrocket.protocol.bodies.groups import GroupList
from skyrocket.protocol.bodies.statistics import TopicOffset, TopicStats
from skyrocket.protocol.bodies.topics import TOPIC_CONFIG, TopicConfigList, TopicList
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestNotSupported
from skyrocket.protocol.requests.admin_topics import (
    CleanUnusedTopic,
    DeleteTopicInBroker,
    GetTopicConfig,
    GetTopicStatsInfo,
    UpdateAndCreateTopic,
    UpdateAndCreateTopicList,
)
from skyrocket.protocol.requests.name_server import DeleteTopicInNamesrv, GetAllTopicList, GetTopicsByCluster
from skyrocket.protocol.requests.offsets import GetEarliestMsgStoreTime
from skyrocket.protocol.requests.query import QueryTopicConsumeByWho
from skyrocket.protocol.requests.table_pages import TopicPages


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic on one broker as it is and as it shall be; `before` is None where it is not yet."""

    place: BrokerPlace
    before: TopicConfig | None
    after: TopicConfig


class TopicAdmin(AdminCalls):
    """Operations on topics."""

    async def create_topic(
        self,
        topic: str,
        queues: int = 8,
        *,
        permission: int = PERM_READ | PERM_WRITE,
        cluster: str | None = None,
        broker: str | None = None,
        ordered: bool = False,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Create it or replace it, on all masters, or those of a cluster or a broker (its name or address)."""
        config = TopicConfig(
            topic, queues, queues, permission, SINGLE_TAG, ordered=ordered, attributes=dict(attributes or {})
        )
        await self.put_topic(config, cluster=cluster, broker=broker)

    async def put_topic(
        self,
        config: TopicConfig,
        *,
        cluster: str | None = None,
        broker: str | None = None,
        places: Sequence[BrokerPlace] | None = None,
    ) -> list[BrokerPlace]:
        """Create a topic or replace it by this one; attributes that are not named stay. Where it was done.

        Who knows the masters names the places.
        """
        check_creatable(config.name)
        _check_queues(config)
        chosen = list(places) if places is not None else await self._places(cluster, broker)
        await self._each(chosen, lambda place: self._put_topic(place, config, config.attributes))
        return chosen

    async def put_topics(
        self, configs: Sequence[TopicConfig], *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """Many at once; brokers of RocketMQ before 5.2 refuse it."""
        for config in configs:
            check_creatable(config.name)
            _check_queues(config)
        full = tuple(replace(config, name=self._full(config.name)) for config in configs)
        body = TopicConfigList(full).encode()

        async def put(place: BrokerPlace) -> None:
            await self._ask(
                place.address, UpdateAndCreateTopicList(), body, doing=f"creating {counted(len(full), 'topic')}"
            )

        places = await self._places(cluster, broker)
        await self._each(places, put)
        return places

    async def _put_topic(self, place: BrokerPlace, config: TopicConfig, attributes: Mapping[str, str | None]) -> None:
        changes = [f"-{name}" if value is None else f"+{name}={value}" for name, value in attributes.items()]
        request = UpdateAndCreateTopic(
            topic=self._full(config.name),
            default_topic=TEMPLATE_TOPIC,
            read_queue_nums=config.read_queues,
            write_queue_nums=config.write_queues,
            perm=config.permission,
            topic_filter_type=config.filter_type,
            order=config.ordered,
            topic_sys_flag=config.sys_flag,
            attributes=",".join(changes) or None,
        )
        await self._ask(place.address, request, doing=f"creating topic {config.name}")

    async def topic_changes(
        self,
        topic: str,
        *,
        read_queues: int | None = None,
        write_queues: int | None = None,
        permission: int | None = None,
        ordered: bool | None = None,
        attributes: Mapping[str, str | None] | None = None,
        broker: str | None = None,
    ) -> list[TopicChange]:
        """What naming these fields would change, broker by broker; all others stay. An attribute of None is removed.

        Nothing is done: `apply_topic_changes` does it. Raises NotFound when no broker has the topic.
        """
        wanted = {
            name: value
            for name, value in {
                "read_queues": read_queues,
                "write_queues": write_queues,
                "permission": permission,
                "ordered": ordered,
            }.items()
            if value is not None
        }
        changes = []
        for place, before in (await self.topic_configs(topic, broker=broker)).items():
            kept = {**before.attributes, **(attributes or {})}
            after = replace(
                before,
                attributes={name: value for name, value in kept.items() if value is not None},
                **wanted,  # type: ignore[arg-type]
            )
            if after != before:
                changes.append(TopicChange(place, before, after))
        return changes

    async def reading_changes(self, topic: str, *, allowed: bool) -> list[TopicChange]:
        """What taking the right to read off a topic, or giving it back, would change, broker by broker.

        Without it brokers refuse pulls and pops of every group, and tools as well; writing goes on, and retries are in
        topics of their own. Nothing is done: `apply_topic_changes` does it.
        """
        return [
            TopicChange(place, before, after)
            for place, before in (await self.topic_configs(topic)).items()
            if (after := replace(before, permission=_with_reading(before.permission, allowed=allowed))) != before
        ]

    async def copied_topic(self, source: str, target: str) -> list[TopicChange]:
        """A new topic with the settings of another one on the same brokers; no messages.

        Nothing is done: `apply_topic_changes` does it. Raises WrongUse when the new one is there already.
        """
        check_creatable(target)
        configs = await self.topic_configs(source)
        if target in await self.topics():
            raise WrongUse("topic {target} is there already: choose another name", target=target)
        return [TopicChange(place, None, replace(config, name=target)) for place, config in configs.items()]

    async def apply_topic_changes(self, changes: Sequence[TopicChange]) -> None:
        """Do what `topic_changes` has found; what else was changed since then stays so."""
        by_place = {change.place: change for change in changes}

        async def put(place: BrokerPlace) -> None:
            before, after = by_place[place].before, by_place[place].after
            known = before.attributes if before is not None else {}
            gone: dict[str, str | None] = {name: None for name in known if name not in after.attributes}
            new = {name: value for name, value in after.attributes.items() if known.get(name) != value}
            if before is not None:
                after = patched(await self._topic_config(place, before.name), before, after)
            await self._put_topic(place, after, gone | new)

        await self._each(list(by_place), put)

    async def check_attributes_kept(self, changes: Sequence[TopicChange]) -> None:
        """RocketMQ 4.x takes attributes without a word and forgets them, a topic's type too: raises ClientError then.

        For after `apply_topic_changes`: everything else has been done.
        """
        wanted: dict[BrokerPlace, dict[str, Mapping[str, str]]] = {}
        for change in changes:
            if change.after.attributes:
                wanted.setdefault(change.place, {})[change.after.name] = change.after.attributes
        tables = await self._each(list(wanted), self._topic_table)
        lost = [
            f"topic {name} is at {place}, but without {', '.join(missing)}"
            for place, table in tables.items()
            for name, attributes in wanted[place].items()
            if (kept := table.get(self._full(name))) is not None
            if (missing := sorted(key for key, value in attributes.items() if kept.attributes.get(key) != value))
        ]
        if lost:
            raise ClientError(
                "{lost}: that broker keeps no attributes, they came with RocketMQ 5.0", lost="; ".join(lost)
            )

    async def delete_topic(self, topic: str, *, cluster: str | None = None) -> None:
        """From brokers and name servers."""
        request = DeleteTopicInBroker(topic=self._full(topic))

        async def delete(place: BrokerPlace) -> None:
            await self._ask(place.address, request, doing=f"deleting topic {topic}")

        await self._each(await self._places(cluster), delete)

        async def forget(place: BrokerPlace) -> None:
            gone = DeleteTopicInNamesrv(topic=self._full(topic), cluster_name=cluster)
            await self._ask(place.address, gone, doing=f"deleting topic {topic}")

        await self._each(self._name_server_places(), forget)
        self._instance.routes.pop(self._full(topic), None)

    async def topics(self, *, cluster: str | None = None) -> list[str]:
        """All that the name servers know; those of the namespace, if there is one."""
        request = GetAllTopicList() if cluster is None else GetTopicsByCluster(cluster=cluster)
        names = TopicList.decode((await self._names(request)).body).topics
        if not self._namespace:
            return sorted(names)
        return sorted(unwrap(self._namespace, name) for name in names if unwrap(self._namespace, name) != name)

    async def topic_config(self, topic: str) -> TopicConfig:
        """As a broker has it."""
        address = await self._instance_of().any_broker_of(self._full(topic))
        return await self._topic_config(BrokerPlace("", "", 0, address), topic)

    async def topic_configs(self, topic: str, *, broker: str | None = None) -> dict[BrokerPlace, TopicConfig]:
        """As every master of its route has it; raises NoRoute, or NotFound when the broker does not have it."""
        places = await self._places_of(self._full(topic))
        if broker is not None:
            places = [place for place in places if broker in (place.broker_name, place.address)]
            if not places:
                raise NotFound(
                    "topic {topic} has no route to a master at {broker}: look at `topic route {topic}`",
                    topic=topic,
                    broker=broker,
                )
        return await self._each(places, lambda place: self._topic_config(place, topic))

    async def _topic_config(self, place: BrokerPlace, topic: str) -> TopicConfig:
        full = self._full(topic)
        try:
            reply = await self._ask(place.address, GetTopicConfig(topic=full), doing=f"asking for topic {topic}")
            found = TOPIC_CONFIG.decode(reply.body)
        except BrokerRefused as error:
            if isinstance(error.__cause__, RequestNotSupported):  # RocketMQ 4.x
                table = await self._topic_table(place)
                if full not in table:
                    raise NotFound("broker {place} does not have topic {topic}", place=place, topic=topic) from error
                found = table[full]
            elif error.code == ResponseCode.TOPIC_NOT_EXIST:
                raise NotFound("broker {place} does not have topic {topic}", place=place, topic=topic) from error
            else:
                raise
        return replace(found, name=topic)

    async def topic_table(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, dict[str, TopicConfig]]:
        """All topics of masters, as each has them."""
        tables = await self._each(await self._places(cluster, broker), self._topic_table)
        return {
            place: {
                unwrap(self._namespace, name): replace(config, name=unwrap(self._namespace, name))
                for name, config in table.items()
                if not self._namespace or unwrap(self._namespace, name) != name
            }
            for place, table in tables.items()
        }

    async def _topic_table(self, place: BrokerPlace) -> dict[str, TopicConfig]:
        pages = TopicPages()
        while (request := pages.request) is not None:
            reply = await self._ask(place.address, request, doing="asking for topics")
            pages.take(reply.header, reply.body)
        return dict(pages.table.topics)

    async def topic_offsets(self, topic: str) -> dict[MessageQueue, TopicOffset]:
        """First and last offset of every queue."""
        found: dict[MessageQueue, TopicOffset] = {}
        for stats in (await self.topic_statistics(topic)).values():
            found.update(stats.offsets)
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def topic_statistics(
        self, topic: str, *, places: Sequence[BrokerPlace] | None = None
    ) -> dict[BrokerPlace, TopicStats]:
        """Offsets of its queues and the rate of its writes by broker; who knows its masters names the places."""

        async def statistics(place: BrokerPlace) -> TopicStats:
            request = GetTopicStatsInfo(topic=self._full(topic))
            reply = await self._ask(place.address, request, doing=f"asking for the offsets of topic {topic}")
            return TopicStats.decode(reply.body)

        return await self._each(places or await self._places_of(self._full(topic)), statistics)

    async def groups_of_topic(self, topic: str) -> list[str]:
        """Who consumes it, as all of its brokers know."""

        async def groups(place: BrokerPlace) -> tuple[str, ...]:
            request = QueryTopicConsumeByWho(topic=self._full(topic))
            reply = await self._ask(place.address, request, doing=f"asking who consumes topic {topic}")
            return GroupList.decode(reply.body).groups

        found = await self._each(await self._places_of(self._full(topic)), groups)
        return sorted({unwrap(self._namespace, group) for names in found.values() for group in names})

    async def clean_unused_topics(self, *, cluster: str | None = None, broker: str | None = None) -> None:
        """Remove queue files of topics that are gone."""

        async def clean(place: BrokerPlace) -> None:
            await self._ask(place.address, CleanUnusedTopic(), doing="cleaning unused topics")

        await self._each(await self._places(cluster, broker), clean)

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that can be read."""
        return [self._shown(queue) for queue in sorted((await self.route(topic)).read_queues)]

    async def max_offset(self, queue: MessageQueue) -> int:
        """The offset of the next message."""
        full, instance = self._full_queue(queue), self._instance_of()
        return await self._ask_master(full, lambda seconds: max_offset(instance, full, timeout=seconds))

    async def min_offset(self, queue: MessageQueue) -> int:
        """The offset of the first message that is still there."""
        full, instance = self._full_queue(queue), self._instance_of()
        return await self._ask_master(full, lambda seconds: min_offset(instance, full, timeout=seconds))

    async def offset_at(self, queue: MessageQueue, moment: datetime | float) -> int:
        """The first message stored at or after a moment."""
        full, instance = self._full_queue(queue), self._instance_of()
        at_ms = moment_ms(moment)
        return await self._ask_master(full, lambda seconds: offset_at(instance, full, at_ms, timeout=seconds))

    async def earliest_time(self, queue: MessageQueue) -> int:
        """When the first message that is still there was stored, in ms since 1970; -1 for an empty queue."""
        full = self._full_queue(queue)
        request = GetEarliestMsgStoreTime(topic=full.topic, queue_id=full.queue_id, broker_name=full.broker_name)
        address = await self._instance_of().master_of(full)
        return (await self._ask(address, request, doing=f"asking for the first time of {queue}")).header.timestamp


def _with_reading(permission: int, *, allowed: bool) -> int:
    return permission | PERM_READ if allowed else permission & ~PERM_READ


def _check_queues(config: TopicConfig) -> None:
    counts = (config.read_queues, config.write_queues)
    if not all(type(count) is int and 0 < count <= MOST_QUEUES for count in counts):
        raise WrongUse(
            "topic {name} cannot have {read_queues!r} read and {write_queues!r} write queues: 1 to "
            "{limit:,} are allowed; permission=4 stops writing",
            name=config.name,
            read_queues=config.read_queues,
            write_queues=config.write_queues,
            limit=MOST_QUEUES,
        )
