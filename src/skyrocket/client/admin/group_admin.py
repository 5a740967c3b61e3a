"""Consumer groups: create, change and delete them, who is a member, and what they consume."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from skyrocket.client.admin.patches import patched
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.client.core.errors import BrokerRefused, NoRoute, NotFound
from skyrocket.client.core.names import check_group, retry_topic, unwrap, wrap
from skyrocket.errors import SkyrocketError
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.model.words import counted
from skyrocket.protocol.bodies.assignment import RequestMode
from skyrocket.protocol.bodies.connections import ClientConnection, ConsumerConnections, ProducerConnections
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP, GroupConfigList
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.bodies.topics import TopicList
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.admin_groups import (
    DeleteSubscriptionGroup,
    GetProducerConnectionList,
    UpdateAndCreateSubscriptionGroup,
    UpdateAndCreateSubscriptionGroupList,
    UpdateAndGetGroupForbidden,
)
from skyrocket.protocol.requests.consumers import GetConsumerConnectionList
from skyrocket.protocol.requests.pop import SetMessageRequestMode
from skyrocket.protocol.requests.query import QueryTopicsByConsumer
from skyrocket.protocol.requests.server_to_client import GetConsumerRunningInfo
from skyrocket.protocol.requests.table_pages import GroupPages
from skyrocket.remoting.errors import RemotingError


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A group on one broker as it is and as it shall be; `before` is None where it is not yet."""

    place: BrokerPlace
    before: SubscriptionGroup | None
    after: SubscriptionGroup


