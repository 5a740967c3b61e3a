"""What a message system and its Python client must offer to be measured, and what is measured of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

BODY_BYTES = 128
QUEUES = 8  # partitions, queues, subjects: where a system has such a thing


class NotOffered(Exception):
    """The client has no such way."""


class Client(ABC):
    """A program that sends and consumes. Each way is the one that the client's documentation recommends for it."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make what messages are sent to; raises what the client raises while the server is not up."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect."""

    @abstractmethod
    async def send(self, body: bytes) -> None:
        """Return when the server has confirmed it."""

    @abstractmethod
    async def send_many(self, body: bytes, count: int) -> None:
        """As fast as the client's own batching goes; return when all are confirmed."""

    @abstractmethod
    async def fill(self, body: bytes, count: int) -> None:
        """The stock that is consumed."""

    async def refill(self) -> None:  # noqa: B027 - where a stock outlives its readers nothing is to be done
        """Make the stock whole again before a reader takes it."""

    @abstractmethod
    async def consume_one_by_one(self, count: int, reader: str) -> None:
        """A new reader takes this many of the stock, each handed over and acknowledged or committed as usual."""

    @abstractmethod
    async def consume_in_bulk(self, count: int, reader: str) -> None:
        """The same in the largest portions that the client recommends."""

    async def consume_as_columns(self, count: int, reader: str) -> None:
        """The same as Arrow columns; raises NotOffered where the client has no such thing."""
        raise NotOffered

    @abstractmethod
    async def follow(self, seen: Callable[[bytes], None]) -> None:
        """Call `seen` with what `send` brings from now on, until cancelled."""


@dataclass(frozen=True)
class Running:
    """A server that accepts connections."""

    client: Callable[[], Client]
    pids: list[int]  # whose CPU and memory count
    began: float  # when its process was started, without what is prepared before (`time.monotonic`)


@dataclass(frozen=True)
class System:
    """One row of the table."""

    key: str
    name: str
    promise: str  # what an acknowledgement of a send means
    start: Callable[[], AbstractContextManager[Running]]
    share: float = 1.0  # of the numbers of messages: slow systems are measured with fewer, in about the same time


@dataclass
class Row:
    """What was measured; rates in messages per second, None where the client has no such way."""

    name: str
    promise: str
    measured_at: str = ""  # UTC
    load_before: float = 0.0
    first_message_s: float = 0.0  # from the start of the server to the first message received
    awaited_rate: float = 0.0  # 64 sends in flight
    awaited_server_cpu_us: float = 0.0
    awaited_client_cpu_us: float = 0.0
    batched_rate: float = 0.0
    batched_server_cpu_us: float = 0.0
    one_by_one_rate: float = 0.0
    one_by_one_client_cpu_us: float = 0.0
    bulk_rate: float = 0.0
    bulk_client_cpu_us: float = 0.0
    columns_rate: float | None = None
    latency_p50_ms: float = 0.0  # end to end, at a fixed rate
    latency_p99_ms: float = 0.0
    idle_mb: float = 0.0
    loaded_mb: float = 0.0
