"""Celery on RocketMQ: a transport of kombu. Importing this makes `rocketmq://` known.

    import skyrocket.integrations.celery
    from celery import Celery

    app = Celery("shop", broker="rocketmq://127.0.0.1:9876")
    app.conf.worker_enable_remote_control = False      # needs fan-out, which is not offered

    @app.task(acks_late=True)
    def mail(number): ...

Queue `celery` is topic and consumer group `celery-celery`. With `acks_late` a task is done when it has returned, and
comes again within a minute when its worker has died. Transport options: `prefix` ("celery"), `invisible_seconds` (60),
`access_key` and `secret_key`. Several name servers, `rocketmq://host1:9876;rocketmq://host2:9876`, are tried in turn by
Celery itself.
"""

import json
from queue import Empty
from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, virtual

from skyrocket.client.core.settings import Acl
from skyrocket.errors import SkyrocketError
from skyrocket.integrations.work_queues import INVISIBLE_SECONDS, Task, Worker, WorkQueues
from skyrocket.remoting.errors import RemotingError

_WAIT_SECONDS: Final = 0.5  # for all queues of a channel together
_PORT: Final = 9876


class Channel(virtual.Channel):
    """Sends with confirmation and takes tasks by pop; tasks in hand are known by their delivery tag."""

    do_restore = False  # what was not acknowledged comes again by itself
    supports_fanout = False

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        client = connection.client
        options: dict[str, Any] = client.transport_options
        access, secret = options.get("access_key") or client.userid, options.get("secret_key") or client.password
        self._queues = WorkQueues(
            f"{client.hostname or '127.0.0.1'}:{client.port or _PORT}",
            options.get("prefix", "celery"),
            credentials=Acl(access, secret) if access and secret else None,
            invisible_seconds=float(options.get("invisible_seconds", INVISIBLE_SECONDS)),
        )
        self._workers: dict[str, Worker] = {}
        self._tasks: dict[str, tuple[Worker, Task]] = {}

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        self._queues.put(queue, json.dumps(message).encode(), key=message["headers"].get("id", ""))

    def _new_queue(self, queue: str, **_: Any) -> None:
        self._queues.create(queue)

    def _has_queue(self, queue: str, **_: Any) -> bool:
        return True

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        worker = self._workers.get(queue)
        if worker is None:
            worker = self._workers[queue] = self._queues.worker(queue)
        wait_seconds = _WAIT_SECONDS / max(len(self._active_queues), 1)
        tasks = worker.take(1, wait_seconds if timeout is None else min(timeout, wait_seconds))
        if not tasks:
            raise Empty
        message: dict[str, Any] = json.loads(tasks[0].body)
        self._tasks[message["properties"]["delivery_tag"]] = (worker, tasks[0])
        return message

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """It is done."""
        found = self._tasks.pop(delivery_tag, None)
        if found is not None:
            worker, task = found
            worker.done(task)
        super().basic_ack(delivery_tag, multiple)

    def basic_reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Others may have it at once, or it is a dead letter."""
        found = self._tasks.pop(delivery_tag, None)
        if found is not None:
            worker, task = found
            (worker.give_back if requeue else worker.give_up)(task)
        self.qos.ack(delivery_tag)  # forgotten here; kombu itself would send it once more

    def _size(self, queue: str) -> int:
        return self._queues.waiting(queue)

    def _purge(self, queue: str) -> int:
        worker, removed = self._queues.worker(queue), 0
        try:
            while tasks := worker.take(32, 0.5):
                for task in tasks:
                    worker.done(task)
                removed += len(tasks)
        finally:
            worker.close()
        return removed

    def close(self) -> None:
        super().close()
        for worker in self._workers.values():
            worker.close()
        self._workers.clear()
        self._queues.close()


class Transport(virtual.Transport):
    """`rocketmq://name-server:9876`."""

    Channel = Channel
    default_port = _PORT  # type: ignore[assignment]
    polling_interval = None  # type: ignore[assignment]  # a channel waits at the broker
    driver_type = "rocketmq"
    driver_name = "skyrocket"
    connection_errors = (*virtual.Transport.connection_errors, SkyrocketError, RemotingError, OSError)  # type: ignore[assignment]
    channel_errors = (*virtual.Transport.channel_errors, SkyrocketError)  # type: ignore[assignment]
    implements = virtual.Transport.implements.extend(exchange_type=frozenset(["direct", "topic"]))


TRANSPORT_ALIASES["rocketmq"] = f"{__name__}:Transport"
