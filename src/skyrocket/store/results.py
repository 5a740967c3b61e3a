"""What the store answers: expected outcomes are values, not exceptions."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Final, NamedTuple


class PutStatus(Enum):
    """Outcome of a put, in RocketMQ's words."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    IN_SYNC_REPLICAS_NOT_ENOUGH = "IN_SYNC_REPLICAS_NOT_ENOUGH"
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"


# What would be refused again and again: it is the message's own fault, not that of disk or moment.
NEVER_TAKEN: Final = frozenset({PutStatus.MESSAGE_ILLEGAL, PutStatus.PROPERTIES_SIZE_EXCEEDED})


class Durability(IntEnum):
    """How far a message had come when its put was answered."""

    NONE = 0  # not stored
    BUFFER = 1  # in the transient pool: lost when the process dies
    MEMORY = 2  # in the page cache: survives the process, not a power failure
    DISK = 3  # forced to disk


class PutResult(NamedTuple):
    """Outcome of one put. `end_offset` is what must be flushed for the message to be on disk."""

    status: PutStatus
    physical_offset: int
    queue_offset: int
    record_size: int
    store_timestamp: int
    durability: Durability
    end_offset: int
    remark: str = ""

    @property
    def ok(self) -> bool:
        return self.status is PutStatus.PUT_OK


class BatchPutResult(NamedTuple):
    """Outcome of a batch: all its records, or none."""

    status: PutStatus
    physical_offsets: list[int]
    first_queue_offset: int
    store_timestamp: int
    durability: Durability
    end_offset: int
    remark: str = ""

    @property
    def ok(self) -> bool:
        return self.status is PutStatus.PUT_OK


class GetStatus(Enum):
    """Outcome of a read by queue offset, in RocketMQ's words."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    NO_MATCHED_LOGIC_QUEUE = "NO_MATCHED_LOGIC_QUEUE"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"


@dataclass(slots=True)
class GetResult:
    """Records found, as slices of the log: neighbours in the log share one slice."""

    status: GetStatus
    next_offset: int
    min_offset: int
    max_offset: int
    slices: list[memoryview] = field(default_factory=list)
    count: int = 0
    size: int = 0
    suggest_slave: bool = False  # the reader lags so far behind that another broker should serve it

    def join(self) -> bytes:
        """All records back to back: the body of a pull answer."""
        return b"".join(self.slices)


class Boundary(Enum):
    """Which entry a search by time takes."""

    LOWER = "LOWER"  # first one stored at or after the time
    UPPER = "UPPER"  # last one stored at or before the time
