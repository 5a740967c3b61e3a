"""Transactions: a half message that consumers see only when a local transaction was committed.

    producer = TransactionProducer("Shop", "127.0.0.1:9876")

    @producer.checker
    async def outcome(message: ReceivedMessage) -> TransactionState:
        return TransactionState.COMMIT if await database.has(message.keys[0]) else TransactionState.ROLLBACK

    async with producer, producer.transaction(Message("Orders", b"paid", keys="o-7")) as transaction:
        await database.insert("o-7", transaction.transaction_id)

Leaving the block commits. An exception leaves the outcome open, because the local commit may have happened: the broker
asks the checker, of any producer of the group. `transaction.roll_back()` is explicit.
"""

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import Any, Final, TypeAlias, TypeVar, cast

from skyrocket.client.core.errors import ClientError, WrongUse
from skyrocket.client.core.members import TransactionCheck
from skyrocket.client.core.message import Message, ReceivedMessage
from skyrocket.client.core.names import unwrap, wrap
from skyrocket.client.core.send_receipt import SendReceipt, SendStatus
from skyrocket.client.producer.producer import Producer
from skyrocket.errors import MessageRefused
from skyrocket.format.message_id import parse_offset_message_id
from skyrocket.format.sys_flag import TRANSACTION_PREPARED
from skyrocket.model import property_names as names
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN, EndTransaction
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

_MAX_CHECKS: Final = 2000  # under way at once; a broker asks again


class TransactionState(Enum):
    """How a local transaction ended; RocketMQ's COMMIT_MESSAGE, ROLLBACK_MESSAGE and UNKNOW."""

    COMMIT = COMMIT
    ROLLBACK = ROLLBACK
    UNKNOWN = UNKNOWN


Checker: TypeAlias = Callable[[ReceivedMessage], TransactionState | Awaitable[TransactionState]]
C = TypeVar("C", bound=Callable[[ReceivedMessage], Any])


class Transaction:
    """One half message and how it ends."""

    def __init__(self, receipt: SendReceipt) -> None:
        self.receipt = receipt
        self.state = TransactionState.COMMIT

    @property
    def transaction_id(self) -> str:
        return self.receipt.message_id

    def roll_back(self) -> None:
        """Consumers will never see the message."""
        self.state = TransactionState.ROLLBACK

    def leave_open(self) -> None:
        """The broker will ask the checker."""
        self.state = TransactionState.UNKNOWN


class TransactionProducer(Producer):
    """A producer whose messages may wait for a local transaction."""

    _checker: Checker | None = None
    _checks = 0

    def checker(self, function: C) -> C:
        """Decorator: this function tells how a transaction ended; async, or plain and then run in a thread."""
        self._checker = function
        return function

    async def start(self) -> None:
        """As every producer; raises WrongUse without a checker."""
        if self._checker is None:
            raise WrongUse(f"{self} has no checker: register one with @producer.checker, brokers will ask it")
        await super().start()

    @asynccontextmanager
    async def transaction(self, message: Message, *, timeout: float | None = None) -> AsyncIterator[Transaction]:
        """Send the half message, run the block, then commit, or leave it open if the block raises."""
        transaction = Transaction(await self._send_half(message, timeout))
        try:
            yield transaction
        except BaseException:
            if transaction.state is TransactionState.COMMIT:
                transaction.leave_open()
            raise
        finally:
            await self._end(transaction.receipt, message, transaction.state)

    async def _send_half(self, message: Message, timeout: float | None) -> SendReceipt:
        if message.delay_level or message.delay is not None or message.deliver_at is not None:
            raise MessageRefused("a transactional message cannot be delayed: leave out delay and delay_level")
        if message.sharding_key is not None:
            raise MessageRefused(
                "a transactional message cannot have a sharding key, commits decide over the order: leave it out"
            )
        if message.priority is not None:
            raise MessageRefused("a transactional message cannot have a priority: leave it out")
        seconds = self.settings.send_timeout if timeout is None else timeout
        extra = {names.TRANSACTION_PREPARED: "true", names.PRODUCER_GROUP: self.group}
        receipt = await self._send_special(message, extra, seconds, sys_flag=TRANSACTION_PREPARED)
        full = wrap(self._namespace, message.topic)
        if full in self._instance.routes:
            await self._instance.introduce(full)  # else the broker would not know whom to ask
        if receipt.status is not SendStatus.SEND_OK:
            # RocketMQ: what is not safe is rolled back before the local transaction begins.
            await self._end(receipt, message, TransactionState.ROLLBACK)
            raise ClientError(
                f"the half message for topic {message.topic} is not safe ({receipt.status.name}): it was rolled back, "
                "begin the transaction again"
            )
        return receipt

    async def _end(self, receipt: SendReceipt, message: Message, state: TransactionState) -> None:
        request = EndTransaction(
            broker_name=receipt.queue.broker_name,
            topic=wrap(self._namespace, message.topic),
            producer_group=self.group,
            tran_state_table_offset=receipt.queue_offset,
            commit_log_offset=parse_offset_message_id(receipt.offset_message_id).physical_offset,
            commit_or_rollback=state.value,
            from_transaction_check=False,
            msg_id=receipt.message_id,
            transaction_id=receipt.transaction_id or receipt.message_id,
        )
        try:
            queue = receipt.queue._replace(topic=wrap(self._namespace, message.topic))
            address = await self._instance.master_of(queue)
            if self._tracer is not None and receipt.trace_on:
                self._tracer.transaction_ended(message, address, receipt.message_id, request, receipt.region)
            await self._instance.remoting.call_oneway(address, request)
        except (ClientError, RemotingError) as error:
            _logger.warning(
                "a transaction's end was not told, the broker will ask id=%s reason=%s", receipt.message_id, error
            )

    # ── what brokers ask ─────────────────────────────────────────────────────────────────────────────────────────────

    async def check_transaction(self, message: ReceivedMessage, question: TransactionCheck) -> None:
        """Tell the broker what the checker says; nothing when too many are asked at once, it will ask again."""
        if self._checks >= _MAX_CHECKS:
            _logger.warning("too many transaction checks at once, one is passed over group=%s", self.group)
            return
        self._checks += 1
        try:
            state = await self._judged(message)
        finally:
            self._checks -= 1
        header = question.header
        request = EndTransaction(
            broker_name=header.broker_name,
            topic=message.stored_topic,
            producer_group=self.group,
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=state.value,
            from_transaction_check=True,
            msg_id=message.properties.get(names.UNIQUE_KEY) or header.msg_id,
            transaction_id=header.transaction_id,
        )
        if self._tracer is not None and message.properties.get("TRACE_ON") != "false":
            region = message.properties.get("MSG_REGION")
            self._tracer.transaction_ended(message, question.address, message.message_id, request, region)
        try:
            await self._instance.remoting.call_oneway(question.address, request)
        except RemotingError as error:
            _logger.warning("the outcome of a transaction was not told id=%s reason=%s", request.msg_id, error)

    async def _judged(self, message: ReceivedMessage) -> TransactionState:
        assert self._checker is not None
        message.topic = unwrap(self._namespace, message.properties.get(names.REAL_TOPIC, message.topic))
        try:
            if inspect.iscoroutinefunction(self._checker):
                state = await cast("Awaitable[TransactionState]", self._checker(message))
            else:
                state = cast("TransactionState", await asyncio.to_thread(self._checker, message))
        except Exception:
            _logger.exception("the checker failed, the outcome stays open message=%s", message.message_id)
            return TransactionState.UNKNOWN
        return state if isinstance(state, TransactionState) else TransactionState.UNKNOWN
