"""Locks of queues, for consumption in order."""

from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.protocol.bodies.locks import LockedQueues
from skyrocket.protocol.bodies.locks import QueueLocks as NamedQueues
from skyrocket.protocol.requests.consumers import LockBatchMq, UnlockBatchMq
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve


class LockProcessor:
    """Gives queues to one client of a group at a time."""

    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks

    def handlers(self) -> Handlers:
        return (
            serve(LockBatchMq, self.lock),
            serve(UnlockBatchMq, self.unlock),
        )

    def lock(self, _: Peer, __: LockBatchMq, wanted: NamedQueues) -> LockedQueues:
        """Lock queues; the answer names the queues that the client now holds."""
        held = self._locks.lock(wanted.group or "", wanted.client_id or "", wanted.queues)
        return LockedQueues(held)

    def unlock(self, _: Peer, __: UnlockBatchMq, given: NamedQueues) -> None:
        """Give queues back."""
        self._locks.unlock(given.group or "", given.client_id or "", given.queues)
