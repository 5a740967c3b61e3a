"""Waits at several brokers at once until one of them has something to pop.

A pop that waits takes messages when they come, also when nobody listens any more. A NOTIFICATION takes nothing: it may
be given up, or answered late. Of every topic at a broker one is on its way at most, however often an application asks.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from skyrocket.client.core.errors import ClientError, explained
from skyrocket.client.core.instance import ClientInstance
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.pop import Notification
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.tasks import TaskSet

_logger = logging.getLogger(__name__)

ANY_QUEUE: Final = -1
# After this everything is looked through again: no message depends on a broker that remembers to tell.
_HOLD_SECONDS: Final = 5.0
_ANSWER_SECONDS: Final = 5.0
_AFTER_FAILURE: Final = 0.5


class TopicAtBroker(NamedTuple):
    """A topic at a broker, all queues of it."""

    topic: str
    broker_name: str


class PopNotifications:
    """For one consumer group; `master_of` gives the address of its broker."""

    def __init__(
        self, instance: ClientInstance, group: str, master_of: Callable[[TopicAtBroker], Awaitable[str]], tasks: TaskSet
    ) -> None:
        self._instance = instance
        self._group = group
        self._master_of = master_of
        self._tasks = tasks
        self._asked: dict[TopicAtBroker, asyncio.Task[bool]] = {}

    async def wait(self, targets: Sequence[TopicAtBroker], seconds: float) -> list[TopicAtBroker]:
        """Places that have messages, as soon as there are any; none when the time is over or brokers do not know."""
        for target in targets:
            if target not in self._asked:
                self._asked[target] = self._tasks.start(self._ask(target), f"news of {target.topic} {self._group}")
        waiting = {target: self._asked[target] for target in targets}
        await asyncio.wait(waiting.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        answered = [target for target, task in waiting.items() if task.done()]
        for target in answered:
            if self._asked.get(target) is waiting[target]:
                del self._asked[target]
        return [target for target in answered if not waiting[target].cancelled() and waiting[target].result()]

    async def _ask(self, target: TopicAtBroker) -> bool:
        request = Notification(
            consumer_group=self._group,
            topic=target.topic,
            queue_id=ANY_QUEUE,
            poll_time=round(_HOLD_SECONDS * 1000),
            born_time=0,  # the broker takes its own time: clocks need not agree
            broker_name=target.broker_name,
        )
        try:
            address = await self._master_of(target)
            reply = await self._instance.remoting.call(
                address, request, timeout_seconds=_HOLD_SECONDS + _ANSWER_SECONDS
            )
        except (RequestError, ClientError, RemotingError) as error:
            _logger.info("a broker sends no notifications of messages target=%s reason=%s", target, explained(error))
            await asyncio.sleep(_AFTER_FAILURE)
            return False
        if reply.header.polling_full:
            await asyncio.sleep(_AFTER_FAILURE)
        return reply.header.has_msg
