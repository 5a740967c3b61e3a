"""How far groups are, and moving them."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from skyrocket.client.admin.admin_calls import moment_ms
from skyrocket.client.admin.broker_admin import BrokerAdmin
from skyrocket.client.admin.group_admin import GroupAdmin
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.admin.reset_preview import QueueMove, ResetPreview
from skyrocket.client.core.errors import BrokerRefused, ClientError
from skyrocket.client.core.names import unwrap, wrap
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import ConsumerStatus, ResetOffsets
from skyrocket.protocol.bodies.statistics import BrokerConsumeStats, ConsumeStats, ConsumeTimeSpans, QueueTimeSpan
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.requests.admin_groups import GetBrokerConsumeStats, GetConsumeStats
from skyrocket.protocol.requests.offsets import (
    CloneGroupOffset,
    GetConsumerStatus,
    QueryConsumerOffset,
    ResetOffset,
    UpdateConsumerOffset,
)
from skyrocket.protocol.requests.query import QueryConsumeTimeSpan

# A broker that resets no group of which nobody runs, or none at all.
NO_RESET_THERE: Final = (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
_TO_THE_END: Final = -1
_LONG_BODY: Final = 256 << 10
_AGE_OF_1970_MS: Final = 25 * 366 * 86_400_000  # or more: what RocketMQ says of a message that is not there


@dataclass(frozen=True, slots=True)
class QueueLag:
    """How far a group is in one queue."""

    queue: MessageQueue
    broker_offset: int
    consumer_offset: int
    last_timestamp: int  # when the last message that it has consumed was stored, in ms since 1970; 0: unknown
    pull_offset: int | None = None  # how far it has pulled; None: an old broker does not say

    @property
    def lag(self) -> int:
        """Messages that wait."""
        return self.broker_offset - self.consumer_offset

    @property
    def in_flight(self) -> int:
        """Messages that were pulled and are not committed."""
        return 0 if self.pull_offset is None else self.pull_offset - self.consumer_offset


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far a group is, and how fast."""

    queues: tuple[QueueLag, ...]
    consume_tps: float

    @property
    def lag(self) -> int:
        """Messages that wait, in all queues."""
        return sum(queue.lag for queue in self.queues)


