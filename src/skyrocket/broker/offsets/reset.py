"""Moving groups to other offsets: reset by time or number, copy from another group, correction.

reset     server side (default)     the broker remembers it; the next pull of each queue is told where to go on
          through the clients       every member of the group is told at once; there must be some
"""

from collections.abc import Callable, Mapping
from functools import partial

from skyrocket.broker.core.slices import Slices
from skyrocket.broker.state.connected_clients import too_old
from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.tables import Tables
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.offsets import CorrectionOffsets, QueueOffset, ResetOffsetList, ResetOffsets
from skyrocket.protocol.codes import LanguageCode, Version
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import ConsumerNotOnline, SystemFailure
from skyrocket.protocol.requests.offsets import CloneGroupOffset, ResetOffset
from skyrocket.protocol.requests.query import QueryCorrectionOffset
from skyrocket.protocol.requests.server_to_client import ResetConsumerClientOffset
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve
from skyrocket.store.message_store import MessageStore


class OffsetAdminProcessor:
    """Changes offsets of groups on behalf of operators."""

    def __init__(self, store: MessageStore, tables: Tables, identity: BrokerIdentity, slices: Slices) -> None:
        self._store = store
        self._topics = tables.topics
        self._groups = tables.groups
        self._offsets = tables.offsets
        self._consumers = tables.consumers
        self._identity = identity
        self._slices = slices

    def handlers(self) -> Handlers:
        return (
            serve(ResetOffset, self.reset),
            serve(CloneGroupOffset, self.clone),
            serve(QueryCorrectionOffset, self.correction),
        )

    # ── reset ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def reset(self, _: Peer, header: ResetOffset, __: Body) -> ResetOffsets:
        """Move a group; the answer names the queues and where the group goes on in each."""
        here = self._offsets.server_side_reset
        offsets = await (self._reset_here(header) if here else self._reset_clients(header))
        return self._by_queue(header, offsets)

    async def _reset_here(self, header: ResetOffset) -> Mapping[int, int]:
        if self._identity.broker_id != 0:
            raise SystemFailure("Can not reset offset in slave broker")
        topic = self._topics.existing(header.topic, f"Topic {header.topic} does not exist")
        self._groups.existing(header.group, f"Group {header.group} does not exist")
        if header.queue_id < 0:
            offsets = await self._of_each(range(topic.read_queues), partial(self._offset_at, header))
        elif header.offset is None or header.offset == -1:
            offsets = {header.queue_id: self._offset_at(header, header.queue_id)}
        else:
            offsets = {header.queue_id: self._checked_offset(header, header.offset)}
        if not offsets:
            raise SystemFailure("No queues to reset.")
        self._offsets.reset(header.group, header.topic, offsets)
        return offsets

    def _checked_offset(self, header: ResetOffset, offset: int) -> int:
        low = self._store.min_offset(header.topic, header.queue_id)
        high = self._store.max_offset(header.topic, header.queue_id)
        if (low >= 0 and offset < low) or offset > high + 1:
            raise SystemFailure(f"Target offset {offset} not in consume queue range [{low}-{high}]")
        return offset

    def _offset_at(self, header: ResetOffset, queue_id: int) -> int:
        """Where the wanted time is in a queue; a negative time is the queue's end."""
        if header.timestamp < 0:
            return self._store.max_offset(header.topic, queue_id)
        return max(self._store.offset_by_time(header.topic, queue_id, header.timestamp), 0)

    async def _reset_clients(self, header: ResetOffset) -> Mapping[int, int]:
        """Tell all members; raises when there are none, or one is too old to understand: then nobody is told."""
        topic = self._topics.existing(
            header.topic, f"[reset-offset] reset offset failed, no topic in this broker. topic={header.topic}"
        )
        offsets = await self._of_each(range(topic.write_queues), partial(self._client_offset, header))
        members = self._consumers.find_group(header.group)
        if members is None:
            raise ConsumerNotOnline(
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}"
            )
        for client in members.clients:
            if client.version < Version.V3_0_7_SNAPSHOT:
                raise too_old(client.version)
        told = ResetConsumerClientOffset(topic=header.topic, group=header.group, timestamp=header.timestamp)
        by_queue = self._by_queue(header, offsets)
        for client in members.clients:
            # RocketMQ takes the form that the operator's tool would understand; it is the consumer that must.
            is_cpp = client.language == LanguageCode.CPP.name
            client.connection.send_oneway(told, _as_list(by_queue) if is_cpp else by_queue.encode())
        return offsets

    async def _of_each(self, queues: range, offset: Callable[[int], int]) -> dict[int, int]:
        return dict(zip(queues, await self._slices.map(offset, queues), strict=True))

    def _client_offset(self, header: ResetOffset, queue_id: int) -> int:
        committed = self._offsets.committed(header.group, header.topic, queue_id)
        if committed is None:
            raise SystemFailure(f"THe consumer group <{header.group}> not exist")
        target = self._offset_at(header, queue_id)
        return target if header.is_force or target < committed else committed

    def _by_queue(self, header: ResetOffset, offsets: Mapping[int, int]) -> ResetOffsets:
        name = self._identity.broker_name
        return ResetOffsets(
            {MessageQueue(header.topic, name, queue_id): offset for queue_id, offset in offsets.items()}
        )

    # ── copy and correction ──────────────────────────────────────────────────────────────────────────────────────────

    def clone(self, _: Peer, header: CloneGroupOffset, __: Body) -> None:
        """Copy offsets of one topic, or (RocketMQ means to, and copies nothing) of all topics of the source."""
        source, named = header.src_group, (header.topic or "").strip()
        topics = [named] if named else self._offsets.topics_of(source)
        cloned = [topic for topic in topics if self._may_clone(source, topic, offline=header.offline)]
        self._offsets.clone(source, header.dest_group, cloned)

    def _may_clone(self, source: str, topic: str, *, offline: bool) -> bool:
        """Of a group with members, only what it still subscribes to; unless the caller treats it as offline."""
        if self._topics.find(topic) is None:
            return False
        online = self._consumers.find_group(source)
        if offline or online is None or not online.subscriptions:
            return True
        return self._consumers.find_subscription(source, topic) is not None

    def correction(self, _: Peer, header: QueryCorrectionOffset, __: Body) -> CorrectionOffsets:
        """The least offset of every queue among all groups but some."""
        left_out = {name.strip() for name in (header.filter_groups or "").split(",")}
        offsets = self._offsets.correction_offsets(
            header.topic,
            header.compare_group,
            left_out,
            lambda queue_id: self._store.min_offset(header.topic, queue_id),
        )
        return CorrectionOffsets(offsets)


def _as_list(offsets: ResetOffsets) -> bytes:
    lines = (
        QueueOffset(queue.broker_name, queue.topic, queue.queue_id, offset) for queue, offset in offsets.offsets.items()
    )
    return ResetOffsetList(tuple(lines)).encode()
