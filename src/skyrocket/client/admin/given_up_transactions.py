"""Transactions that brokers gave up after too many checks: where operators find them, and checking them again."""

from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.message_admin import MessageAdmin
from skyrocket.client.admin.topic_admin import TopicAdmin
from skyrocket.client.core.errors import NoRoute, WrongUse
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import unwrap
from skyrocket.model import property_names as names
from skyrocket.model.topic import GIVEN_UP_TOPIC
from skyrocket.protocol.requests.transaction import ResumeCheckHalfMessage

_NEVER: Final = "0"


@dataclass(frozen=True, slots=True)
class GivenUpTransaction:
    """A half whose producers did not say how it ends, however often they were asked."""

    broker_name: str
    transaction_id: str
    topic: str
    producer_group: str
    keys: tuple[str, ...]
    given_up_ms: int  # since 1970
    checks: int
    offset_message_id: str  # where its record is


class GivenUpAdmin(MessageAdmin, TopicAdmin):
    """Operations on them; Apache's brokers keep them in the same place."""

    async def given_up_transactions(self, *, most: int = 100) -> list[GivenUpTransaction]:
        """The newest first. The record of one that is checked again stays: a log only grows."""
        try:
            offsets = await self.topic_offsets(GIVEN_UP_TOPIC)
        except NoRoute:  # none was ever given up
            return []
        found: list[GivenUpTransaction] = []
        for queue, offset in offsets.items():
            begin = max(offset.min_offset, offset.max_offset - most)
            found += [self._given_up(each) async for each in self.read_queue(queue, begin, offset.max_offset)]
        return sorted(found, key=lambda each: -each.given_up_ms)[:most]

    def _given_up(self, message: ReceivedMessage) -> GivenUpTransaction:
        properties = message.properties
        checks = properties.get(names.TRANSACTION_CHECK_TIMES, _NEVER)
        return GivenUpTransaction(
            message.broker_name,
            properties.get(names.UNIQUE_KEY, ""),
            unwrap(self._namespace, properties.get(names.REAL_TOPIC, "")),
            unwrap(self._namespace, properties.get(names.PRODUCER_GROUP, "")),
            tuple(properties.get(names.KEYS, "").split()),
            message.store_timestamp,
            int(checks) if checks.isdecimal() else 0,
            message.offset_message_id,
        )

    async def resume_transaction(self, transaction: GivenUpTransaction) -> None:
        """Open it again, with all its checks before it; raises BrokerRefused when its record is gone."""
        brokers = await self._named_masters(None)
        address = brokers.get(transaction.broker_name)
        if address is None:
            raise WrongUse(
                "broker {broker} is not registered, or has no master: start it first",
                broker=transaction.broker_name,
            )
        request = ResumeCheckHalfMessage(msg_id=transaction.offset_message_id, topic=GIVEN_UP_TOPIC)
        await self._ask(address, request, doing=f"resuming transaction {transaction.transaction_id}")
