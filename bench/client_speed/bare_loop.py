"""The floor: bench.load's generator in this process. Frames are patched, not encoded; answers are hardly looked at."""

import asyncio

from bench.load.connections import Connection, Puller, Sender
from bench.load.pacing import ClosedLoop
from bench.load.request_frames import PullFrame, SendFrame
from bench.load.tally import Tally

_DRAIN_S = 5.0


class BareLoop:
    """Asks one broker about one topic."""

    def __init__(self, broker: tuple[str, int], topic: str, queues: int, body_size: int) -> None:
        self._broker = broker
        self._topic = topic
        self._queues = queues
        self._body_size = body_size
        self._first_key = 0

    async def send(self, seconds: float, in_flight: int, batch: int = 1) -> int:
        """Over one connection; returns the number of acknowledged messages."""
        frames = [
            SendFrame(self._topic, queue_id, self._queues, self._body_size, batch, "")
            for queue_id in range(self._queues)
        ]
        self._first_key += 1 << 24
        tally = Tally()
        sender = Sender(tally, ClosedLoop(), in_flight, frames, self._first_key)
        await self._run([sender], seconds)
        assert not tally.errors, tally.errors
        return tally.acknowledged

    async def pull(self, at_most: int) -> int:
        """All queues from their beginning to their end, a connection each; returns the number of messages."""
        tally = Tally()
        pullers = [
            Puller(tally, ClosedLoop(), PullFrame(self._topic, queue_id, at_most), repeat=False)
            for queue_id in range(self._queues)
        ]
        await self._run(pullers, None)
        assert not tally.errors, tally.errors
        return tally.acknowledged

    async def _run(self, connections: "list[Sender] | list[Puller]", seconds: float | None) -> None:
        loop = asyncio.get_running_loop()
        every: list[Connection] = [*connections]
        for connection in every:
            await loop.create_connection(lambda made=connection: made, *self._broker)  # type: ignore[misc]
            connection.ask()
        if seconds is not None:
            await asyncio.sleep(seconds)
            for connection in every:
                connection.stop()
        deadline = loop.time() + _DRAIN_S + (0 if seconds is not None else 60.0)
        while any(connection.in_flight for connection in every) and loop.time() < deadline:
            await asyncio.sleep(0.001)
        for connection in every:
            connection.close()
