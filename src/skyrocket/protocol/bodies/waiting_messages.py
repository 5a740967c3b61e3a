"""What operators see of messages that wait: open transactions, pending timers. Both are ours, RocketMQ has neither."""

from skyrocket.protocol.bodies.json_body import BodyBase, body


@body
class OpenTransactionRow(BodyBase):
    """A half message whose producer has not said how it ends."""

    half_offset: int = 0  # in the half queue
    transaction_id: str = ""
    topic: str = ""
    producer_group: str = ""
    keys: str = ""
    born_ms: int = 0
    age_ms: int = 0  # by the broker's clock
    checks: int = 0


@body
class OpenTransactionList(BodyBase):
    """A page of them; `next_offset` is where the next page begins, None behind the last."""

    transactions: tuple[OpenTransactionRow, ...] = ()
    next_offset: int | None = None


@body
class PendingTimerRow(BodyBase):
    """A message that waits for its time; `recalls`: the word that another one is not to be delivered."""

    due_ms: int = 0
    topic: str = ""
    queue_id: int = 0
    message_id: str = ""
    keys: str = ""
    recalls: bool = False


@body
class PendingTimerList(BodyBase):
    """A page of them, soonest first; step and position say where the next page begins, None behind the last."""

    timers: tuple[PendingTimerRow, ...] = ()
    next_step_ms: int | None = None
    next_position: int | None = None
