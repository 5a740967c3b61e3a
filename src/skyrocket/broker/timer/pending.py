"""Which timers wait, for operators: an answer beyond RocketMQ's.

The list comes in pages, so that a million messages do not hold up the event loop; a filter chooses within a page, so a
page may be empty and not the last. What pops leave with the timer is not listed unless their system topic is asked for.
"""

import struct
from typing import Final

from skyrocket.broker.timer.service import TimerCursor, TimerService
from skyrocket.errors import DataError
from skyrocket.model.topic import is_system_topic
from skyrocket.protocol.bodies.waiting_messages import PendingTimerList, PendingTimerRow
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import InvalidParameter, SystemFailure
from skyrocket.protocol.requests.waiting_messages import ListPendingTimers
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve

_TIMERS_PER_PAGE: Final = 1000


class PendingTimerProcessor:
    """Answers for one broker; without a timer it refuses."""

    def __init__(self, service: TimerService | None, is_on: bool) -> None:
        self._service = service
        self._why_none = "timers are kept by the master" if is_on else "timerWheelEnable is false"

    def handlers(self) -> Handlers:
        return (serve(ListPendingTimers, self.pending_timers),)

    def pending_timers(self, _: Peer, wanted: ListPendingTimers, __: Body) -> PendingTimerList:
        """A page of timers, soonest first; raises InvalidParameter, or SystemFailure without a timer."""
        if self._service is None:
            raise SystemFailure(f"this broker has no timer: {self._why_none}")
        if wanted.limit < 1:
            raise InvalidParameter(f"limit is {wanted.limit}: ask for at least one")
        place = TimerCursor(wanted.step_ms, wanted.position)
        try:
            found, rest = self._service.pending_page(place, min(wanted.limit, _TIMERS_PER_PAGE))
        except (DataError, struct.error) as error:
            raise InvalidParameter(f"position {wanted.position} begins no page: {error}") from error
        rows = tuple(
            PendingTimerRow(each.due_ms, each.topic, each.queue_id, each.unique_key, each.keys, each.cancels)
            for each in found
            if (each.topic == wanted.topic if wanted.topic is not None else not is_system_topic(each.topic))
        )
        step_ms, position = (None, None) if rest is None else rest
        return PendingTimerList(rows, step_ms, position)
