"""Consumer groups: create and delete them, who is a member, how far they are, and how to move them."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from skyrocket.client.admin.admin_calls import moment_ms
from skyrocket.client.admin.reset_preview import QueueMove, ResetPreview
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.client.core.names import check_group, retry_topic, wrap
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.subscription_group import SubscriptionGroup
from skyrocket.protocol.bodies.connections import ConsumerConnections, ProducerConnections
from skyrocket.protocol.bodies.groups import SUBSCRIPTION_GROUP
from skyrocket.protocol.bodies.offsets import ResetOffsets
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.bodies.statistics import ConsumeStats, OffsetLag
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.admin_groups import (
    DeleteSubscriptionGroup,
    GetConsumerConnectionList,
    GetConsumeStats,
    GetProducerConnectionList,
    UpdateAndCreateSubscriptionGroup,
)
from skyrocket.protocol.requests.offsets import CloneGroupOffset, QueryConsumerOffset, ResetOffset, UpdateConsumerOffset
from skyrocket.protocol.requests.server_to_client import GetConsumerRunningInfo
from skyrocket.protocol.requests.table_pages import GroupPages

_TO_THE_END: Final = -1


@dataclass(frozen=True, slots=True)
class QueueLag:
    """How far a group is in one queue."""

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    last_timestamp: int

    @property
    def lag(self) -> int:
        """Messages that wait."""
        return self.broker_offset - self.consumer_offset


class GroupAdmin(TopicAdmin):
    """Operations on groups and their offsets; offsets are moved to those of a topic's queues."""

    async def create_group(self, group: SubscriptionGroup | str, *, cluster: str | None = None) -> None:
        """Create it or change it, on all masters."""
        wanted = SubscriptionGroup(group) if isinstance(group, str) else group
        check_group(wanted.name)
        body = SUBSCRIPTION_GROUP.encode(replace(wanted, name=wrap(self._namespace, wanted.name)))
        for address in await self._masters(cluster):
            request = UpdateAndCreateSubscriptionGroup()
            await self._ask(address, request, body, doing=f"creating group {wanted.name}")

    async def delete_group(self, group: str, *, cluster: str | None = None, with_offsets: bool = False) -> None:
        """From all masters."""
        request = DeleteSubscriptionGroup(group_name=wrap(self._namespace, group), clean_offset=with_offsets)
        for address in await self._masters(cluster):
            await self._ask(address, request, doing=f"deleting group {group}")

    async def groups(self, *, cluster: str | None = None) -> dict[str, SubscriptionGroup]:
        """All groups by name."""
        found: dict[str, SubscriptionGroup] = {}
        for address in await self._masters(cluster):
            pages = GroupPages()
            while (request := pages.request) is not None:
                reply = await self._ask(address, request, doing="asking for groups")
                pages.take(reply.header, reply.body)
            found.update(pages.table.groups)
        return found

    async def consumer_connections(self, group: str) -> ConsumerConnections:
        """The members of a group and what they subscribe to; raises BrokerRefused (206) when nobody is there."""
        full = wrap(self._namespace, group)
        address = await self._instance_of().any_broker_of(retry_topic(full))
        request = GetConsumerConnectionList(consumer_group=full)
        reply = await self._ask(address, request, doing=f"asking who is in group {group}")
        return ConsumerConnections.decode(reply.body)

    async def producer_connections(self, group: str, topic: str) -> ProducerConnections:
        """The producers of a group that a broker of the topic knows."""
        address = await self._instance_of().any_broker_of(self._full(topic))
        request = GetProducerConnectionList(producer_group=wrap(self._namespace, group))
        reply = await self._ask(address, request, doing=f"asking for producers of group {group}")
        return ProducerConnections.decode(reply.body)

    async def running_info(self, group: str, client_id: str, *, with_stacks: bool = False) -> ConsumerRunningInfo:
        """What a member of a group tells about itself."""
        full = wrap(self._namespace, group)
        address = await self._instance_of().any_broker_of(retry_topic(full))
        request = GetConsumerRunningInfo(consumer_group=full, client_id=client_id, jstack_enable=with_stacks)
        reply = await self._ask(address, request, doing=f"asking {client_id} how it is")
        return ConsumerRunningInfo.decode(reply.body)

    # ── offsets of groups ────────────────────────────────────────────────────────────────────────────────────────────

    async def consumer_lag(self, group: str, topic: str | None = None) -> list[QueueLag]:
        """How far a group is in each queue."""
        full = wrap(self._namespace, group)
        route_topic = retry_topic(full) if topic is None else self._full(topic)
        lags: dict[MessageQueue, OffsetLag] = {}
        for address in await self._masters_of(route_topic):
            request = GetConsumeStats(consumer_group=full, topic=None if topic is None else self._full(topic))
            reply = await self._ask(address, request, doing=f"asking how far group {group} is")
            lags.update(ConsumeStats.decode(reply.body).offsets)
        return [
            QueueLag(self._shown(queue), lag.broker_offset, lag.consumer_offset, lag.last_timestamp)
            for queue, lag in sorted(lags.items())
        ]

    async def committed(self, group: str, queue: MessageQueue) -> int | None:
        """The offset that a group goes on with, None if it has none."""
        full = self._full_queue(queue)
        request = QueryConsumerOffset(
            consumer_group=wrap(self._namespace, group),
            topic=full.topic,
            queue_id=full.queue_id,
            set_zero_if_not_found=False,
            broker_name=full.broker_name,
        )
        address = await self._instance_of().master_of(full)
        try:
            return (await self._ask(address, request, doing=f"asking how far group {group} is")).header.offset
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def set_offset(self, group: str, queue: MessageQueue, offset: int) -> None:
        """For a group that is not running; members that run would overwrite it."""
        full = self._full_queue(queue)
        request = UpdateConsumerOffset(
            consumer_group=wrap(self._namespace, group),
            topic=full.topic,
            queue_id=full.queue_id,
            commit_offset=offset,
            broker_name=full.broker_name,
        )
        address = await self._instance_of().master_of(full)
        await self._ask(address, request, doing=f"setting an offset of group {group}")

    async def reset_offsets(
        self, group: str, topic: str, moment: datetime | float | None, *, force: bool = True
    ) -> dict[MessageQueue, int]:
        """Let a group consume anew from a moment on, or (None) go to the end; running members are told by brokers."""
        timestamp = _TO_THE_END if moment is None else moment_ms(moment)
        full = self._full(topic)
        request = ResetOffset(topic=full, group=wrap(self._namespace, group), timestamp=timestamp, is_force=force)
        found: dict[MessageQueue, int] = {}
        try:
            for address in await self._masters_of(full):
                reply = await self._ask(address, request, doing=f"resetting group {group}")
                found.update(ResetOffsets.decode(reply.body).offsets)
        except BrokerRefused as error:
            if error.code not in (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.REQUEST_CODE_NOT_SUPPORTED):
                raise
            found = await self._reset_offline(group, topic, moment)  # nobody runs who could be told
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def _reset_offline(self, group: str, topic: str, moment: datetime | float | None) -> dict[MessageQueue, int]:
        found: dict[MessageQueue, int] = {}
        for queue in await self.queues(topic):
            offset = await (self.max_offset(queue) if moment is None else self.offset_at(queue, moment))
            await self.set_offset(group, queue, offset)
            found[queue] = offset
        return found

    async def preview_reset(self, group: str, topic: str, moment: datetime | float | None) -> ResetPreview:
        """What `reset_offsets` with the same arguments would skip or repeat; changes nothing."""
        moves = await asyncio.gather(*(self._move(group, queue, moment) for queue in await self.queues(topic)))
        return ResetPreview(group, topic, tuple(moves))

    async def _move(self, group: str, queue: MessageQueue, moment: datetime | float | None) -> QueueMove:
        first, end = await self.min_offset(queue), await self.max_offset(queue)
        target = end if moment is None else await self.offset_at(queue, moment)
        return QueueMove(queue, await self.committed(group, queue), max(target, 0), max(first, 0), end)

    async def clone_offsets(self, source: str, target: str, topic: str, *, even_if_online: bool = True) -> None:
        """Let a group go on in a topic where another one is; members of the target that run would overwrite it.

        Without `even_if_online` a source that runs and does not subscribe to the topic any more is passed over.
        """
        full = self._full(topic)
        request = CloneGroupOffset(
            src_group=wrap(self._namespace, source),
            dest_group=wrap(self._namespace, target),
            topic=full,
            offline=even_if_online,
        )
        for address in await self._masters_of(full):
            await self._ask(address, request, doing=f"copying the offsets of group {source} to {target}")
