"""What operators ask about messages that wait, and beyond RocketMQ: open transactions, pending timers.

Lists come in pages, so that a million messages do not hold up the event loop; filters choose within a page, so a page
may be empty and not the last. What pops leave with the timer is not listed unless their system topic is asked for.
"""

import struct
from typing import Final

from skyrocket.broker.timer.feature import Timers
from skyrocket.broker.timer.service import TimerPlace
from skyrocket.broker.transactions.feature import Transactions
from skyrocket.broker.transactions.transaction_log import Decision
from skyrocket.errors import DataError
from skyrocket.model.topic import is_system_topic
from skyrocket.protocol.bodies.operators import (
    OpenTransactionList,
    OpenTransactionRow,
    PendingTimerList,
    PendingTimerRow,
)
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import InvalidParameter, SlaveNotAvailable, SystemFailure
from skyrocket.protocol.requests.operators import EndOpenTransaction, ListOpenTransactions, ListPendingTimers
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve

_HALVES_PER_PAGE: Final = 1000
_TIMERS_PER_PAGE: Final = 1000


class OperatorProcessor:
    """Answers for one broker."""

    def __init__(self, transactions: Transactions, timers: Timers, *, is_master: bool) -> None:
        self._transactions = transactions
        self._timers = timers
        self._is_master = is_master

    def handlers(self) -> Handlers:
        return (
            serve(ListOpenTransactions, self.open_transactions),
            serve(EndOpenTransaction, self.end_transaction),
            serve(ListPendingTimers, self.pending_timers),
        )

    def open_transactions(self, _: Peer, header: ListOpenTransactions, __: Body) -> OpenTransactionList:
        """A page of the transactions that nobody has ended."""
        page = self._transactions.open_page(header.begin_offset, _HALVES_PER_PAGE)
        rows = tuple(
            OpenTransactionRow(
                each.queue_offset,
                each.transaction_id,
                each.topic,
                each.producer_group,
                each.keys,
                each.born_ms,
                each.age_ms,
                each.checks,
            )
            for each in page.transactions
            if header.topic in (None, each.topic)
            and header.producer_group in (None, each.producer_group)
            and header.transaction_id in (None, each.transaction_id)
        )
        return OpenTransactionList(rows, page.next_offset)

    def end_transaction(self, _: Peer, header: EndOpenTransaction, __: Body) -> None:
        """End a transaction; raises InvalidParameter, SlaveNotAvailable, or SystemFailure when there is none."""
        try:
            decision = Decision(header.commit_or_rollback)
        except ValueError:
            raise InvalidParameter(
                f"commitOrRollback is {header.commit_or_rollback}: "
                f"{Decision.COMMIT.value} commits, {Decision.ROLLBACK.value} rolls back"
            ) from None
        if not self._is_master:
            raise SlaveNotAvailable("a slave ends no transactions: ask its master")
        self._transactions.end(header.half_offset, decision, header.transaction_id)

    def pending_timers(self, _: Peer, header: ListPendingTimers, __: Body) -> PendingTimerList:
        """A page of messages that wait; raises InvalidParameter, or SystemFailure without a timer."""
        if self._timers.service is None:
            raise SystemFailure("this broker has no timer: timerWheelEnable is false")
        if header.limit < 1:
            raise InvalidParameter(f"limit is {header.limit}: ask for at least one")
        place = TimerPlace(header.step_ms, header.position)
        try:
            found, rest = self._timers.pending_page(place, min(header.limit, _TIMERS_PER_PAGE))
        except (DataError, struct.error) as error:
            raise InvalidParameter(f"position {header.position} begins no page: {error}") from error
        rows = tuple(
            PendingTimerRow(each.due_ms, each.topic, each.queue_id, each.unique_key, each.keys, each.cancels)
            for each in found
            if (each.topic == header.topic if header.topic is not None else not is_system_topic(each.topic))
        )
        step_ms, position = (None, None) if rest is None else rest
        return PendingTimerList(rows, step_ms, position)
