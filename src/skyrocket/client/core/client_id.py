"""Who we are: the client id that brokers know us by, and the unique keys of messages.

    192.168.0.7@4711#88123456789[@unit]

A child process after a fork is another client: it must not use what its parent has started.
"""

import os
import socket
import time
from collections.abc import Sequence
from typing import Final, overload

from skyrocket.client.core.settings import DEFAULT_INSTANCE, ClientSettings
from skyrocket.format.message_id import UniqueKeyGenerator

_HEX: Final = tuple(f"{number:02X}" for number in range(256))  # a third of the time of a format for each key
_SOMEWHERE: Final = ("192.0.2.1", 9)  # reserved for documentation: nothing is sent to it


def client_id_of(settings: ClientSettings, *, stable: bool = False) -> str:
    """The id; `stable` keeps the default instance name, so that files named after it are found again."""
    instance = settings.instance_name
    if instance == DEFAULT_INSTANCE and not stable:
        instance = f"{os.getpid()}#{time.monotonic_ns()}"
    unit = f"@{settings.unit_name}" if settings.unit_name.strip() else ""
    return f"{settings.client_ip or own_ip()}@{instance}{unit}"


def own_ip() -> str:
    """The address of the interface that leads out of this machine; the loopback's when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


class KeySeries(Sequence[str]):
    """Keys of messages that leave together: all alike but for a counter, made into texts when somebody asks for one."""

    __slots__ = ("_count", "first", "prefix")

    def __init__(self, prefix: str, first: int, count: int) -> None:
        self.prefix = prefix
        self.first = first
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(self._count))]
        if not 0 <= number < self._count:
            raise IndexError(number)
        return f"{self.prefix}{self.first + number & 0xFFFF:04X}"


class UniqueKeys:
    """The keys of the process's messages; those of one millisecond share all but their counter."""

    __slots__ = ("_counter", "_generator", "_now_ms", "_prefix")

    def __init__(self) -> None:
        self._counter = 0
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._generator = UniqueKeyGenerator(socket.inet_aton(own_ip()))
        self._now_ms = -1
        self._prefix = ""

    def series(self, count: int, now_ms: int) -> KeySeries:
        """The next keys, for messages that leave together."""
        if now_ms != self._now_ms:
            self._begin(now_ms)
        first = self._counter + 1 & 0xFFFF
        self._counter = self._counter + count & 0xFFFF
        return KeySeries(self._prefix, first, count)

    def _begin(self, now_ms: int) -> None:
        self._prefix = self._generator.next(now_ms)[:-4]
        self._now_ms = now_ms

    def next(self, now_ms: int) -> str:
        """The next key."""
        if now_ms != self._now_ms:
            self._begin(now_ms)
        self._counter = counter = (self._counter + 1) & 0xFFFF
        return f"{self._prefix}{_HEX[counter >> 8]}{_HEX[counter & 0xFF]}"


UNIQUE_KEYS: Final = UniqueKeys()
