"""A producer says how a transaction ends, or an operator has it checked again.

commit    the message goes to its real topic; then it is noted that the half has ended
rollback  it is noted that the half has ended
unknown   nothing, not even an answer: the check comes later
"""

import logging
from typing import Final

from skyrocket.broker.transactions.half_message import HALF_QUEUE, HalfMessage, read_half
from skyrocket.broker.transactions.transaction_log import Decision, PutRefused, TransactionLog
from skyrocket.clock import Clock, wall_clock
from skyrocket.config.sections import BrokerConfig
from skyrocket.errors import DataError
from skyrocket.format.message_id import parse_offset_message_id
from skyrocket.format.properties import find_property
from skyrocket.format.property_bytes import PRODUCER_GROUP
from skyrocket.model.topic import HALF_TOPIC
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import (
    IllegalOperation,
    MessageIllegal,
    RequestError,
    ServiceNotAvailable,
    SlaveNotAvailable,
    SystemFailure,
)
from skyrocket.protocol.requests.transaction import UNKNOWN, EndTransaction, ResumeCheckHalfMessage
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import UNANSWERED, UNSET_REMARK, Answered, Handlers, serve
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutStatus

_logger = logging.getLogger(__name__)

_NOT_FOUND: Final = "Find prepared transaction message failed"


class EndTransactionProcessor:
    """Checks a producer's word and passes it on."""

    def __init__(
        self, log: TransactionLog, store: MessageStore, config: BrokerConfig, clock: Clock, *, is_master: bool
    ) -> None:
        self._log = log
        self._store = store
        self._config = config
        self._clock = wall_clock(clock)  # the age of a half is by its producer's clock
        self._is_master = is_master

    def use(self, config: BrokerConfig) -> None:
        """Go by other settings."""
        self._config = config

    def handlers(self) -> Handlers:
        return (
            serve(EndTransaction, self.end),
            serve(ResumeCheckHalfMessage, self.resume),
        )

    def end(self, _: Peer, header: EndTransaction, __: Body) -> Answered:
        """Commit or roll back; raises what RocketMQ answers when it is another half, or the store refuses."""
        if not self._is_master:
            raise SlaveNotAvailable
        if header.commit_or_rollback == UNKNOWN:
            return UNANSWERED
        decision = Decision(header.commit_or_rollback)
        half = self._spoken_of(header)
        try:
            self._log.end(half, decision)
        except PutRefused as error:
            raise self._refusal(error.result.status) from error
        return Answered(remark=UNSET_REMARK if decision is Decision.ROLLBACK else None)

    def _spoken_of(self, header: EndTransaction) -> HalfMessage:
        """The half that a producer means. The order of the checks is RocketMQ's; the last one is ours."""
        record = self._store.by_physical_offset(header.commit_log_offset) if header.commit_log_offset >= 0 else None
        if record is None:
            raise SystemFailure(_NOT_FOUND)
        try:
            half = read_half(record)
        except DataError as error:
            # Not a half at all: RocketMQ compares what it is not with what the producer says.
            _logger.warning(
                "the end of something that is not a transaction physical_offset=%d reason=%s",
                header.commit_log_offset,
                error,
            )
            raise SystemFailure("The producer group wrong") from error
        immunity_ms = half.immunity_ms(self._config.transaction_timeout_ms)
        age_ms = self._clock.now_ms() - half.message.born_timestamp
        if not header.from_transaction_check and immunity_ms is not None and age_ms > immunity_ms:
            raise IllegalOperation
        if find_property(half.message.properties, PRODUCER_GROUP) != header.producer_group.encode():
            raise SystemFailure("The producer group wrong")
        if half.queue_offset != header.tran_state_table_offset:
            raise SystemFailure("The transaction state table offset wrong")
        if half.physical_offset != header.commit_log_offset:
            raise SystemFailure("The commit log offset wrong")
        if (half.message.topic, half.message.queue_id) != (HALF_TOPIC, HALF_QUEUE):
            raise SystemFailure(_NOT_FOUND)
        return half

    def _refusal(self, status: PutStatus) -> RequestError:
        match status:
            case PutStatus.CREATE_MAPPED_FILE_FAILED:
                return SystemFailure("Create mapped file failed.")
            case PutStatus.MESSAGE_ILLEGAL | PutStatus.PROPERTIES_SIZE_EXCEEDED:
                return MessageIllegal(
                    "The message is illegal, maybe msg body or properties length not matched. msg body length limit "
                    f"{self._store.config.max_message_size}B, msg properties length limit 32KB."
                )
            case PutStatus.SERVICE_NOT_AVAILABLE:
                return ServiceNotAvailable("Service not available now.")
            case PutStatus.OS_PAGE_CACHE_BUSY:
                return SystemFailure("OS page cache busy, please try another machine")
            case _:
                return SystemFailure("UNKNOWN_ERROR DEFAULT")

    def resume(self, _: Peer, header: ResumeCheckHalfMessage, __: Body) -> None:
        """Have a half checked again; raises SystemFailure when it is none, is open anyway, or is not taken."""
        try:
            place = parse_offset_message_id(header.msg_id or "")
            record = self._store.by_physical_offset(place.physical_offset)
            if record is None:
                raise DataError(f"the log has no message at {place.physical_offset}")
            half = read_half(record)
        except DataError as error:
            raise SystemFailure(
                f"Exception was thrown when putting message back to {HALF_TOPIC}. Message {header.msg_id}: {error}"
            ) from error
        is_passed = half.queue_offset < self._log.half_offset
        if half.message.topic == HALF_TOPIC and not is_passed and self._log.is_open(half):
            raise SystemFailure(
                f"Put message back to {HALF_TOPIC} failed. The transaction of {header.msg_id} is open and being checked"
            )
        try:
            self._log.resume(half)
        except PutRefused as error:
            raise SystemFailure(f"Put message back to {HALF_TOPIC} failed. {error}") from error
