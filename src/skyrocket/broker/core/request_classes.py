"""Which requests share a bound: RocketMQ's thread pools, each with its own setting (broker-wide isolation).

A class that is full, or whose requests wait, refuses its own requests; those of the other classes are served as if
nothing had happened. Whatever code is not named here belongs to the admin class, as in RocketMQ.
"""

from collections.abc import Iterator
from typing import Final

from skyrocket.config.sections import BrokerConfig
from skyrocket.remoting.admission import RequestClass

_CODES: Final[dict[str, tuple[int, ...]]] = {
    "send": (10, 36, 310, 320, 370),
    "pull": (11, 200050, 200052, 200054, 200055),
    "lite_pull": (361,),
    "ack": (200051, 200053, 200151),
    "reply": (324, 325),
    "query": (12, 33),
    "client_manage": (35, 46),
    "heartbeat": (34,),
    "consumer_manage": (14, 15, 38),
    "end_transaction": (37,),
    "load_balance": (400, 401),
}


class RequestClasses:
    """The classes of one broker; their names are those of RocketMQ's metrics."""

    def __init__(self, config: BrokerConfig) -> None:
        self.send = RequestClass("send", config.send_capacity, config.send_wait_ms)
        self.pull = RequestClass("pull", config.pull_capacity, config.pull_wait_ms)
        self.lite_pull = RequestClass("lite_pull", config.lite_pull_capacity, config.lite_pull_wait_ms)
        self.ack = RequestClass("ack", config.ack_capacity, config.ack_wait_ms)
        self.reply = RequestClass("reply", config.reply_capacity)
        self.query = RequestClass("query_message", config.query_capacity)
        self.admin = RequestClass("admin", config.admin_capacity, config.admin_wait_ms)
        self.client_manage = RequestClass("client_manager", config.client_capacity)
        self.heartbeat = RequestClass("heartbeat", config.heartbeat_capacity, config.heartbeat_wait_ms)
        self.consumer_manage = RequestClass("consumer_manager", config.offset_capacity)
        self.end_transaction = RequestClass(
            "transaction", config.end_transaction_capacity, config.end_transaction_wait_ms
        )
        self.load_balance = RequestClass("load_balance", config.load_balance_capacity)
        self._by_code = {code: self._named(name) for name, codes in _CODES.items() for code in codes}

    def __iter__(self) -> Iterator[RequestClass]:
        yield from (self._named(name) for name in (*_CODES, "admin"))

    def _named(self, name: str) -> RequestClass:
        found = getattr(self, name)
        assert isinstance(found, RequestClass)
        return found

    def of(self, code: int | None) -> RequestClass:
        """The class of a request code."""
        return self.admin if code is None else self._by_code.get(code, self.admin)
