"""Since when the messages have waited that groups take next: the age of a lag.

The message that was consumed last may be hours older, after hours in which none came.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from skyrocket.client.admin.offset_admin import QueueLag
from skyrocket.client.admin.side_by_side import each
from skyrocket.clock import Clock
from skyrocket.errors import SkyrocketError
from skyrocket.model.message_queue import MessageQueue

_KEEPS_UP_MS: Final = 1000  # what is next is younger than what was consumed last: then it need not be asked for
_KNOWN_FOR_MS: Final = 300_000  # then it is asked for again: the message may have been deleted unread
_AT_ONCE: Final = 8


WaitedMs = Callable[[str, str], Awaitable[Mapping[MessageQueue, int]]]  # of a group and a topic


class _Next(NamedTuple):
    offset: int
    since_ms: int
    asked_ms: int


class Waits:
    """Asks brokers where a group has moved, or has begun to wait; what stands still needs no second question."""

    def __init__(self, waited_ms: WaitedMs, clock: Clock) -> None:
        self._waited_ms = waited_ms
        self._clock = clock
        self._known: dict[str, dict[MessageQueue, _Next]] = {}

    def since(self, group: str) -> Mapping[MessageQueue, int]:
        """By queue, in ms since 1970; queues where nothing waits, or of which nobody says it, are left out."""
        return {queue: known.since_ms for queue, known in self._known.get(group, {}).items()}

    async def look(self, lags: Mapping[str, Sequence[QueueLag]]) -> None:
        """Learn it of all groups whose lags these are."""
        now_ms = self._clock.now_ms()
        found: dict[str, dict[MessageQueue, _Next]] = {}
        unknown: dict[tuple[str, str], list[QueueLag]] = {}
        for group, queues in lags.items():
            before, of_group = self._known.get(group, {}), found.setdefault(group, {})
            for lag in (one for one in queues if one.lag > 0):
                known = before.get(lag.queue)
                if (
                    known is not None
                    and known.offset == lag.consumer_offset
                    and now_ms - known.asked_ms < _KNOWN_FOR_MS
                ):
                    of_group[lag.queue] = known
                elif now_ms - lag.last_timestamp < _KEEPS_UP_MS:
                    of_group[lag.queue] = _Next(lag.consumer_offset, lag.last_timestamp, now_ms)
                else:
                    unknown.setdefault((group, lag.queue.topic), []).append(lag)
        answers = await each(unknown, self._ask, _AT_ONCE)
        for (group, topic), waiting in unknown.items():
            waited = answers[group, topic]
            for lag in waiting:
                if lag.queue in waited:
                    since_ms = now_ms - waited[lag.queue]
                elif lag.last_timestamp > 0:  # it is younger, at least
                    since_ms = lag.last_timestamp
                else:
                    continue
                found[group][lag.queue] = _Next(lag.consumer_offset, since_ms, now_ms)
        self._known = found

    async def _ask(self, of: tuple[str, str]) -> Mapping[MessageQueue, int]:
        try:
            return await self._waited_ms(*of)
        except SkyrocketError:  # a broker that does not tell, or has gone since
            return {}
