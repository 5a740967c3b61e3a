"""Messages that wait at brokers, as operators see them: halves of transactions, and timers.

Brokers list both in pages; only Skyrocket's do. A timer is taken back with RocketMQ's own RECALL_MESSAGE, whose handle
(`v1 topic broker time id` in base64) is made from what is known of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from skyrocket.client.core.errors import BrokerRefused, ClientError, NotOffered, WrongUse
from skyrocket.client.core.instance import ClientInstance
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.client.core.names import INNER_PRODUCER_GROUP, unwrap, wrap
from skyrocket.format.recall_handle import RecallHandle
from skyrocket.model import property_names as names
from skyrocket.model.topic import RETRY_PREFIX, TIMER_TOPIC, is_system_topic
from skyrocket.protocol.bodies.statistics import TimerMetrics
from skyrocket.protocol.bodies.waiting_messages import (
    OpenTransactionList,
    OpenTransactionRow,
    PendingTimerList,
    PendingTimerRow,
)
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestNotSupported
from skyrocket.protocol.requests.admin_broker import GetTimerMetrics
from skyrocket.protocol.requests.header import Header, Request
from skyrocket.protocol.requests.messaging import RecallMessage
from skyrocket.protocol.requests.query import QueryMessage
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK
from skyrocket.protocol.requests.waiting_messages import EndOpenTransaction, ListOpenTransactions, ListPendingTimers
from skyrocket.remoting.exchange import Reply

A = TypeVar("A", bound=Header)

_OUT_MS: Final = "TIMER_OUT_MS"
_CANCELLED_KEY: Final = "TIMER_DEL_UNIQKEY"
_MOST_COPIES: Final = 64  # a timer that waits for weeks is written anew every two days
_FOREVER_MS: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction whose producer has not said how it ends."""

    broker_name: str
    transaction_id: str
    topic: str
    producer_group: str
    keys: tuple[str, ...]
    age_ms: int  # by the broker's clock
    checks: int  # how often its producers were asked
    half_offset: int  # its place in the broker's half queue


@dataclass(frozen=True, slots=True)
class PendingTimer:
    """A message that waits for its time."""

    broker_name: str
    message_id: str
    topic: str
    queue_id: int
    keys: tuple[str, ...]
    due_ms: int  # since 1970


