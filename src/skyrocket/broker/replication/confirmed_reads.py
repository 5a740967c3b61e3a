"""Where a controller decides: nobody reads what was found in the log at the start before it is known to be confirmed.

While a broker runs, its queues end at the confirm offset. Those that a start rebuilds end where the log ends: with
bytes that maybe no other broker has, and that a fail-over takes back. Until all of them are confirmed the broker says
that it is busy, and consumers ask again. An answer with fewer messages would be a lie: offsets would look as if they
had gone back.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import SystemBusy
from skyrocket.remoting.admission import REJECTED
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.serving import RawHandler

_READS: Final = frozenset(
    {
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.PEEK_MESSAGE,
        RequestCode.QUERY_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.GET_MAX_OFFSET,  # a consumer that begins there would miss what later gets these offsets
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    }
)


class ConfirmedReads:
    """Stands in for the handlers of reads."""

    def __init__(self, confirm_offset: Callable[[], int]) -> None:
        self._confirm_offset = confirm_offset
        self._found_end = 0

    @property
    def are_open(self) -> bool:
        """Whether all that was found is confirmed."""
        return self._confirm_offset() >= self._found_end

    def hold(self, router: Router, found_end: int) -> None:
        """The store is open, and its log ends here."""
        self._found_end = found_end
        if self.are_open:
            return
        for route in router.routes():
            if route.code in _READS:
                route.handler = partial(self._read, route.handler)

    def _read(self, serve: RawHandler, peer: Peer, request: RemotingCommand) -> Outcome:
        if not self.are_open:
            raise SystemBusy(REJECTED)
        return serve(peer, request)
