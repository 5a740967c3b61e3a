"""Topics as work queues for task libraries: put, take, done, give back, give up. For threads, without an event loop.

A task is popped: hidden from other workers for `invisible_seconds`, and hidden again while it is in hand, so that tasks
may take as long as they like and come again soon when their worker has died. Delays are the broker's own.
"""

import itertools
import logging
import re
import threading
from dataclasses import replace
from typing import Final

from skyrocket.client import ClientError, ClientSettings, ConsumeFromWhere, Message, NoRoute, SimpleConsumerSettings
from skyrocket.client import PoppedMessage as Task
from skyrocket.client.blocking import Admin, Producer, SimpleConsumer
from skyrocket.client.core.settings import Acl
from skyrocket.errors import SkyrocketError
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

INVISIBLE_SECONDS: Final = 60.0
MOST_AT_ONCE: Final = 32
_END_SECONDS: Final = 10.0
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_numbers = itertools.count()

__all__ = ["Task", "WorkQueues", "Worker", "topic_of"]


def topic_of(prefix: str, queue: str) -> str:
    """The topic, and the consumer group, of a queue: RocketMQ takes fewer characters than others."""
    return f"{prefix}-{_FOREIGN.sub('_', queue)}"


class WorkQueues:
    """The queues of one library in one process."""

    def __init__(
        self, name_servers: str, prefix: str, *, credentials: Acl | None = None, invisible_seconds: float
    ) -> None:
        self._prefix = prefix
        self._settings = ClientSettings(
            name_servers, credentials=credentials, instance_name=f"{prefix}-{next(_numbers)}"
        )
        self._invisible_seconds = invisible_seconds
        self._lock = threading.Lock()
        self._producer: Producer | None = None

    def put(self, queue: str, body: bytes, *, delay_seconds: float | None = None, key: str = "") -> None:
        """Stored when this returns; raises SendFailed and the like."""
        topic = topic_of(self._prefix, queue)
        self._started().send(Message(topic, body, keys=key or (), delay=delay_seconds or None))

    def worker(self, queue: str) -> "Worker":
        """Takes tasks of a queue, whose topic is made if there is none; to be closed."""
        topic = topic_of(self._prefix, queue)
        self.create(queue)
        return Worker(topic, self._settings, self._invisible_seconds)

    def create(self, queue: str) -> None:
        """Make the queue's topic if there is none."""
        topic = topic_of(self._prefix, queue)
        with Admin(client=self._settings) as admin:
            try:
                admin.route(topic)
            except NoRoute:
                admin.create_topic(topic)

    def waiting(self, queue: str) -> int:
        """How many tasks nobody has taken yet."""
        topic = topic_of(self._prefix, queue)
        with Admin(client=self._settings) as admin:
            try:
                ends = admin.topic_offsets(topic)
                lags = {lag.queue: lag.lag for lag in admin.consumer_lag(topic, topic)}
            except (NoRoute, ClientError):
                return 0
        return sum(lags.get(each, offset.max_offset - offset.min_offset) for each, offset in ends.items())

    def _started(self) -> Producer:
        with self._lock:
            if self._producer is None:
                self._producer = Producer(f"{self._prefix}-producer", client=self._settings)
                self._producer.start()
            return self._producer

    def close(self) -> None:
        """May be called again."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.stop()


class Worker:
    """Takes tasks of one queue, and keeps them hidden while they are in hand."""

    def __init__(self, topic: str, client: ClientSettings, invisible_seconds: float) -> None:
        own = replace(client, instance_name=f"{client.instance_name}-worker-{next(_numbers)}")
        settings = SimpleConsumerSettings(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, max_reconsume_times=-1)
        self._consumer = SimpleConsumer(topic, settings=settings, client=own, subscription={topic: "*"})
        self._consumer.start()
        self._invisible_seconds = invisible_seconds
        self._lock = threading.Lock()  # a receipt that is being renewed is not acknowledged meanwhile
        self._in_hand: dict[int, Task] = {}
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name=f"tasks of {topic}", daemon=True)
        self._keeper.start()

    def take(self, most: int, wait_seconds: float) -> list[Task]:
        """Up to so many, as soon as there is one."""
        tasks = self._consumer.receive(min(most, MOST_AT_ONCE), self._invisible_seconds, wait_seconds)
        with self._lock:
            self._in_hand.update((id(task), task) for task in tasks)
        return tasks

    def done(self, task: Task) -> None:
        """It comes no more."""
        with self._lock:
            self._in_hand.pop(id(task), None)
            self._consumer.ack(task)

    def give_back(self, task: Task) -> None:
        """Somebody else may have it at once."""
        with self._lock:
            self._in_hand.pop(id(task), None)
            self._consumer.change_invisible(task, 0)

    def give_up(self, task: Task, cause: Exception | None = None) -> None:
        """To the dead letters of the queue's group."""
        with self._lock:
            self._in_hand.pop(id(task), None)
            self._consumer.to_dead_letters(task, cause)

    def close(self) -> None:
        """Tasks that are in hand come again; may be called again."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._keeper.join(_END_SECONDS)
        with self._lock:
            left, self._in_hand = list(self._in_hand.values()), {}
            for task in left:
                try:
                    self._consumer.change_invisible(task, 0)
                except (SkyrocketError, RemotingError) as error:
                    _logger.info("a task comes again when its time is over task=%s reason=%s", task.message_id, error)
        self._consumer.stop()

    def _keep(self) -> None:
        while not self._ended.wait(self._invisible_seconds / 3):
            for number, task in list(self._in_hand.items()):
                with self._lock:
                    if number not in self._in_hand:
                        continue
                    try:
                        self._consumer.change_invisible(task, self._invisible_seconds)
                    except (SkyrocketError, RemotingError) as error:
                        _logger.warning("a task in hand may come again task=%s reason=%s", task.message_id, error)
