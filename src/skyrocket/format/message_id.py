"""Both message ids: the broker's (store host + physical offset) and the client's unique key.

Every client imports this file, so `ipaddress` is loaded when a host is first shown or read.
"""

import os
import time
from typing import NamedTuple

from skyrocket.errors import DataError
from skyrocket.model.message import Host


def offset_message_id(store_host: Host, physical_offset: int) -> str:
    """The id that a broker answers: it says where the record is."""
    raw = store_host.address + store_host.port.to_bytes(4, "big", signed=True)
    return (raw + physical_offset.to_bytes(8, "big", signed=True)).hex().upper()


class OffsetMessageId(NamedTuple):
    """What an offset message id says."""

    store_host: Host
    physical_offset: int


def parse_offset_message_id(text: str) -> OffsetMessageId:
    """Host and physical offset of an offset message id; raises DataError for anything else."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) not in (16, 28) or len(text) != len(raw) * 2:
        raise DataError(f"message id {text!r} must be 32 (IPv4) or 56 (IPv6) hexadecimal digits")
    address = raw[:-12]
    port = int.from_bytes(raw[-12:-8], "big", signed=True)
    return OffsetMessageId(Host(address, port), int.from_bytes(raw[-8:], "big", signed=True))


class UniqueKeyGenerator:
    """Client ids: address, process, a random part, time since the month began, and a counter.

    One per process; after a fork the child must make its own, or both would hand out the same keys.
    """

    def __init__(self, address: bytes, process_id: int | None = None, loader_hash: int | None = None) -> None:
        pid = os.getpid() if process_id is None else process_id
        loader = int.from_bytes(os.urandom(4), "big") if loader_hash is None else loader_hash
        prefix = address + (pid & 0xFFFF).to_bytes(2, "big") + (loader & 0xFFFFFFFF).to_bytes(4, "big")
        self._prefix = prefix.hex().upper()
        self._counter = 0
        self._month_start_ms = 0
        self._next_month_ms = 0

    def next(self, now_ms: int) -> str:
        """The next key; its time part counts from the local start of the month."""
        # RocketMQ: a clock stepped back a little across the month's start keeps the month and counts as 0.
        if not self._month_start_ms - 1_000_000 < now_ms < self._next_month_ms:
            self._month_start_ms, self._next_month_ms = _month_around(now_ms)
        elapsed = max(0, now_ms - self._month_start_ms)
        counter = self._counter & 0xFFFF
        self._counter += 1
        return f"{self._prefix}{elapsed & 0xFFFFFFFF:08X}{counter:04X}"


def _month_around(now_ms: int) -> tuple[int, int]:
    local = time.localtime(now_ms / 1000)
    start = time.mktime((local.tm_year, local.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    end = time.mktime((local.tm_year, local.tm_mon + 1, 1, 0, 0, 0, 0, 0, -1))  # mktime carries month 13 over
    return int(start * 1000), int(end * 1000)


def host_text(host: Host) -> str:
    """`10.0.0.1:10911`, or `[::1]:10911` for IPv6."""
    import ipaddress

    address = ipaddress.ip_address(host.address)
    return f"{address}:{host.port}" if address.version == 4 else f"[{address}]:{host.port}"


def parse_host(text: str) -> Host:
    """The host of `10.0.0.1:10911` or `[::1]:10911`; an IPv4-mapped IPv6 address becomes IPv4, as in Java."""
    import ipaddress

    name, _, port = text.rpartition(":")
    address = ipaddress.ip_address(name.strip("[]"))
    if address.version == 6 and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return Host(address.packed, int(port))
