"""A turn of the event loop: all that one look at the sockets brought, from all connections.

    data of A ─▶ handlers ┐
    data of B ─▶ handlers ├─▶ callbacks of the turn's end (the broker stores all sends as one group) ─▶ one write each
    data of C ─▶ handlers ┘

The end is scheduled with `call_soon` by the first connection that has something to say. Both uvloop and asyncio run it
after every socket that was ready has been read, and before the sockets are asked again.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import RequestError

_logger = logging.getLogger(__name__)


class Speaker(Protocol):
    """Who has something to write when the turn ends."""

    def flush(self) -> None: ...


class LeftWaiting(Protocol):
    """Who has requests that were read and could not be begun."""

    def refuse_backlog(self, overdue: Callable[[RemotingCommand, int, int], RequestError | None]) -> bool: ...


class Turn:
    """Collects who wants to write, and lets others complete the answers before."""

    def __init__(self) -> None:
        self._speakers: list[Speaker] = []
        self._callbacks: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_scheduled = False
        self.on_left_waiting: Callable[[LeftWaiting], None] | None = None

    def left_waiting(self, waiting: LeftWaiting) -> None:
        """Somebody begins to have such requests."""
        if self.on_left_waiting is not None:
            self.on_left_waiting(waiting)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call at the end of every turn, before anything is written; what it raises is a bug and is logged."""
        self._callbacks.append(callback)

    def will_speak(self, speaker: Speaker) -> None:
        """Flush this one when the turn ends; to be said once per turn."""
        self._speakers.append(speaker)
        if not self._is_scheduled:
            self._is_scheduled = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self.end)

    def end(self) -> None:
        """Complete and write."""
        for callback in self._callbacks:
            try:
                callback()
            except Exception:
                _logger.exception("a callback of the turn's end failed callback=%r", callback)
        self._is_scheduled = False
        speakers, self._speakers = self._speakers, []
        for speaker in speakers:
            try:
                speaker.flush()
            except Exception:
                _logger.exception("a connection could not be written speaker=%r", speaker)
