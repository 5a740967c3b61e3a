"""What consumers say of messages in their hands."""

from skyrocket.broker.pop.offsets import PopOffsets
from skyrocket.broker.pop.orders import UnknownOffset
from skyrocket.broker.pop.pop_polling import PopPolling
from skyrocket.broker.pop.revive_log import ReviveLog
from skyrocket.broker.rules.special_services import Puts
from skyrocket.broker.state.topics import TopicTable
from skyrocket.clock import Clock
from skyrocket.format.revive_log import Acknowledgement, CheckPoint, CheckPointKey
from skyrocket.model.pop_retry import real_topic
from skyrocket.protocol.bodies.batch_ack import BatchAck, BatchAckEntry
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import FAQ, MessageIllegal, NoMessage, RequestError, SystemFailure, TopicNotExist
from skyrocket.protocol.receipt_handle import ORDERLY_REVIVE_QUEUE, ReceiptHandle
from skyrocket.protocol.requests.pop import AckMessage, BatchAckMessage, ChangeInvisibleTime, ChangeInvisibleTimeAnswer
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNSET_REMARK, Answered, Handlers, serve
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult

_NOTHING = ChangeInvisibleTimeAnswer(pop_time=0, invisible_time=0, revive_qid=0)


class AckProcessor:
    """Writes acknowledgements down, and wakes those who wait for an ordered queue that is free."""

    def __init__(
        self,
        store: MessageStore,
        topics: TopicTable,
        offsets: PopOffsets,
        polling: PopPolling,
        revive_log: ReviveLog,
        clock: Clock,
        broker_name: str,
    ) -> None:
        self._store = store
        self._topics = topics
        self._offsets = offsets
        self._orders = polling.orders
        self._polling = polling
        self._revive_log = revive_log
        self._clock = clock
        self._broker_name = broker_name

    def handlers(self) -> Handlers:
        return (
            serve(AckMessage, self.ack),
            serve(BatchAckMessage, self.batch_ack),
            serve(ChangeInvisibleTime, self.change_invisible_time),
        )

    # ── acknowledgements ─────────────────────────────────────────────────────────────────────────────────────────────

    def ack(self, peer: Peer, header: AckMessage, _: Body) -> object:
        """One message is done; raises TopicNotExist, MessageIllegal or NoMessage."""
        return self._revive_log.do(self._acking(peer, header))

    def _acking(self, peer: Peer, header: AckMessage) -> Puts[None]:
        self._check_queue(peer, header.topic, header.queue_id)
        least, end = self._range(header.topic, header.queue_id)
        if not least <= header.offset <= end:
            raise NoMessage(
                f"offset is illegal, key:{header.topic}@{header.queue_id}, commit:{header.offset}, store:{least}~{end}"
            )
        receipt = ReceiptHandle.parse(header.extra_info)
        if receipt.is_orderly:
            self._ack_orderly(
                peer, header.topic, header.consumer_group, header.queue_id, header.offset, receipt.pop_time
            )
        else:
            _check_stored((yield [self._ack_message(header, receipt)])[0])

    def batch_ack(self, peer: Peer, _: BatchAckMessage, body: BatchAck | None) -> object:
        """Many messages are done; those of unknown places are passed over. Raises NoMessage for an empty list."""
        return self._revive_log.do(self._acking_batch(peer, body))

    def _acking_batch(self, peer: Peer, body: BatchAck | None) -> Puts[None]:
        if body is None or not body.entries:
            raise NoMessage("the list of acknowledgements is empty")
        for entry in body.entries:
            topic = real_topic(entry.topic, entry.group, entry.retry)
            config = self._topics.find(topic)
            if config is None:
                raise _no_topic(topic)
            if not 0 <= entry.queue_id < config.read_queues:
                continue
            least, end = self._range(topic, entry.queue_id)
            offsets = [entry.start_offset + distance for distance in sorted(entry.acked)]
            yield from self._ack_all(peer, entry, topic, [offset for offset in offsets if least <= offset <= end])

    def _ack_all(self, peer: Peer, entry: BatchAckEntry, topic: str, offsets: list[int]) -> Puts[None]:
        if not offsets:
            return
        _check_names(entry.group)
        if entry.revive_queue_id == ORDERLY_REVIVE_QUEUE:
            for offset in offsets:
                self._ack_orderly(peer, topic, entry.group, entry.queue_id, offset, entry.pop_time)
            return
        key = CheckPointKey(topic, entry.group, entry.queue_id, entry.start_offset, entry.pop_time, self._broker_name)
        message = self._revive_log.acknowledgement(
            Acknowledgement(key, offsets, is_batch=True),
            self._revive_queue(entry.revive_queue_id),
            entry.pop_time + entry.invisible_time,
        )
        _check_stored((yield [message])[0])

    def _ack_message(self, header: AckMessage | ChangeInvisibleTime, receipt: ReceiptHandle) -> PutMessage:
        _check_names(header.consumer_group, receipt.broker_name)
        key = CheckPointKey(
            header.topic,
            header.consumer_group,
            header.queue_id,
            receipt.start_offset,
            receipt.pop_time,
            receipt.broker_name,
        )
        return self._revive_log.acknowledgement(
            Acknowledgement(key, (header.offset,)),
            self._revive_queue(receipt.revive_queue),
            receipt.pop_time + receipt.invisible_ms,
        )

    def _ack_orderly(self, peer: Peer, topic: str, group: str, queue_id: int, offset: int, pop_time: int) -> None:
        committed = self._offsets.table.committed(group, topic, queue_id)
        if committed is not None and offset < committed:
            return
        try:
            next_offset = self._orders.acknowledge(topic, group, queue_id, offset, pop_time)
        except UnknownOffset:
            old = -1 if committed is None else committed
            raise MessageIllegal(
                f"offset is illegal, key:{topic}@{group}@{queue_id}, old:{old}, commit:{offset}, next:-1, "
                f"/{peer.remote_address}"
            ) from None
        if next_offset is None:
            return
        self._offsets.table.commit(group, topic, queue_id, next_offset)  # ignored while a reset waits
        if not self._orders.is_blocked(topic, group, queue_id, None):
            self._polling.wake(topic, group, queue_id)

    # ── hidden longer or shorter ─────────────────────────────────────────────────────────────────────────────────────

    def change_invisible_time(self, peer: Peer, header: ChangeInvisibleTime, _: Body) -> object:
        """A message is hidden until another time; raises TopicNotExist, MessageIllegal, NoMessage or SystemFailure."""
        return self._revive_log.do(self._changing(peer, header))

    def _changing(self, peer: Peer, header: ChangeInvisibleTime) -> Puts[Answered]:
        try:
            return Answered((yield from self._changed(peer, header)), remark=UNSET_REMARK)
        except RequestError as error:
            error.ext_fields = _NOTHING.to_fields()
            raise

    def _changed(self, peer: Peer, header: ChangeInvisibleTime) -> Puts[ChangeInvisibleTimeAnswer]:
        self._check_queue(peer, header.topic, header.queue_id)
        least, end = self._range(header.topic, header.queue_id)
        if not least <= header.offset < end:
            raise NoMessage(
                f"offset is illegal, key:{header.topic}@{header.queue_id}, change:{header.offset}, store:{least}~{end}"
            )
        receipt = ReceiptHandle.parse(header.extra_info)
        now_ms = self._clock.now_ms()
        if receipt.is_orderly:
            return self._changed_orderly(header, receipt, now_ms)
        # Never the time of the old one: with the same start they would be one, and acknowledged together.
        pop_time = max(now_ms, receipt.pop_time + 1)
        key = CheckPointKey(
            header.topic, header.consumer_group, header.queue_id, header.offset, pop_time, receipt.broker_name
        )
        point = CheckPoint(key, header.invisible_time, (0,))
        queue_id = self._revive_queue(receipt.revive_queue)
        written = (yield [self._revive_log.check_point(point, queue_id)])[0]
        if not written.ok:
            raise SystemFailure(f"the new check point was not stored: {written.status.value} {written.remark}".strip())
        yield [
            self._ack_message(header, receipt)
        ]  # of the old one; where that fails the message comes twice, never not at all
        return ChangeInvisibleTimeAnswer(
            pop_time=pop_time, invisible_time=header.invisible_time, revive_qid=receipt.revive_queue
        )

    def _changed_orderly(
        self, header: ChangeInvisibleTime, receipt: ReceiptHandle, now_ms: int
    ) -> ChangeInvisibleTimeAnswer:
        committed = self._offsets.table.committed(header.consumer_group, header.topic, header.queue_id)
        if committed is not None and header.offset < committed:
            return _NOTHING
        visible_ms = now_ms + header.invisible_time
        self._orders.hide_until(
            header.topic, header.consumer_group, header.queue_id, header.offset, receipt.pop_time, visible_ms
        )
        self._polling.free_at(header.topic, header.consumer_group, header.queue_id)
        return ChangeInvisibleTimeAnswer(
            pop_time=receipt.pop_time,
            invisible_time=visible_ms - receipt.pop_time,
            revive_qid=receipt.revive_queue,
        )

    # ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _check_queue(self, peer: Peer, topic: str, queue_id: int) -> None:
        config = self._topics.find(topic)
        if config is None:
            raise _no_topic(topic)
        if not 0 <= queue_id < config.read_queues:
            raise MessageIllegal(
                f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:[{config.read_queues}] "
                f"consumer:[/{peer.remote_address}]"
            )

    def _range(self, topic: str, queue_id: int) -> tuple[int, int]:
        return max(self._store.min_offset(topic, queue_id), 0), self._store.max_offset(topic, queue_id)

    def _revive_queue(self, queue_id: int) -> int:
        """Receipts come from outside: nobody may open queues of the revive log at will."""
        found = self._topics.find(self._revive_log.topic)
        queues = found.write_queues if found is not None else 1
        if not 0 <= queue_id < queues:
            raise MessageIllegal(f"the receipt names revive queue {queue_id}, but this broker has 0 to {queues - 1}")
        return queue_id


def _check_names(*names: str) -> None:
    """Raises MessageIllegal: these names become properties of a record, which control characters would break."""
    for name in names:
        if any(sign < " " for sign in name):
            raise MessageIllegal(f"the name {name!r} has control characters: use the group and the receipt of the pop")


def _no_topic(topic: str) -> TopicNotExist:
    return TopicNotExist(f"topic[{topic}] not exist, apply first please! {FAQ}")


def _check_stored(result: PutResult) -> None:
    # RocketMQ says yes here too; then a consumer does not know that its message will come again.
    if not result.ok:
        raise SystemFailure(f"the acknowledgement was not stored: {result.status.value} {result.remark}".strip())
