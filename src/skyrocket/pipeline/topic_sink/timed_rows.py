"""Rows that are to be delivered later: brokers take them in no batch, and show them only when their time has come.

So they cannot be read back. They carry numbers instead, by which our brokers know a repetition (Numbered sends in
docs/guides/exactly-once.md). A number is made of the row's `messageId`, or of its content, its partition and how many
equal rows came before it.
"""

import asyncio
import time
from collections import Counter
from typing import Final

from skyrocket.client.exactly_once.read_back import ReadBackProducer, may_go_well_later
from skyrocket.client.sending.send_number import SendNumber
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue
from skyrocket.pipeline.topic_sink.identity import Ids, Scope, slices, unique_keys
from skyrocket.pipeline.topic_sink.queue_senders import SendError
from skyrocket.pipeline.topic_sink.rows import TopicRows

_AT_ONCE: Final = 64
_ATTEMPT_SECONDS: Final = 15.0
_PAUSE: Final = 0.5
_PRODUCERS: Final = 256  # a broker remembers this many numbers for each producer and queue: more of them remember more


class TimedRows:
    """The delayed rows of one task."""

    def __init__(self, producer: ReadBackProducer, scope: Scope, partition: int, send_timeout: float) -> None:
        self._producer = producer
        self._scope = scope
        self._partition = partition
        self._send_timeout = send_timeout
        self._before: Counter[bytes] = Counter()
        self.count = 0
        self.bytes = 0

    async def send(self, rows: TopicRows, queues: list[MessageQueue]) -> None:
        """All of them, each to the queue that stands for it; raises SendError."""
        ids = self._scope.ids(rows.contents())
        if rows.message_ids is None:
            ids = self._scope.ids_of([self._nth(ids[index : index + 1].tobytes()) for index in range(len(ids))])
        keys = [key.decode() for key in slices(unique_keys(ids, now_ms=_NO_TIME))]
        texts = [text.decode() for text in slices(rows.properties)]
        bodies = slices(rows.body)
        for begin in range(0, len(rows), _AT_ONCE):
            part = range(begin, min(begin + _AT_ONCE, len(rows)))
            await asyncio.gather(
                *(self._send(queues[index], bodies[index], texts[index], ids, index, keys[index]) for index in part)
            )

    def _nth(self, row_id: bytes) -> bytes:
        self._before[row_id] += 1
        return b"%b %d %d" % (row_id, self._partition, self._before[row_id])

    async def _send(self, queue: MessageQueue, body: bytes, text: str, ids: Ids, index: int, unique_key: str) -> None:
        hashed = ids[index : index + 1].tobytes()
        sequence = int.from_bytes(hashed[2:9], "big")
        number = SendNumber(f"spark sink {hashed[:2].hex()} {hashed[9] % _PRODUCERS}", sequence)
        deadline = time.monotonic() + self._send_timeout
        while True:
            try:
                seconds = min(max(deadline - time.monotonic(), 0.1), _ATTEMPT_SECONDS)
                await self._producer.send_alone(queue, body, text, number, unique_key, timeout=seconds)
            except SkyrocketError as error:
                if not may_go_well_later(error) or time.monotonic() >= deadline:
                    raise SendError(f"a delayed row could not be sent to {queue}: {error}") from error
                await asyncio.sleep(_PAUSE)
            else:
                self.count += 1
                self.bytes += len(body)
                return


_NO_TIME: Final = 0  # repeated after an hour, the message must still have the same id
