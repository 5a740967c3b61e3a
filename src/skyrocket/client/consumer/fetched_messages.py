"""What a lite pull consumer has fetched and the application has not polled yet, queue by queue in order of arrival."""

import asyncio
from collections import deque

from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.core.message import ReceivedMessage


class FetchedMessages:
    """Filled by pullers, emptied by `poll`."""

    def __init__(self) -> None:
        self.count = 0
        self._batches: deque[tuple[ProcessQueue, list[ReceivedMessage]]] = deque()
        self._arrival = asyncio.Event()

    def arrived(self, process_queue: ProcessQueue, messages: list[ReceivedMessage]) -> None:
        """Take in what was pulled."""
        new = [] if process_queue.is_dropped else process_queue.put(messages)
        if new:
            self._batches.append((process_queue, new))
            self.count += len(new)
            self._arrival.set()

    def take(self, most: int | None) -> tuple[ProcessQueue, list[ReceivedMessage]]:
        """The oldest messages of one queue, up to a limit; there must be some."""
        process_queue, messages = self._batches.popleft()
        if most is not None and len(messages) > most:
            self._batches.appendleft((process_queue, messages[most:]))
            messages = messages[:most]
        self.count -= len(messages)
        return process_queue, messages

    def drop(self, process_queue: ProcessQueue) -> None:
        """Forget what was fetched of a queue."""
        self._batches = deque(each for each in self._batches if each[0] is not process_queue)
        self.count = sum(len(messages) for _, messages in self._batches)

    def first_offset(self, process_queue: ProcessQueue) -> int | None:
        """The next message of a queue to be polled."""
        return next((messages[0].queue_offset for each, messages in self._batches if each is process_queue), None)

    async def wait(self, seconds: float) -> bool:
        """Whether messages came, or `wake` was called, in time."""
        self._arrival.clear()
        try:
            await asyncio.wait_for(self._arrival.wait(), seconds)
        except TimeoutError:
            return False
        return True

    def wake(self) -> None:
        """End all waiting: the consumer stops."""
        self._arrival.set()
