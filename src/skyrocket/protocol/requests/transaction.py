"""Transactions: the end of a half message."""

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.header import Header, Int, Long, Request, request, wire

COMMIT = 8
ROLLBACK = 12
UNKNOWN = 0


@request(RequestCode.END_TRANSACTION)
class EndTransaction(Request[Header]):
    """Commit or roll back a half message; UNKNOWN is never answered."""

    broker_name: str | None = wire("bname", default=None)
    topic: str | None = None
    producer_group: str
    tran_state_table_offset: Long  # of the half message in its queue
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None

    def check_fields(self) -> None:
        if self.commit_or_rollback not in (COMMIT, ROLLBACK, UNKNOWN):
            raise SystemFailure(
                "org.apache.rocketmq.remoting.exception.RemotingCommandException: commitOrRollback field wrong"
            )


@request(RequestCode.RESUME_CHECK_HALF_MESSAGE)
class ResumeCheckHalfMessage(Request[Header]):
    """Check again a half message that was given up."""

    msg_id: str | None = None
    topic: str | None = None