class OffsetAdmin(GroupAdmin, BrokerAdmin):
    """Operations on offsets of groups; offsets are moved to those of a topic's queues."""

    async def consumer_lag(self, group: str, topic: str | None = None) -> list[QueueLag]:
        """How far a group is in each queue."""
        return list((await self.group_progress(group, topic)).queues)

    async def group_progress(self, group: str, topic: str | None = None) -> GroupProgress:
        """How far a group is in each queue of a topic, or of all that it consumes, and how fast it is."""
        full = wrap(self._namespace, group)
        of_topic = None if topic is None else self._full(topic)

        async def stats(place: BrokerPlace) -> ConsumeStats:
            request = GetConsumeStats(consumer_group=full, topic=of_topic)
            reply = await self._ask(place.address, request, doing=f"asking how far group {group} is")
            return ConsumeStats.decode(reply.body)

        places = await (self._places_of_group(full) if of_topic is None else self._places_of(of_topic))
        answers = (await self._each(places, stats)).values()
        lags = {queue: lag for answer in answers for queue, lag in answer.offsets.items()}
        queues = tuple(
            QueueLag(self._shown(queue), lag.broker_offset, lag.consumer_offset, lag.last_timestamp, lag.pull_offset)
            for queue, lag in sorted(lags.items())
        )
        return GroupProgress(queues, sum(answer.consume_tps for answer in answers))

    async def time_spans(self, group: str, topic: str) -> list[QueueTimeSpan]:
        """How old the messages are that a group consumes next, queue by queue, as brokers measure it."""
        request = QueryConsumeTimeSpan(topic=self._full(topic), group=wrap(self._namespace, group))

        async def spans(place: BrokerPlace) -> tuple[QueueTimeSpan, ...]:
            reply = await self._ask(place.address, request, doing=f"asking how late group {group} is")
            return ConsumeTimeSpans.decode(reply.body).spans

        found = await self._each(await self._places_of(self._full(topic)), spans)
        return sorted((span for each in found.values() for span in each), key=lambda span: span.queue)

    async def waited_ms(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """How long the message has waited that a group takes next, by queue: 0 where there is none.

        After hours without a message the last one that was consumed is old, and the group is not late.
        """
        return {
            self._shown(span.queue): max(span.delay_ms, 0)
            for span in await self.time_spans(group, topic)
            if span.delay_ms < _AGE_OF_1970_MS
        }

    async def client_offsets(
        self, group: str, topic: str, client_id: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """Offsets as running members see them, by client id."""
        request = GetConsumerStatus(
            topic=self._full(topic), group=wrap(self._namespace, group), client_address=client_id
        )

        async def status(place: BrokerPlace) -> ConsumerStatus:
            reply = await self._ask(place.address, request, doing=f"asking the members of group {group}")
            return ConsumerStatus.decode(reply.body)

        found: dict[str, dict[MessageQueue, int]] = {}
        for answer in (await self._each(await self._places_of(self._full(topic)), status)).values():
            for client, offsets in answer.by_client.items():
                found.setdefault(client, {}).update((self._shown(queue), at) for queue, at in offsets.items())
        return found

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

    async def move_queue(self, group: str, queue: MessageQueue, offset: int) -> None:
        """Let a group go on at an offset of one queue, whether it runs or not: running members are told.

        Raises ClientError at RocketMQ 4.x when some of them run: they would overwrite the offset.
        """
        full = self._full_queue(queue)
        address = await self._instance_of().master_of(full)
        place = BrokerPlace("", queue.broker_name, 0, address)
        if (await self._settings(place)).get("useServerSideResetOffset") != "true":
            # RocketMQ: such a broker overlooks which queue is meant, and sends members to the beginning of all.
            if await self._has_member(group, address):
                raise ClientError(
                    "broker {place} cannot tell clients to move in one queue: stop the clients of {group} first, or "
                    "reset all queues to a time",
                    place=place,
                    group=group,
                )
            await self.set_offset(group, queue, offset)
            return
        await self.set_offset(group, queue, offset)
        request = ResetOffset(
            topic=full.topic,
            group=wrap(self._namespace, group),
            timestamp=0,
            is_force=True,
            queue_id=full.queue_id,
            offset=offset,
        )
        try:
            await self._ask(address, request, doing=f"resetting group {group}")
        except BrokerRefused as error:
            if error.code not in (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.REQUEST_CODE_NOT_SUPPORTED):
                raise

    async def _has_member(self, group: str, address: str) -> bool:
        try:
            return bool((await self.consumer_connections(group, broker=address)).connections)
        except BrokerRefused as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            return False

    async def reset_offsets(
        self, group: str, topic: str, moment: datetime | float | None, *, force: bool = True
    ) -> dict[MessageQueue, int]:
        """Let a group consume anew from a moment on, or (None) go to the end; running members are told by brokers."""
        try:
            return await self.reset_by_brokers(group, topic, moment, force=force)
        except BrokerRefused as error:
            if error.code not in NO_RESET_THERE:
                raise
        found = await self._reset_offline(group, topic, moment)  # nobody runs who could be told
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def reset_by_brokers(
        self, group: str, topic: str, moment: datetime | float | None, *, force: bool = True
    ) -> dict[MessageQueue, int]:
        """As `reset_offsets`, by brokers alone; raises BrokerRefused, at 4.x also when nobody of the group runs."""
        timestamp = _TO_THE_END if moment is None else moment_ms(moment)
        full = self._full(topic)
        request = ResetOffset(topic=full, group=wrap(self._namespace, group), timestamp=timestamp, is_force=force)

        async def reset(place: BrokerPlace) -> dict[MessageQueue, int] | BrokerRefused:
            try:
                reply = await self._ask(place.address, request, doing=f"resetting group {group}")
            except BrokerRefused as error:
                if error.code in NO_RESET_THERE:
                    return error
                if not _misses_offsets(error):
                    raise
                await self._fill_gaps(group, topic, place.broker_name, moment, force=force)
                reply = await self._ask(place.address, request, doing=f"resetting group {group}")
            return dict(ResetOffsets.decode(reply.body).offsets)

        found: dict[MessageQueue, int] = {}
        for answer in (await self._each(await self._places_of(full), reset)).values():
            if isinstance(answer, BrokerRefused):
                raise answer
            found.update(answer)
        return {self._shown(queue): offset for queue, offset in found.items()}

    async def _fill_gaps(
        self, group: str, topic: str, broker_name: str, moment: datetime | float | None, *, force: bool
    ) -> None:
        """Give a group an offset in queues where it has none, so that its broker resets it.

        A broker of RocketMQ 4.x says 0 of a short queue where there is none: what says 0 is set too.
        """
        route = await self.route(topic)
        for of_broker in route.data.queues:
            if of_broker.broker_name != broker_name:
                continue
            for queue_id in range(max(of_broker.read_queues, of_broker.write_queues)):
                queue = MessageQueue(topic, broker_name, queue_id)
                known = await self.committed(group, queue)
                if known is None or (known == 0 and force):
                    await self.set_offset(group, queue, await self._target(queue, moment))
                elif known == 0:  # nothing lies before it, so that it stays
                    await self.set_offset(group, queue, 0)

    async def _target(self, queue: MessageQueue, moment: datetime | float | None) -> int:
        return await (self.max_offset(queue) if moment is None else self.offset_at(queue, moment))

    async def _reset_offline(self, group: str, topic: str, moment: datetime | float | None) -> dict[MessageQueue, int]:
        found: dict[MessageQueue, int] = {}
        for queue in await self.queues(topic):
            offset = await self._target(queue, moment)
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

    async def preview_offset(self, group: str, topic: str, offset: int) -> ResetPreview:
        """What `move_to_offset` with the same arguments would skip or repeat; changes nothing."""
        ends = await asyncio.gather(*(self._move(group, queue, None) for queue in await self.queues(topic)))
        moves = (replace(move, target=min(max(offset, move.first), move.end)) for move in ends)
        return ResetPreview(group, topic, tuple(moves))

    async def move_to_offset(self, group: str, topic: str, offset: int) -> dict[MessageQueue, int]:
        """Let a group go on at one offset in every queue of a topic, or at the end that is nearer; members are told."""
        moves = (await self.preview_offset(group, topic, offset)).moves
        for move in moves:
            await self.move_queue(group, move.queue, move.target)
        return {move.queue: move.target for move in moves}

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

        async def clone(place: BrokerPlace) -> None:
            await self._ask(place.address, request, doing=f"copying the offsets of group {source} to {target}")

        await self._each(await self._places_of(full), clone)

    async def all_lag(self, *, cluster: str | None = None) -> dict[str, list[QueueLag]]:
        """How far every group is in every queue, with one request for each broker; retry topics are among them."""

        async def lags(place: BrokerPlace) -> BrokerConsumeStats:
            reply = await self._ask(place.address, GetBrokerConsumeStats(), doing="asking how far groups are")
            if len(reply.body) < _LONG_BODY:
                return BrokerConsumeStats.decode(reply.body)
            return await asyncio.to_thread(BrokerConsumeStats.decode, reply.body)  # the loop is not held up meanwhile

        found: dict[str, list[QueueLag]] = {}
        for answer in (await self._each(await self._places(cluster), lags)).values():
            for groups in answer.groups:
                for group, stats in groups.items():
                    shown = unwrap(self._namespace, group)
                    if self._namespace and shown == group:
                        continue
                    found.setdefault(shown, []).extend(
                        QueueLag(self._shown(queue), lag.broker_offset, lag.consumer_offset, lag.last_timestamp)
                        for each in stats
                        for queue, lag in each.offsets.items()
                    )
        return found


def _misses_offsets(error: BrokerRefused) -> bool:
    # RocketMQ: brokers of 4.x refuse to reset a group that has no offset in one of a topic's queues, in these words.
    told = error.remark or ""
    return error.code == ResponseCode.SYSTEM_ERROR and "consumer group" in told and "not exist" in told
