"""Name server: where topics are."""

from skyrocket.protocol.bodies.route import TopicRoute
from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Request, request, wire


@request(RequestCode.GET_ROUTEINFO_BY_TOPIC, answer_body=TopicRoute)
class GetRouteInfoByTopic(Request[Header]):
    """The queues of a topic and the brokers that have them; without a topic the answer is 17, not 1."""

    topic: str | None = None
    accept_standard_json_only: bool | None = None
    zone_mode: bool | None = wire("__ZONE_MODE", default=None)
    zone_name: str | None = wire("__ZONE_NAME", default=None)

    @property
    def zone(self) -> str | None:
        """The zone to which the requester wants to be kept; None for all."""
        return ((self.zone_name or "").strip() or None) if self.zone_mode else None
