"""The broker's own permission: what it refuses to all clients, whatever their topics allow.

Sends and pulls are the hot path, so nobody asks there: while something is forbidden, another handler stands in the
router's table.
"""

from typing import Final

from skyrocket.broker.state.identity import BrokerIdentity
from skyrocket.broker.state.topics import TopicTable
from skyrocket.model.permission import PERM_READ, PERM_WRITE
from skyrocket.protocol.command import RemotingCommand
from skyrocket.protocol.errors import NoPermission
from skyrocket.protocol.requests.messaging import (
    SendBatchMessage,
    SendMessage,
    SendMessageV2,
    SendReplyMessage,
    SendReplyMessageV2,
)
from skyrocket.protocol.requests.pulling import LitePullMessage, PullMessage
from skyrocket.remoting.answers import Outcome
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Route, Router
from skyrocket.remoting.serving import RawHandler

_SENDS: Final[dict[int, type[SendMessage]]] = {
    kind.code: kind for kind in (SendMessage, SendMessageV2, SendBatchMessage, SendReplyMessage, SendReplyMessageV2)
}
_PULLS: Final = (PullMessage.code, LitePullMessage.code)
_BY_BROKER: Final = {"forbiddenType": "1"}


class PermissionGate:
    """Open until `set` says otherwise, which is called when all handlers are there."""

    def __init__(self, router: Router, identity: BrokerIdentity, topics: TopicTable) -> None:
        self._router = router
        self._host = identity.address.host
        self._send_fields = {"TRACE_ON": "true" if identity.trace_on else "false", "MSG_REGION": identity.region}
        self._topics = topics
        self._open: dict[int, RawHandler] = {}  # handlers that others stand in for
        self.permission = PERM_READ | PERM_WRITE

    @property
    def is_readable(self) -> bool:
        return self.permission & PERM_READ != 0

    @property
    def is_writable(self) -> bool:
        return self.permission & PERM_WRITE != 0

    def set(self, permission: int) -> None:
        """Refuse from now on what this permission does not hold."""
        self.permission = permission
        for route in self._router.routes():
            if route.code in _SENDS:
                self._let(route, self.is_writable, self._send)
            elif route.code in _PULLS:
                self._let(route, self.is_readable, self._refuse_pull)

    def _let(self, route: Route, is_open: bool, stand_in: RawHandler) -> None:
        assert route.code is not None
        if is_open:
            route.handler = self._open.pop(route.code, route.handler)
        elif route.code not in self._open:
            self._open[route.code], route.handler = route.handler, stand_in

    def _send(self, peer: Peer, request: RemotingCommand) -> Outcome:
        # RocketMQ: only ordered topics are refused here; for all others the route tells producers to go elsewhere.
        topic = self._topics.find(_SENDS[request.code].from_fields(request.ext_fields).topic)
        if topic is not None and topic.ordered:
            raise NoPermission(f"the broker[{self._host}] sending message is forbidden", self._send_fields)
        return self._open[request.code](peer, request)

    def _refuse_pull(self, _: Peer, __: RemotingCommand) -> Outcome:
        raise NoPermission(f"the broker[{self._host}] pulling message is forbidden", _BY_BROKER)
