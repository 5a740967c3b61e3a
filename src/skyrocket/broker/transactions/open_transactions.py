"""Which transactions are open, ending them by an operator's word, and asking their producers: beyond RocketMQ.

The list comes in pages, so that a million halves do not hold up the event loop; filters choose within a page, so a page
may be empty and not the last.
"""

from typing import Final

from skyrocket.broker.transactions.transaction_check import TransactionCheck
from skyrocket.broker.transactions.transaction_log import Decision, PutRefused, TransactionLog
from skyrocket.protocol.bodies.waiting_messages import OpenTransactionList, OpenTransactionRow
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import InvalidParameter, SlaveNotAvailable, SystemFailure
from skyrocket.protocol.requests.transaction import UNKNOWN
from skyrocket.protocol.requests.waiting_messages import EndOpenTransaction, ListOpenTransactions
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve

_HALVES_PER_PAGE: Final = 1000


class OpenTransactionProcessor:
    """Answers for one broker."""

    def __init__(self, log: TransactionLog, check: TransactionCheck, *, is_master: bool) -> None:
        self._log = log
        self._check = check
        self._is_master = is_master

    def handlers(self) -> Handlers:
        return (
            serve(ListOpenTransactions, self.open_transactions),
            serve(EndOpenTransaction, self.end_transaction),
        )

    def open_transactions(self, _: Peer, wanted: ListOpenTransactions, __: Body) -> OpenTransactionList:
        """A page of transactions that have not ended."""
        page = self._log.open_page(wanted.begin_offset, _HALVES_PER_PAGE)
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
            if wanted.topic in (None, each.topic)
            and wanted.producer_group in (None, each.producer_group)
            and wanted.transaction_id in (None, each.transaction_id)
        )
        return OpenTransactionList(rows, page.next_offset)

    def end_transaction(self, _: Peer, wanted: EndOpenTransaction, __: Body) -> None:
        """End one by the operator's word, or ask its producer now.

        Raises InvalidParameter, SlaveNotAvailable, or SystemFailure.
        """
        word = wanted.commit_or_rollback
        if word not in (UNKNOWN, *(each.value for each in Decision)):
            raise InvalidParameter(
                f"commitOrRollback is {word}: {Decision.COMMIT.value} commits, {Decision.ROLLBACK.value} rolls back, "
                f"{UNKNOWN} has the producer asked"
            )
        if not self._is_master:
            raise SlaveNotAvailable("a slave ends no transactions: ask its master")
        try:
            if word == UNKNOWN:
                self._check.ask_now(self._log.open_half(wanted.half_offset, wanted.transaction_id))
            else:
                self._log.end_by_operator(wanted.half_offset, Decision(word), wanted.transaction_id)
        except PutRefused as error:
            raise SystemFailure(
                f"the transaction is still open, the store did not take its message: {error}"
            ) from error
