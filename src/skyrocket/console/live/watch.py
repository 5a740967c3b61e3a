"""Any GET endpoint, followed live: its answer is pushed when it has changed.

Answers come from the shared ones of the view, so a hundred browsers on a page cost the cluster what one costs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from skyrocket.console.live.events import KEEP_ALIVE, event
from skyrocket.console.live.gate import Admission
from skyrocket.console.telling.told_error import told
from skyrocket.errors import SkyrocketError

_PAUSE_SECONDS: Final = 5.0


async def watch(
    ask: Callable[[], Awaitable[Any]], admission: Admission, seconds: float = _PAUSE_SECONDS
) -> AsyncIterator[bytes]:
    """`answer` events, `trouble` events while it cannot be told."""
    last = b""
    with admission.stream():
        while True:
            try:
                answer = event("answer", await ask())
            except SkyrocketError as error:
                answer = event("trouble", told(error))
            yield KEEP_ALIVE if answer == last else answer
            last = answer
            if not await admission.pause(seconds):
                return
