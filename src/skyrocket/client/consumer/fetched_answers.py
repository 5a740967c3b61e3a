"""What a lite pull consumer has fetched and the application has not polled yet, queue by queue in order of arrival."""

import asyncio
from collections import deque
from collections.abc import Sequence

from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.client.consumer.pulled_answer import PulledAnswer
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.model.message_queue import MessageQueue


class FetchedQueue(ProcessQueue):
    """One queue: whole answers, polled from the front, so that nothing is ever finished out of order."""

    __slots__ = ("_answers", "_count")

    def __init__(self, queue: MessageQueue, now: float = 0.0) -> None:
        super().__init__(queue, now)
        self._answers: deque[PulledAnswer] = deque()
        self._count = 0

    @property
    def count(self) -> int:
        return self._count

    @property
    def min_offset(self) -> int | None:
        """The next one to be polled."""
        return self._answers[0].first_offset if self._answers else None

    @property
    def span(self) -> int:
        """From the next one to be polled to the last one."""
        return self._answers[-1].offsets[-1] - self._answers[0].first_offset if self._answers else 0

    def add(self, answer: PulledAnswer) -> None:
        """Take in what was pulled; what is in hand already does not come twice."""
        if self._answers and answer.first_offset < self._answers[-1].end_offset:
            answer.seen = range(self._answers[0].first_offset, self._answers[-1].end_offset)
        self._answers.append(answer)
        self._count += len(answer.starts)
        self.size += len(answer.body)
        self.passed(answer.end_offset)

    def remove_first(self) -> None:
        """All of the oldest answer was polled."""
        answer = self._answers.popleft()
        self._count -= len(answer.starts)
        self.size -= len(answer.body)
        self.wake()

    @property
    def next_offset(self) -> int:
        """What may be committed: the next message to be polled, or what comes after all that was pulled."""
        first = self.min_offset
        return self.max_offset + 1 if first is None else first

    def drop(self) -> None:
        """The queue belongs to somebody else now."""
        self._answers.clear()
        self._count = 0
        super().drop()


class FetchedAnswers:
    """Filled by pullers, emptied by polls."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[FetchedQueue, PulledAnswer]] = deque()
        self._arrival = asyncio.Event()
        self._wanted = 1
        self.count = 0  # messages in hand; those that will be dropped for their tags are among them

    def received(self, process_queue: ProcessQueue, answer: PulledAnswer) -> None:
        """Take in what was pulled."""
        assert isinstance(process_queue, FetchedQueue)
        if not process_queue.is_dropped and answer.starts:
            process_queue.add(answer)
            self._waiting.append((process_queue, answer))
            self.count += len(answer.starts)
            if self.count >= self._wanted:
                self._arrival.set()

    def take(self, most: int | None) -> tuple[FetchedQueue, list[ReceivedMessage]]:
        """The oldest messages of one queue, up to a limit; there must be an answer, but none of it may be wanted."""
        process_queue, answer = self._waiting[0]
        messages = answer.take(most)
        if answer.taken == len(answer.messages()):
            self._waiting.popleft()
            self._finished(process_queue, answer)
        return process_queue, messages

    def whole_answers(self, most: int) -> list[tuple[FetchedQueue, PulledAnswer]]:
        """The oldest answers of one topic of one broker that together have at most so many messages.

        None when the oldest one alone has more.
        """
        found: list[tuple[FetchedQueue, PulledAnswer]] = []
        first = self._waiting[0][1].queue
        for process_queue, answer in self._waiting:
            if (answer.queue.topic, answer.queue.broker_name) == (first.topic, first.broker_name):
                most -= len(answer)
                if most < 0:
                    break
                found.append((process_queue, answer))
        return found

    def finished(self, answers: Sequence[tuple[FetchedQueue, PulledAnswer]]) -> None:
        """Of each queue the oldest were handed out as a whole."""
        done = {id(answer) for _, answer in answers}
        self._waiting = deque(each for each in self._waiting if id(each[1]) not in done)
        for process_queue, answer in answers:
            self._finished(process_queue, answer)

    @property
    def oldest(self) -> tuple[FetchedQueue, PulledAnswer]:
        return self._waiting[0]

    def _finished(self, process_queue: FetchedQueue, answer: PulledAnswer) -> None:
        process_queue.remove_first()
        self.count -= len(answer.starts)

    def drop(self, process_queue: FetchedQueue) -> None:
        """Forget what was fetched of a queue."""
        self._waiting = deque(each for each in self._waiting if each[0] is not process_queue)
        self.count = sum(len(answer.starts) for _, answer in self._waiting)

    async def wait(self, seconds: float, wanted: int = 1) -> bool:
        """Whether so many messages are in hand, or `wake` was called, in time."""
        self._arrival.clear()
        self._wanted = wanted
        try:
            async with asyncio.timeout(seconds):  # not wait_for: in 3.11 it goes on when it is woken and cancelled
                await self._arrival.wait()
        except TimeoutError:
            return False
        finally:
            self._wanted = 1
        return True

    def wake(self) -> None:
        """End all waiting: the consumer stops."""
        self._arrival.set()
