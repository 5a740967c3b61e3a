"""Waits at several brokers at once until one of them has something to pop.

A pop that waits takes messages when they come, also when nobody listens any more. A NOTIFICATION takes nothing: it may
be given up, or answered late. Of every place one is on its way at most, however often an application asks.
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
    """For one consumer group; `master_of` gives the address of a place."""

    def __init__(
        self, instance: ClientInstance, group: str, master_of: Callable[[TopicAtBroker], Awaitable[str]], tasks: TaskSet
    ) -> None:
        self._instance = instance
        self._group = group
        self._master_of = master_of
        self._tasks = tasks
        self._asked: dict[TopicAtBroker, asyncio.Task[bool]] = {}

    async def wait(self, places: Sequence[TopicAtBroker], seconds: float) -> list[TopicAtBroker]:
        """Places that have messages, as soon as there are any; none when the time is over or brokers do not know."""
        for place in places:
            if place not in self._asked:
                self._asked[place] = self._tasks.start(self._ask(place), f"news of {place.topic} {self._group}")
        waiting = {place: self._asked[place] for place in places}
        await asyncio.wait(waiting.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        answered = [place for place, task in waiting.items() if task.done()]
        for place in answered:
            if self._asked.get(place) is waiting[place]:
                del self._asked[place]
        return [place for place in answered if not waiting[place].cancelled() and waiting[place].result()]

    async def _ask(self, place: TopicAtBroker) -> bool:
        request = Notification(
            consumer_group=self._group,
            topic=place.topic,
            queue_id=ANY_QUEUE,
            poll_time=round(_HOLD_SECONDS * 1000),
            born_time=0,  # the broker takes its own time: clocks need not agree
            broker_name=place.broker_name,
        )
        try:
            address = await self._master_of(place)
            reply = await self._instance.remoting.call(
                address, request, timeout_seconds=_HOLD_SECONDS + _ANSWER_SECONDS
            )
        except (RequestError, ClientError, RemotingError) as error:
            _logger.info("a broker sends no notifications of messages place=%s reason=%s", place, explained(error))
            await asyncio.sleep(_AFTER_FAILURE)
            return False
        if reply.header.polling_full:
            await asyncio.sleep(_AFTER_FAILURE)
        return reply.header.has_msg