class WaitingMessages:
    """What waits at some brokers, given as name → address of the master."""

    def __init__(self, instance: ClientInstance, brokers: Mapping[str, str], timeout: float) -> None:
        self._instance = instance
        self._brokers = brokers
        self._timeout = timeout

    # ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def open_transactions(
        self, topic: str | None, producer_group: str | None, transaction_id: str | None, most: int
    ) -> list[OpenTransaction]:
        """Up to a limit, oldest first."""
        found: list[OpenTransaction] = []
        for broker_name, address in self._brokers.items():
            of_broker: dict[str | int, OpenTransaction] = {}
            begin: int | None = 0
            while begin is not None and len(of_broker) < most:
                request = ListOpenTransactions(
                    begin_offset=begin,
                    topic=self._full(topic),
                    producer_group=self._full(producer_group),
                    transaction_id=transaction_id,
                )
                reply = await self._ours(address, request, "listing open transactions", "ask the producers")
                page = OpenTransactionList.decode(reply.body)
                for row in page.transactions:  # one that is checked meanwhile comes again, as a newer copy
                    of_broker[row.transaction_id or row.half_offset] = self._transaction(broker_name, row)
                begin = page.next_offset
            found += of_broker.values()
        found.sort(key=lambda each: -each.age_ms)
        return found[:most]

    def _transaction(self, broker_name: str, row: OpenTransactionRow) -> OpenTransaction:
        return OpenTransaction(
            broker_name,
            row.transaction_id,
            self._shown(row.topic),
            self._shown(row.producer_group),
            tuple(row.keys.split()),
            row.age_ms,
            row.checks,
            row.half_offset,
        )

    async def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """Raises BrokerRefused when it has ended meanwhile."""
        request = EndOpenTransaction(
            half_offset=transaction.half_offset,
            transaction_id=transaction.transaction_id,
            commit_or_rollback=COMMIT if commit else ROLLBACK,
        )
        address = self._address(transaction.broker_name)
        await self._ours(address, request, f"ending transaction {transaction.transaction_id}", "ask the producers")

    # ── timers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def pending_timers(self, topic: str | None, from_ms: int, most: int) -> list[PendingTimer]:
        """Up to a limit, soonest first, without those that were taken back."""
        found: list[PendingTimer] = []
        for broker_name, address in self._brokers.items():
            rows: list[PendingTimerRow] = []
            recalled: set[tuple[str, str]] = set()
            step_ms: int | None = max(from_ms, 0)
            position = -1
            while step_ms is not None and len(rows) < most:
                request = ListPendingTimers(step_ms=step_ms, position=position, topic=self._full(topic))
                reply = await self._ours(address, request, "listing pending timers", "timer_counts has their numbers")
                page = PendingTimerList.decode(reply.body)
                recalled |= {(row.topic, row.message_id) for row in page.timers if row.recalls}
                rows += [row for row in page.timers if not row.recalls]
                step_ms, position = page.next_step_ms, -1 if page.next_position is None else page.next_position
            waiting = (row for row in rows if (row.topic, row.message_id) not in recalled)
            found += [self._timer(broker_name, row) for row in waiting]
        found.sort(key=lambda each: each.due_ms)
        return found[:most]

    def _timer(self, broker_name: str, row: PendingTimerRow) -> PendingTimer:
        keys = tuple(row.keys.split())
        return PendingTimer(broker_name, row.message_id, self._shown(row.topic), row.queue_id, keys, row.due_ms)

    async def timer_counts(self) -> dict[str, int]:
        """How many wait, by topic."""
        counts: dict[str, int] = {}
        for address in self._brokers.values():
            reply = await self._ask(address, GetTimerMetrics(), "counting timers")
            for topic, metric in TimerMetrics.decode(reply.body).counts.items():
                if metric.count > 0 and not is_system_topic(topic):  # what pops leave with the timer
                    counts[self._shown(topic)] = counts.get(self._shown(topic), 0) + metric.count
        return counts

    async def find_timer(self, message_id: str) -> PendingTimer:
        """Of brokers' index, which Apache's have as well; raises ClientError when none is known."""
        for broker_name, address in self._brokers.items():
            request = QueryMessage(
                unique_key_query=True,
                topic=TIMER_TOPIC,
                key=message_id,
                max_num=_MOST_COPIES,
                begin_timestamp=0,
                end_timestamp=_FOREVER_MS,
                index_type="U",
            )
            try:
                reply = await self._ask(address, request, f"looking for timer {message_id}")
            except BrokerRefused as error:
                if error.code in (ResponseCode.QUERY_NOT_FOUND, ResponseCode.NO_MESSAGE):
                    continue
                raise
            for message in decode_messages(reply.body, broker_name):
                found = self._parked(broker_name, message)
                if found is not None and found.message_id == message_id:
                    return found
        raise ClientError(
            f"no message {message_id} waits for its time at {', '.join(self._brokers)}: check the id; a message that "
            "was delivered or whose log has expired is not found any more"
        )

    def _parked(self, broker_name: str, message: ReceivedMessage) -> PendingTimer | None:
        properties = message.properties
        due, topic = properties.get(_OUT_MS, ""), properties.get("REAL_TOPIC", "")
        if not due.isdigit() or not topic or _CANCELLED_KEY in properties:
            return None
        queue_id = properties.get("REAL_QID", "0")
        return PendingTimer(
            broker_name,
            properties.get(names.UNIQUE_KEY, ""),
            self._shown(topic),
            int(queue_id) if queue_id.isdigit() else 0,
            tuple(properties.get(names.KEYS, "").split()),
            int(due),
        )

    async def recall(self, timer: PendingTimer) -> None:
        """Take it back; raises BrokerRefused when it is too late, ClientError when the broker takes nothing back."""
        topic = wrap(self._instance.namespace, timer.topic)
        if topic.startswith(RETRY_PREFIX):
            raise WrongUse(f"message {timer.message_id} waits for a retry of its group: retries are not taken back")
        handle = RecallHandle(topic, timer.broker_name, str(timer.due_ms + 1), timer.message_id)
        await self.recall_by_handle(topic, timer.broker_name, handle.encode())

    async def recall_by_handle(self, topic: str, broker_name: str, handle: str) -> str:
        """Take back a delayed message by the handle of its receipt; returns the message's id."""
        request = RecallMessage(
            topic=topic, recall_handle=handle, producer_group=INNER_PRODUCER_GROUP, broker_name=broker_name
        )
        address = self._address(broker_name)
        try:
            reply = await self._ask(address, request, f"recalling a message of topic {self._shown(topic)}")
        except BrokerRefused as error:
            if error.code == ResponseCode.NO_PERMISSION and "forbidden" in (error.remark or ""):
                raise ClientError(
                    f"broker {broker_name} takes no message back ({error.remark}): set recallMessageEnable=true there; "
                    "it can be changed while the broker runs"
                ) from error
            raise
        return reply.header.msg_id or ""

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _address(self, broker_name: str) -> str:
        address = self._brokers.get(broker_name)
        if address is None:
            known = ", ".join(self._brokers)
            raise WrongUse(f"broker {broker_name} is not registered, or has no master; there are {known}")
        return address

    async def _ask(self, address: str, request: Request[A], doing: str) -> Reply[A]:
        return await self._instance.ask(address, request, doing=doing, timeout=self._timeout)

    async def _ours(self, address: str, request: Request[A], doing: str, instead: str) -> Reply[A]:
        try:
            return await self._ask(address, request, doing)
        except BrokerRefused as error:
            cause = error.__cause__
            if isinstance(cause, RequestNotSupported):
                raise NotOffered(address, cause, doing, instead) from error
            raise

    def _full(self, name: str | None) -> str | None:
        return None if name is None else wrap(self._instance.namespace, name)

    def _shown(self, name: str) -> str:
        return unwrap(self._instance.namespace, name)
