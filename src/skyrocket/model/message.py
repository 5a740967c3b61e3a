"""A message as an application gives it, and as the store returns it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from skyrocket.model import property_names


class Host(NamedTuple):
    """An address and its port; the address is 4 or 16 raw bytes."""

    address: bytes
    port: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One decoded commit-log record; the body is as stored (`format.compression.plain_body` inflates it)."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    record_size: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: Host
    store_timestamp: int
    store_host: Host
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    magic: int = 0

    @property
    def tags(self) -> str | None:
        return self.properties.get(property_names.TAGS)

    @property
    def keys(self) -> list[str]:
        """Business keys, in order; several are joined by one blank."""
        return [key for key in self.properties.get(property_names.KEYS, "").split(" ") if key]

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(property_names.UNIQUE_KEY)
