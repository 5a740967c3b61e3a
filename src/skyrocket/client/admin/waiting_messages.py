"""Messages that wait at brokers, as operators see them: halves of transactions, and timers.

Brokers list both in pages; only Skyrocket's do. A timer is taken back with RocketMQ's own RECALL_MESSAGE, whose handle
(`v1 topic broker time id` in base64) is made from what is known of it.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final, TypeVar

from skyrocket.client.admin.admin_calls import AdminCalls, moment_ms
from skyrocket.client.admin.places import BrokerPlace
from skyrocket.client.core.errors import BrokerRefused, ClientError, NotFound, WrongUse
from skyrocket.client.core.message import ReceivedMessage, decode_messages
from skyrocket.client.core.names import INNER_PRODUCER_GROUP, unwrap
from skyrocket.client.core.routes import MASTER_ID
from skyrocket.client.core.send_receipt import topic_and_broker
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
from skyrocket.protocol.requests.admin_broker import GetTimerMetrics
from skyrocket.protocol.requests.header import Header
from skyrocket.protocol.requests.messaging import RecallMessage
from skyrocket.protocol.requests.query import QueryMessage
from skyrocket.protocol.requests.transaction import COMMIT, ROLLBACK, UNKNOWN
from skyrocket.protocol.requests.waiting_messages import EndOpenTransaction, ListOpenTransactions, ListPendingTimers

A = TypeVar("A", bound=Header)

_MOST_COPIES: Final = 64  # a timer that waits for weeks is written anew every two days
_MESSAGE_ID: Final = re.compile("[0-9A-Fa-f]{32,64}")
_FOREVER_MS: Final = (1 << 63) - 1
_NUMBERS_ALONE: Final = "their numbers by topic are told: `timers list --count`, Admin.timer_counts"


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


class WaitingAdmin(AdminCalls):
    """Operations on messages that wait."""

    # ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def open_transactions(
        self,
        topic: str | None = None,
        *,
        producer_group: str | None = None,
        transaction_id: str | None = None,
        cluster: str | None = None,
        most: int = 1000,
    ) -> list[OpenTransaction]:
        """Transactions that wait for their end, oldest first; raises NotOffered at brokers of Apache RocketMQ."""

        async def at(place: BrokerPlace) -> list[OpenTransaction]:
            of_broker: dict[str | int, OpenTransaction] = {}
            begin: int | None = 0
            while begin is not None and len(of_broker) < most:
                request = ListOpenTransactions(
                    begin_offset=begin,
                    topic=self._full_if_given(topic),
                    producer_group=self._full_if_given(producer_group),
                    transaction_id=transaction_id,
                )
                reply = await self._ours(place.address, request, "listing open transactions", "ask the producers")
                page = OpenTransactionList.decode(reply.body)
                for row in page.transactions:  # one that is checked meanwhile comes again, as a newer copy
                    of_broker[row.transaction_id or row.half_offset] = self._transaction(place.broker_name, row)
                begin = page.next_offset
            return list(of_broker.values())

        answers = await self._each(await self._places(cluster), at)
        return sorted(chain.from_iterable(answers.values()), key=lambda each: -each.age_ms)[:most]

    def _transaction(self, broker_name: str, row: OpenTransactionRow) -> OpenTransaction:
        return OpenTransaction(
            broker_name,
            row.transaction_id,
            unwrap(self._namespace, row.topic),
            unwrap(self._namespace, row.producer_group),
            tuple(row.keys.split()),
            row.age_ms,
            row.checks,
            row.half_offset,
        )

    async def end_transaction(self, transaction: OpenTransaction, *, commit: bool) -> None:
        """An operator's word in place of the producer's; raises BrokerRefused when it has ended meanwhile."""
        await self._about(transaction, COMMIT if commit else ROLLBACK, "ending")

    async def check_transaction(self, transaction: OpenTransaction) -> None:
        """Have its producer asked now; raises BrokerRefused when none is connected, or it has ended meanwhile."""
        await self._about(transaction, UNKNOWN, "checking")

    async def _about(self, transaction: OpenTransaction, word: int, doing: str) -> None:
        request = EndOpenTransaction(
            half_offset=transaction.half_offset,
            transaction_id=transaction.transaction_id,
            commit_or_rollback=word,
        )
        address = await self._master_named(transaction.broker_name)
        await self._ours(address, request, f"{doing} transaction {transaction.transaction_id}", "ask the producers")

    # ── timers ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def pending_timers(
        self,
        topic: str | None = None,
        *,
        due_from: datetime | float = 0.0,
        cluster: str | None = None,
        most: int = 1000,
    ) -> list[PendingTimer]:
        """Messages that wait for their time, soonest first; raises NotOffered at brokers of Apache RocketMQ."""

        async def at(place: BrokerPlace) -> list[PendingTimer]:
            rows: list[PendingTimerRow] = []
            recalled: set[tuple[str, str]] = set()
            step_ms: int | None = max(moment_ms(due_from), 0)
            position = -1
            while step_ms is not None and len(rows) < most:
                request = ListPendingTimers(step_ms=step_ms, position=position, topic=self._full_if_given(topic))
                reply = await self._ours(place.address, request, "listing pending timers", _NUMBERS_ALONE)
                page = PendingTimerList.decode(reply.body)
                recalled |= {(row.topic, row.message_id) for row in page.timers if row.recalls}
                rows += [row for row in page.timers if not row.recalls]
                step_ms, position = page.next_step_ms, -1 if page.next_position is None else page.next_position
            waiting = (row for row in rows if (row.topic, row.message_id) not in recalled)
            return [self._timer(place.broker_name, row) for row in waiting]

        answers = await self._each(await self._places(cluster), at)
        return sorted(chain.from_iterable(answers.values()), key=lambda each: each.due_ms)[:most]

    def _timer(self, broker_name: str, row: PendingTimerRow) -> PendingTimer:
        keys = tuple(row.keys.split())
        topic = unwrap(self._namespace, row.topic)
        return PendingTimer(broker_name, row.message_id, topic, row.queue_id, keys, row.due_ms)

    async def timer_counts(self, *, cluster: str | None = None) -> dict[str, int]:
        """How many messages of each topic wait for their time; raises TooOld at RocketMQ 4.x, which has no timers."""

        async def at(place: BrokerPlace) -> TimerMetrics:
            return TimerMetrics.decode((await self._since_5(place, GetTimerMetrics(), "counting timers")).body)

        counts: dict[str, int] = {}
        for metrics in (await self._each(await self._places(cluster), at)).values():
            for topic, metric in metrics.counts.items():
                if metric.count > 0 and not is_system_topic(topic):  # what pops leave with the timer
                    shown = unwrap(self._namespace, topic)
                    counts[shown] = counts.get(shown, 0) + metric.count
        return counts

    async def recall(self, timer: PendingTimer | str) -> str:
        """Take back a message that waits, given by its message id or its recall handle; returns the message id.

        Raises NotFound when none waits, BrokerRefused when it is too late, ClientError when the broker takes nothing
        back (recallMessageEnable).
        """
        if isinstance(timer, str) and not _MESSAGE_ID.fullmatch(timer):
            topic, broker_name = topic_and_broker(timer)
            return await self._recall(topic, broker_name, timer)
        found = await self._find_timer(timer) if isinstance(timer, str) else timer
        topic = self._full(found.topic)
        if topic.startswith(RETRY_PREFIX):
            raise WrongUse(
                "message {message_id} waits for a retry of its group: retries are not taken back",
                message_id=found.message_id,
            )
        handle = RecallHandle(topic, found.broker_name, str(found.due_ms + 1), found.message_id)
        await self._recall(topic, found.broker_name, handle.encode())
        return found.message_id

    async def find_timers(self, key: str) -> list[PendingTimer]:
        """Timers with a key or message id, soonest first; of brokers' index, which Apache's have as well.

        The index also knows timers that were delivered: their `due_ms` is past. Those that were taken back are left
        out.
        """

        async def at(place: BrokerPlace) -> list[PendingTimer]:
            found: dict[str, PendingTimer] = {}
            for unique in (False, True):
                for message in await self._in_timer_index(place, key, unique=unique):
                    timer = self._parked(place.broker_name, message)
                    if timer is not None and key in (timer.message_id, *timer.keys):
                        found[timer.message_id] = timer
            return [timer for timer in found.values() if not await self._is_recalled(place, timer)]

        answers = await self._each(await self._places(None), at)
        return sorted(chain.from_iterable(answers.values()), key=lambda each: each.due_ms)

    async def _is_recalled(self, place: BrokerPlace, timer: PendingTimer) -> bool:
        copies = await self._in_timer_index(place, timer.message_id, unique=True)
        return any(names.TIMER_DELETE_UNIQUE_KEY in each.properties for each in copies)

    async def _find_timer(self, message_id: str) -> PendingTimer:
        """Of brokers' index, which Apache's have as well; raises NotFound when none is known."""
        places = await self._places(None)
        answers = await self._each(places, lambda place: self._timer_in_index(place, message_id))
        found = next((timer for timer in answers.values() if timer is not None), None)
        if found is None:
            raise NotFound(
                "no message {message_id} waits for its time at {names}: check the id; a message that was "
                "delivered or whose log has expired is not found any more",
                message_id=message_id,
                names=", ".join(place.broker_name for place in answers),
            )
        return found

    async def _timer_in_index(self, place: BrokerPlace, message_id: str) -> PendingTimer | None:
        found = await self._in_timer_index(place, message_id, unique=True)
        parked = (self._parked(place.broker_name, each) for each in found)
        return next((timer for timer in parked if timer is not None and timer.message_id == message_id), None)

    async def _in_timer_index(self, place: BrokerPlace, key: str, *, unique: bool) -> list[ReceivedMessage]:
        request = QueryMessage(
            unique_key_query=unique,
            topic=TIMER_TOPIC,
            key=key,
            max_num=_MOST_COPIES,
            begin_timestamp=0,
            end_timestamp=_FOREVER_MS,
            index_type="U" if unique else "K",
        )
        try:
            reply = await self._ask(place.address, request, doing=f"looking for timer {key}")
        except BrokerRefused as error:
            if error.code in (ResponseCode.QUERY_NOT_FOUND, ResponseCode.NO_MESSAGE):
                return []
            raise
        return decode_messages(reply.body, place.broker_name)

    def _parked(self, broker_name: str, message: ReceivedMessage) -> PendingTimer | None:
        properties = message.properties
        due, topic = properties.get(names.TIMER_OUT_MS, ""), properties.get(names.REAL_TOPIC, "")
        if not due.isdigit() or not topic or names.TIMER_DELETE_UNIQUE_KEY in properties:
            return None
        queue_id = properties.get(names.REAL_QUEUE_ID, "0")
        return PendingTimer(
            broker_name,
            properties.get(names.UNIQUE_KEY, ""),
            unwrap(self._namespace, topic),
            int(queue_id) if queue_id.isdigit() else 0,
            tuple(properties.get(names.KEYS, "").split()),
            int(due),
        )

    async def _recall(self, topic: str, broker_name: str, handle: str) -> str:
        """The id of the message that is taken back."""
        request = RecallMessage(
            topic=topic, recall_handle=handle, producer_group=INNER_PRODUCER_GROUP, broker_name=broker_name
        )
        place = BrokerPlace("", broker_name, MASTER_ID, await self._master_named(broker_name))
        doing = f"recalling a message of topic {unwrap(self._namespace, topic)}"
        try:
            reply = await self._since_5(place, request, doing)
        except BrokerRefused as error:
            if error.code == ResponseCode.NO_PERMISSION and "forbidden" in (error.remark or ""):
                raise ClientError(
                    "broker {broker} takes no message back ({remark}): set recallMessageEnable=true there; it "
                    "can be changed while the broker runs",
                    broker=broker_name,
                    remark=error.remark,
                ) from error
            raise
        return reply.header.msg_id or ""

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _master_named(self, broker_name: str) -> str:
        brokers = await self._named_masters(None)
        if broker_name not in brokers:
            known = ", ".join(brokers)
            raise WrongUse(
                "broker {broker} is not registered, or has no master; there are {known}",
                broker=broker_name,
                known=known,
            )
        return brokers[broker_name]

    def _full_if_given(self, name: str | None) -> str | None:
        return None if name is None else self._full(name)
