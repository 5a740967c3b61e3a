"""How much may be under way at once: a bound on number and bytes, and a queue for those who must wait."""

import asyncio
from collections import deque

from skyrocket.client.core.errors import TooManyInFlight


class InFlight:
    """Counts what was sent and not answered; waiters are let in first come, first served."""

    __slots__ = ("_max_bytes", "_max_count", "_waiting", "count", "size")

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self.count = 0
        self.size = 0
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()

    def try_enter(self, size: int) -> bool:
        """Go in if there is room; a single one that is larger than the bound goes in alone."""
        count, total = self.count, self.size + size
        if self._waiting or (count and (count >= self._max_count or total > self._max_bytes)):
            return False
        self.count = count + 1
        self.size = total
        return True

    def enter_anyway(self, size: int) -> None:
        """Go in beyond the bound: who comes next will wait."""
        self.count += 1
        self.size += size

    @property
    def is_full(self) -> bool:
        """Whether the next one has to wait."""
        return self.count >= self._max_count or self.size >= self._max_bytes

    async def enter(self, size: int, seconds: float) -> None:
        """Wait for room; raises TooManyInFlight."""
        if self.try_enter(size):
            return
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (admitted, size)
        self._waiting.append(entry)
        try:
            await asyncio.wait_for(admitted, seconds)
        except TimeoutError:
            raise TooManyInFlight(self.count, self.size, seconds) from None
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self.leave(size)  # let in and cancelled in the same moment
            raise
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)

    def leave(self, size: int) -> None:
        """One has ended."""
        self.count -= 1
        self.size -= size
        while self._waiting and self._has_room(self._waiting[0][1]):
            admitted, wanted = self._waiting.popleft()
            if not admitted.done():
                self.count += 1
                self.size += wanted
                admitted.set_result(None)

    async def drained(self, seconds: float) -> bool:
        """Wait until nothing is under way."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self.count and loop.time() < deadline:
            await asyncio.sleep(0.005)
        return not self.count

    def _has_room(self, size: int) -> bool:
        return not self.count or (self.count < self._max_count and self.size + size <= self._max_bytes)
