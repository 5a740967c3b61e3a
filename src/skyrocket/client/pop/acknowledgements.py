"""What a consumer says of popped messages: done, or hidden for another while.

A receipt counts for the time it was given for. The broker would take a late one without a word, though the message is
on its way to somebody else; so it is refused here. The time is ours, from before the pop was sent: clocks need not
agree.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from skyrocket.client.core.errors import ClientError, ReceiptExpired
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.pop.popped_message import PoppedMessage
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.batch_ack import BatchAck, BatchAckEntry
from skyrocket.protocol.requests.pop import AckMessage, BatchAckMessage, ChangeInvisibleTime
from skyrocket.remoting.errors import RemotingError


class Acknowledgements:
    """For one consumer group."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group

    def check(self, message: PoppedMessage) -> None:
        """Raises ReceiptExpired."""
        late = self._instance.clock.monotonic() - message.visible_at
        if late >= 0:
            raise ReceiptExpired(message.message_id, message.receipt.invisible_ms / 1000, late)

    async def acknowledge(self, messages: Sequence[PoppedMessage]) -> None:
        """They are done: one request per broker. All that can be are acknowledged before an error is raised."""
        now = self._instance.clock.monotonic()
        failures: list[ClientError | RemotingError] = []
        valid = sorted((each for each in messages if each.visible_at > now), key=lambda each: each.broker_name)
        for _, of_broker in groupby(valid, key=lambda each: each.broker_name):
            try:
                await self._acknowledge_at_broker(list(of_broker))
            except (ClientError, RemotingError) as error:
                failures.append(error)
        if failures:
            raise failures[0]
        for message in messages:
            if message.visible_at <= now:
                self.check(message)

    async def _acknowledge_at_broker(self, messages: Sequence[PoppedMessage]) -> None:
        first, *others = messages
        address = await self._address(first)
        if others:
            body = BatchAck(first.broker_name, tuple(batch_entries(self._group, messages))).encode()
            doing = f"the acknowledgement of {len(messages)} messages"
            await self._instance.ask(address, BatchAckMessage(), body, doing=doing)
            return
        request = AckMessage(
            consumer_group=self._group,
            topic=first.stored_topic,
            queue_id=first.receipt.queue_id,
            extra_info=first.receipt.text(),
            offset=first.receipt.queue_offset,
            broker_name=first.broker_name,
        )
        await self._instance.ask(address, request, doing=f"the acknowledgement of {first.message_id}")

    async def hide(self, message: PoppedMessage, seconds: float) -> None:
        """Hidden for `seconds` from now; the message has a new receipt then."""
        self.check(message)
        receipt = message.receipt
        request = ChangeInvisibleTime(
            consumer_group=self._group,
            topic=message.stored_topic,
            queue_id=receipt.queue_id,
            extra_info=receipt.text(),
            offset=receipt.queue_offset,
            invisible_time=round(seconds * 1000),
            broker_name=message.broker_name,
        )
        address = await self._address(message)
        began = self._instance.clock.monotonic()
        answer = (await self._instance.ask(address, request, doing=f"hiding {message.message_id} longer")).header
        message.receipt = replace(
            receipt,
            start_offset=receipt.queue_offset,
            pop_time=answer.pop_time,
            invisible_ms=answer.invisible_time,
            revive_queue=answer.revive_qid,
        )
        message.visible_at = began + seconds

    async def _address(self, message: PoppedMessage) -> str:
        return await self._instance.master_of(
            MessageQueue(message.popped_topic, message.broker_name, message.receipt.queue_id)
        )


def batch_entries(group: str, messages: Iterable[PoppedMessage]) -> list[BatchAckEntry]:
    """One entry for all messages of a check point."""
    offsets: dict[BatchAckEntry, set[int]] = {}
    for message in messages:
        receipt = message.receipt
        point = BatchAckEntry(
            group,
            message.popped_topic,
            receipt.retry_mark,
            receipt.start_offset,
            receipt.queue_id,
            receipt.revive_queue,
            receipt.pop_time,
            receipt.invisible_ms,
        )
        offsets.setdefault(point, set()).add(receipt.queue_offset - receipt.start_offset)
    return [replace(point, acked=frozenset(distances)) for point, distances in offsets.items()]
