"""Clients make themselves known to a broker."""

from skyrocket.protocol.bodies.heartbeat import Heartbeat
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.java_order import FROM_SINGLE_FIELD
from skyrocket.protocol.requests.header import EmptyAnswer, Header, Request, answer_with, request, wire


@answer_with(ext_capacity=FROM_SINGLE_FIELD)
class HeartBeatAnswer(Header):
    """Since 5.1.3: whether subscriptions may be left out from now on."""

    supports_v2: bool | None = wire("IS_SUPPORT_HEART_BEAT_V2", default=None)
    subscription_changed: bool | None = wire("IS_SUB_CHANGE", default=None)


@request(RequestCode.HEART_BEAT, answer=HeartBeatAnswer, body=Heartbeat, empty_header=True)
class HeartBeat(Request[HeartBeatAnswer]):
    """The groups of a client."""


@request(RequestCode.UNREGISTER_CLIENT, answer=EmptyAnswer)
class UnregisterClient(Request[EmptyAnswer]):
    """A client leaves its groups."""

    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None