class GroupAdmin(TopicAdmin):
    """Operations on groups."""

    async def create_group(
        self, group: SubscriptionGroup | str, *, cluster: str | None = None, broker: str | None = None
    ) -> None:
        """Create it or replace it, on all masters, or those of a cluster or a broker."""
        wanted = SubscriptionGroup(group) if isinstance(group, str) else group
        check_group(wanted.name)
        await self._each(await self._places(cluster, broker), lambda place: self._put_group(place, wanted))

    async def _put_group(self, place: BrokerPlace, group: SubscriptionGroup) -> None:
        body = SUBSCRIPTION_GROUP.encode(replace(group, name=wrap(self._namespace, group.name)))
        await self._ask(place.address, UpdateAndCreateSubscriptionGroup(), body, doing=f"creating group {group.name}")

    async def put_groups(
        self, groups: Sequence[SubscriptionGroup], *, cluster: str | None = None, broker: str | None = None
    ) -> list[BrokerPlace]:
        """Many at once; raises TooOld at brokers before RocketMQ 5.2. Where it was done."""
        for group in groups:
            check_group(group.name)
        full = tuple(replace(group, name=wrap(self._namespace, group.name)) for group in groups)
        body = GroupConfigList(full).encode()

        async def put(place: BrokerPlace) -> None:
            request = UpdateAndCreateSubscriptionGroupList()
            await self._since_5(place, request, f"creating {counted(len(full), 'group')}", body)

        return list(await self._each(await self._places(cluster, broker), put))

    async def group_changes(
        self, group: str, wanted: Mapping[str, Any], *, cluster: str | None = None, broker: str | None = None
    ) -> list[GroupChange]:
        """What these fields of SubscriptionGroup would change, broker by broker; all others stay.

        Nothing is done: `apply_group_changes` does it. `attributes` are changes as well, where None removes. Raises
        NotFound when no broker has the group.
        """
        changes = []
        for place, before in (await self.group_configs(group, cluster=cluster, broker=broker)).items():
            fields = dict(wanted)
            if "attributes" in fields:
                kept = {**before.attributes, **fields["attributes"]}
                fields["attributes"] = {name: value for name, value in kept.items() if value is not None}
            after = replace(before, **fields)
            if after != before:
                changes.append(GroupChange(place, before, after))
        return changes

    async def apply_group_changes(self, changes: Sequence[GroupChange]) -> None:
        """Do what `group_changes` has found; what else was changed since then stays so."""
        by_place = {change.place: change for change in changes}

        async def put(place: BrokerPlace) -> None:
            before, after = by_place[place].before, by_place[place].after
            kept = before.attributes if before is not None else {}
            # RocketMQ takes changes of attributes: +name=value adds or replaces, -name removes.
            new = {f"+{name}": value for name, value in after.attributes.items() if kept.get(name) != value}
            gone = {f"-{name}": "" for name in kept if name not in after.attributes}
            if before is not None:
                (now,) = (await self.group_configs(before.name, broker=place.address)).values()
                after = patched(now, before, after)
            await self._put_group(place, replace(after, attributes=new | gone))

        await self._each(list(by_place), put)

    async def delete_group(
        self, group: str, *, cluster: str | None = None, broker: str | None = None, with_offsets: bool = False
    ) -> None:
        """From all masters; retry topic and dead letters stay: `delete_topic` removes them."""
        full = wrap(self._namespace, group)
        request = DeleteSubscriptionGroup(group_name=full, clean_offset=with_offsets, remove_offset=with_offsets)

        async def delete(place: BrokerPlace) -> None:
            await self._ask(place.address, request, doing=f"deleting group {group}")

        await self._each(await self._places(cluster, broker), delete)

    async def groups(self, *, cluster: str | None = None) -> dict[str, SubscriptionGroup]:
        """All groups by name."""
        found: dict[str, SubscriptionGroup] = {}
        for table in (await self.group_table(cluster=cluster)).values():
            found.update(table)
        return found

    async def group_table(
        self, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, dict[str, SubscriptionGroup]]:
        """All groups of masters, as each has them; those of the namespace, if there is one."""

        async def table(place: BrokerPlace) -> dict[str, SubscriptionGroup]:
            pages = GroupPages()
            while (request := pages.request) is not None:
                reply = await self._ask(place.address, request, doing="asking for groups")
                pages.take(reply.header, reply.body)
            names = {full: unwrap(self._namespace, full) for full in pages.table.groups}
            return {
                name: replace(pages.table.groups[full], name=name)
                for full, name in names.items()
                if wrap(self._namespace, name) == full
            }

        return await self._each(await self._places(cluster, broker), table)

    async def group_configs(
        self, group: str, *, cluster: str | None = None, broker: str | None = None
    ) -> dict[BrokerPlace, SubscriptionGroup]:
        """As every master that has it keeps it; raises NotFound when none does."""
        name = unwrap(self._namespace, group)
        tables = await self.group_table(cluster=cluster, broker=broker)
        found = {place: table[name] for place, table in tables.items() if name in table}
        if not found:
            raise NotFound("there is no group {group}: check its name, or create it", group=group)
        return found

    async def set_consume_mode(
        self,
        group: str,
        topic: str,
        mode: str,
        *,
        pop_share_queues: int = 0,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> list[BrokerPlace]:
        """Let a group PULL or POP a topic, whatever its clients are; raises TooOld at RocketMQ 4.x."""
        body = RequestMode(self._full(topic), wrap(self._namespace, group), mode, pop_share_queues).encode()

        async def put(place: BrokerPlace) -> None:
            await self._since_5(place, SetMessageRequestMode(), f"setting how group {group} consumes", body)

        return list(await self._each(await self._places(cluster, broker), put))

    async def forbid_reading(self, group: str, topic: str, *, forbidden: bool) -> None:
        """Let a group read a topic no more, or again; raises TooOld at RocketMQ 4.x."""
        request = UpdateAndGetGroupForbidden(
            group=wrap(self._namespace, group), topic=self._full(topic), readable=not forbidden
        )

        async def put(place: BrokerPlace) -> None:
            await self._since_5(place, request, f"{'forbidding' if forbidden else 'allowing'} group {group} to read")

        await self._each(await self._places_of(self._full(topic)), put)

    # ── members ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def consumer_connections(self, group: str, *, broker: str | None = None) -> ConsumerConnections:
        """The members of a group that any broker knows, and what they subscribe to; raises BrokerRefused (206) if none.

        All brokers of its retry topic are asked, or the named one.
        """
        full = wrap(self._namespace, group)
        request = GetConsumerConnectionList(consumer_group=full, with_times=True)

        async def members(place: BrokerPlace) -> ConsumerConnections | BrokerRefused:
            try:
                reply = await self._ask(place.address, request, doing=f"asking who is in group {group}")
            except BrokerRefused as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    raise
                return error
            return ConsumerConnections.decode(reply.body)

        places = await self._places_of_group(full) if broker is None else await self._places(None, broker)
        clients: dict[str, ClientConnection] = {}
        subscriptions: dict[str, SubscriptionData] = {}
        first: ConsumerConnections | None = None
        nobody: BrokerRefused | None = None
        for known in (await self._each(places, members)).values():
            if isinstance(known, BrokerRefused):
                nobody = known
                continue
            first = first or known
            clients.update((client.client_id, client) for client in known.connections)
            subscriptions.update(known.subscriptions)
        if first is None:
            assert nobody is not None
            raise nobody
        return replace(first, connections=tuple(clients.values()), subscriptions=subscriptions)

    async def _places_of_group(self, full_group: str) -> list[BrokerPlace]:
        """The brokers that have its retry topic; all of them for a group without one, as those that pop in order."""
        try:
            return await self._places_of(retry_topic(full_group))
        except NoRoute as error:
            group = unwrap(self._namespace, full_group)
            if not any(group in table for table in (await self.group_table()).values()):
                raise NotFound(
                    "no broker knows consumer group {group}: check its name and the namespace (`skyrocket group "
                    "list`, Admin.groups), or name a topic if its members only assign()",
                    group=group,
                ) from error
            return await self._places(None)

    async def producer_connections(self, group: str, topic: str) -> ProducerConnections:
        """The producers of a group that a broker of the topic knows."""
        address = await self._instance_of().any_broker_of(self._full(topic))
        request = GetProducerConnectionList(producer_group=wrap(self._namespace, group))
        reply = await self._ask(address, request, doing=f"asking for producers of group {group}")
        return ProducerConnections.decode(reply.body)

    async def running_info(self, group: str, client_id: str, *, with_stacks: bool = False) -> ConsumerRunningInfo:
        """What a member of a group tells about itself; brokers pass the question on."""
        full = wrap(self._namespace, group)
        request = GetConsumerRunningInfo(consumer_group=full, client_id=client_id, jstack_enable=with_stacks)
        refusal: SkyrocketError | None = None
        for place in await self._places_of_group(full):
            try:
                reply = await self._ask(place.address, request, doing=f"asking {client_id} how it is")
            except (BrokerRefused, RemotingError) as error:  # it is connected to another broker, perhaps
                refusal = error
                continue
            return ConsumerRunningInfo.decode(reply.body)
        assert refusal is not None
        raise refusal

    async def topics_of_group(self, group: str) -> list[str]:
        """What a group has consumed or subscribes to, without its retry topic; raises TooOld at RocketMQ 4.x."""
        full = wrap(self._namespace, group)

        async def topics(place: BrokerPlace) -> tuple[str, ...]:
            request = QueryTopicsByConsumer(group=full)
            reply = await self._since_5(place, request, f"asking what group {group} consumes")
            return TopicList.decode(reply.body).topics

        found = await self._each(await self._places(None), topics)
        names = {name for each in found.values() for name in each}
        own = {retry_topic(full), DLQ_PREFIX + full}
        return sorted(unwrap(self._namespace, name) for name in names - own)
