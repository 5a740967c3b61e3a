"""What the shared core of a client knows of the producers and consumers that use it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.client.core.routes import Route
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.heartbeat import ConsumerData

if TYPE_CHECKING:
    from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, DirectConsumption
    from skyrocket.protocol.requests.server_to_client import CheckTransactionState


class Member(Protocol):
    """A producer or consumer of a group."""

    @property
    def group(self) -> str: ...

    @property
    def topics(self) -> list[str]:
        """Those whose routes are to be kept fresh."""
        ...

    def forked(self) -> None:
        """This is a child process now: refuse everything."""
        ...


class ProducerMember(Member, Protocol):
    """A producer of a group."""

    def route_changed(self, topic: str, route: Route) -> None: ...

    async def check_transaction(self, message: ReceivedMessage, question: "TransactionCheck") -> None:
        """What became of this half message? The answer goes to the broker that asked."""
        ...


class TransactionCheck(NamedTuple):
    """A check-back and where its answer goes."""

    address: str
    header: "CheckTransactionState"


class ConsumerMember(Member, Protocol):
    """A consumer of a group."""

    def heartbeat_data(self) -> ConsumerData:
        """What brokers are told about it."""
        ...

    def rebalance_soon(self) -> None: ...

    async def reset_offsets(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on at these offsets; a broker demands it."""
        ...

    def offsets_of(self, topic: str) -> dict[MessageQueue, int]: ...

    def running_info(self, with_stacks: bool) -> "ConsumerRunningInfo": ...

    async def consume_directly(self, message: ReceivedMessage) -> "DirectConsumption": ...
