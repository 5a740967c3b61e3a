"""Locks of queues, for consumption in order."""

from skyrocket.broker.state.queue_locks import QueueLocks
from skyrocket.protocol.bodies.locks import LOCKED_QUEUES, QUEUE_LOCKS, LockedQueues
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw


class LockProcessor:
    """Gives queues to one client of a group at a time."""

    def __init__(self, locks: QueueLocks) -> None:
        self._locks = locks

    def handlers(self) -> Handlers:
        return (
            serve_raw(RequestCode.LOCK_BATCH_MQ, self.lock),
            serve_raw(RequestCode.UNLOCK_BATCH_MQ, self.unlock),
        )

    def lock(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """LOCK_BATCH_MQ: the answer names the queues that the client now holds."""
        wanted = QUEUE_LOCKS.decode(request.body)
        held = self._locks.lock(wanted.group or "", wanted.client_id or "", wanted.queues)
        return request.answer(ResponseCode.SUCCESS, None, None, LOCKED_QUEUES.encode(LockedQueues(held)))

    def unlock(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """UNLOCK_BATCH_MQ."""
        given = QUEUE_LOCKS.decode(request.body)
        self._locks.unlock(given.group or "", given.client_id or "", given.queues)
        return request.answer(ResponseCode.SUCCESS)
