"""The polls of a lite pull consumer: messages or Arrow columns of what pullers have fetched."""

import asyncio
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from skyrocket.client.consumer.answer_puller import AnswerPuller
from skyrocket.client.consumer.fetched_answers import FetchedAnswers, FetchedQueue
from skyrocket.client.consumer.group_member import GroupMember
from skyrocket.client.consumer.lite_pull_settings import LitePullSettings
from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.lifecycle import State
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.names import unwrap
from skyrocket.client.core.settings import ClientSettings
from skyrocket.model.message_queue import MessageQueue

if TYPE_CHECKING:
    import pyarrow as pa

    from skyrocket.client.consumer.column_polls import ColumnPolls


class Held:
    """One assigned queue."""

    __slots__ = ("consumed", "process_queue", "puller", "task")

    def __init__(self, process_queue: FetchedQueue, puller: AnswerPuller, task: "asyncio.Task[None]") -> None:
        self.process_queue = process_queue
        self.puller = puller
        self.task = task
        self.consumed: int | None = None  # the offset after what was polled


class Polling(GroupMember):
    """A member of a group whose application asks for messages; LitePullConsumer adds which queues, and offsets."""

    def __init__(self, group: str, client: ClientSettings, settings: LitePullSettings) -> None:
        super().__init__(group, client, settings.consume_from, settings.message_model)
        self.settings = settings
        self._held: dict[MessageQueue, Held] = {}
        self._fetched = FetchedAnswers()

    @abstractmethod
    def _commit_when_due(self) -> None:
        """Say how far the application is, if it is time to."""

    def _is_full(self) -> bool:
        return self._fetched.count >= self.settings.pull_threshold_for_all

    async def poll(self, timeout: float | None = None, max_messages: int | None = None) -> list[ReceivedMessage]:
        """The next messages of one queue; empty when none came in time."""
        self._check_running()
        seconds = self.settings.poll_timeout if timeout is None else timeout
        if seconds < 0:
            raise WrongUse(f"timeout {seconds} is negative")
        self._commit_when_due()
        deadline = asyncio.get_running_loop().time() + seconds
        while await self._arrived(deadline):
            messages = self._taken(max_messages)
            if messages:
                return messages
        return []

    async def _arrived(self, deadline: float) -> bool:
        """Whether something was fetched in time."""
        loop = asyncio.get_running_loop()
        while not self._fetched.count:
            left = deadline - loop.time()
            if left <= 0:
                await asyncio.sleep(0)
                return False
            if not await self._fetched.wait(left) or self._state is not State.RUNNING:
                return False
        return True

    def _taken(self, most: int | None) -> list[ReceivedMessage]:
        was_full = self._is_full()
        process_queue, messages = self._fetched.take(most)
        self._held[process_queue.queue].consumed = process_queue.next_offset
        self._fetch_again(was_full)
        if messages and self._tracer is not None:
            self._tracer.polled(messages)
        return messages

    def _fetch_again(self, was_full: bool) -> None:
        if was_full:
            for other in self._held.values():
                other.process_queue.wake()

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        """Messages one by one until the consumer is stopped."""
        async for batch in self.batches():
            for message in batch:
                yield message

    async def batches(self, max_messages: int | None = None) -> AsyncIterator[list[ReceivedMessage]]:
        """Messages as they come, until the consumer is stopped."""
        while self._state is State.RUNNING:
            batch = await self.poll(1.0, max_messages)
            if batch:
                yield batch

    async def poll_arrow(
        self,
        timeout: float | None = None,
        max_messages: int = 8192,
        columns: Iterable[str] | None = None,
        *,
        linger: float = 0.02,
    ) -> "pa.RecordBatch":
        """The next messages of one topic and broker as a `pyarrow.RecordBatch`; without a row when none came in time.

        `columns` names the wanted ones (all when None): fewer cost less. For up to `linger` seconds after the first
        messages more are awaited, as large batches cost far less per message. Commits are those of `poll`.
        Raises ConfigError for an unknown column, CorruptRecord for a damaged record, WrongUse without pyarrow.
        """
        self._check_running()
        seconds = self.settings.poll_timeout if timeout is None else timeout
        if seconds < 0 or max_messages < 1:
            raise WrongUse(f"timeout {seconds} is negative, or max_messages {max_messages} is not positive")
        polls = self._column_polls(columns)
        self._commit_when_due()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while await self._arrived(deadline):
            wanted = self._enough_in_hand(max_messages)
            if self._fetched.count < wanted and linger > 0:
                await self._fetched.wait(linger, wanted)
                if self._state is not State.RUNNING:
                    break
            if self._fetched.count and (batch := self._taken_columns(polls, max_messages)).num_rows:
                return batch
        return polls.none()

    async def arrow_batches(
        self, max_messages: int = 8192, columns: Iterable[str] | None = None, *, linger: float = 0.02
    ) -> "AsyncIterator[pa.RecordBatch]":
        """Messages as `pyarrow.RecordBatch`es as they come, until the consumer is stopped."""
        wanted = None if columns is None else list(columns)
        while self._state is State.RUNNING:
            batch = await self.poll_arrow(1.0, max_messages, wanted, linger=linger)
            if batch.num_rows:
                yield batch

    def _column_polls(self, columns: Iterable[str] | None) -> "ColumnPolls":
        try:
            from skyrocket.client.consumer.column_polls import ColumnPolls
        except ImportError as error:
            raise WrongUse(f"columns need pyarrow and numpy ({error}): pip install 'skyrocket[arrow]'") from error
        return ColumnPolls(columns, (lambda topic: unwrap(self._namespace, topic)) if self._namespace else None)

    def _enough_in_hand(self, wanted: int) -> int:
        """Half of what pullers fetch before they rest: who waited for more would let the broker rest, too."""
        settings = self.settings
        most = min(settings.pull_threshold_for_queue * len(self._held), settings.pull_threshold_for_all)
        return min(wanted, max(most // 2, 1))

    def _taken_columns(self, polls: "ColumnPolls", most: int) -> "pa.RecordBatch":
        was_full = self._is_full()
        whole = self._fetched.whole_answers(most)
        if not whole:  # the oldest alone has more: a part of it
            process_queue, answer = self._fetched.oldest
            batch = polls.rows([answer], most)
            self._fetched.take(batch.num_rows)
            taken = [process_queue]
        else:
            batch = polls.rows([answer for _, answer in whole])
            self._fetched.finished(whole)
            taken = [process_queue for process_queue, _ in whole]
        for process_queue in taken:
            self._held[process_queue.queue].consumed = process_queue.next_offset
        self._fetch_again(was_full)
        return batch
