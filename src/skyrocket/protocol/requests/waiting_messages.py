"""What operators ask Skyrocket's brokers beyond RocketMQ; Apache's answer that they do not know these codes."""

from skyrocket.protocol.bodies.waiting_messages import OpenTransactionList, PendingTimerList
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, request


@request(RequestCode.LIST_OPEN_TRANSACTIONS, answer_body=OpenTransactionList)
class ListOpenTransactions(Request[Header]):
    """A page of the transactions that wait for their end, from an offset of the half queue on."""

    begin_offset: Long = 0
    topic: str | None = None
    producer_group: str | None = None
    transaction_id: str | None = None


@request(RequestCode.END_OPEN_TRANSACTION)
class EndOpenTransaction(Request[Header]):
    """An operator's word in place of the producer's, or (UNKNOWN) the wish that the producer is asked now.

    Of a half with several copies any offset will do.
    """

    half_offset: Long
    transaction_id: str = ""
    commit_or_rollback: Int


@request(RequestCode.LIST_PENDING_TIMERS, answer_body=PendingTimerList)
class ListPendingTimers(Request[Header]):
    """A page of the messages that wait for a time from `step_ms` on; `position` is that of the page before."""

    step_ms: Long = 0
    position: Long = -1
    limit: Int = 1000
    topic: str | None = None
