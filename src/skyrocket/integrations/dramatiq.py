"""dramatiq on RocketMQ.

    import dramatiq
    from skyrocket.integrations.dramatiq import RocketmqBroker

    dramatiq.set_broker(RocketmqBroker("127.0.0.1:9876"))

    @dramatiq.actor(max_retries=3)
    def mail(number: int) -> None: ...

    mail.send(7)
    mail.send_with_options(args=(7,), delay=60_000)

Queue `default` is topic and consumer group `dramatiq-default`. Delays, and so retries, are kept by the brokers; no
worker holds messages for later. What dramatiq rejects is in %DLQ%dramatiq-default (`skyrocket dlq list …`).
"""

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from dramatiq import Broker, Consumer, Message, MessageProxy
from dramatiq.errors import ConnectionClosed, QueueNotFound
from dramatiq.middleware import Middleware

from skyrocket.client.core.settings import Acl
from skyrocket.errors import SkyrocketError
from skyrocket.integrations.work_queues import INVISIBLE_SECONDS, Task, Worker, WorkQueues
from skyrocket.remoting.errors import RemotingError

_FAILURES: Final = (SkyrocketError, RemotingError)


class RocketmqBroker(Broker):
    """Enqueues with confirmation, consumes by pop: any number of workers share a queue."""

    def __init__(
        self,
        name_servers: str = "",
        *,
        prefix: str = "dramatiq",
        credentials: Acl | None = None,
        invisible_seconds: float = INVISIBLE_SECONDS,
        middleware: list[Middleware] | None = None,
    ) -> None:
        super().__init__(middleware)
        self._queues = WorkQueues(name_servers, prefix, credentials=credentials, invisible_seconds=invisible_seconds)

    def declare_queue(self, queue_name: str) -> None:
        """Its topic is made when a worker consumes it."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = None
            self.emit_after("declare_queue", queue_name)

    def enqueue(self, message: "Message[Any]", *, delay: int | None = None) -> "Message[Any]":
        """Stored by a broker when this returns; `delay` is in milliseconds."""
        if message.queue_name not in self.queues:
            raise QueueNotFound(message.queue_name)
        self.emit_before("enqueue", message, delay)
        seconds = None if delay is None else delay / 1000
        try:
            self._queues.put(message.queue_name, message.encode(), delay_seconds=seconds, key=message.message_id)
        except _FAILURES as error:
            raise ConnectionClosed(error) from error
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> "RocketmqConsumer":
        """Messages of a queue; None after `timeout` milliseconds without one."""
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        try:
            return RocketmqConsumer(self._queues.worker(queue_name), prefetch, timeout / 1000)
        except _FAILURES as error:
            raise ConnectionClosed(error) from error

    def close(self) -> None:
        self._queues.close()


class RocketmqConsumer(Consumer):
    """One thread's messages of a queue."""

    def __init__(self, worker: Worker, prefetch: int, wait_seconds: float) -> None:
        self._worker = worker
        self._prefetch = max(prefetch, 1)
        self._wait_seconds = wait_seconds
        self._fetched: deque[Task] = deque()
        self._tasks: dict[str, Task] = {}  # by dramatiq's id

    def __next__(self) -> MessageProxy | None:
        """The next one, or None when none came in time."""
        if not self._fetched:
            try:
                self._fetched.extend(self._worker.take(self._prefetch, self._wait_seconds))
            except _FAILURES as error:
                raise ConnectionClosed(error) from error
        if not self._fetched:
            return None
        task = self._fetched.popleft()
        message = MessageProxy(Message.decode(task.body))
        self._tasks[message.message_id] = task
        return message

    def ack(self, message: MessageProxy) -> None:
        """It is done."""
        self._end(message, self._worker.done)

    def nack(self, message: MessageProxy) -> None:
        """It is a dead letter."""
        self._end(message, self._worker.give_up)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Others may have them at once."""
        for message in messages:
            self._end(message, self._worker.give_back)

    def _end(self, message: MessageProxy, end: Any) -> None:
        task = self._tasks.pop(message.message_id, None)
        if task is None:
            return  # given back when a connection was lost
        try:
            end(task)
        except _FAILURES as error:
            self._tasks[message.message_id] = task  # dramatiq tries it again
            raise ConnectionClosed(error) from error

    def close(self) -> None:
        self._worker.close()
