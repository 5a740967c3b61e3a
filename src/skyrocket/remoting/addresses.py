"""host:port as RocketMQ writes it, the VIP rule, and a list of equal servers of which one is asked."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from random import Random

VIP_PORT_DISTANCE = 2


class Address(NamedTuple):
    """A host and a port; the text form is what RocketMQ shows and sends."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Split at the last colon; raises ValueError."""
        host, colon, port = text.strip().rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is not an address of the form host:port")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


def vip(address: str) -> str:
    """The address of the same broker's VIP listener."""
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) - VIP_PORT_DISTANCE}"


class AddressList:
    """Equal servers: one is asked until it fails, then the next; each user begins at another."""

    def __init__(self, addresses: Sequence[str], random: "Random | None" = None) -> None:
        self._addresses = list(dict.fromkeys(addresses))
        if random is None:
            from random import Random

            random = Random()
        random.shuffle(self._addresses)
        self._chosen = 0

    @classmethod
    def parse(cls, text: str, random: "Random | None" = None) -> "AddressList":
        """From RocketMQ's form `host:port;host:port`."""
        return cls([part.strip() for part in text.split(";") if part.strip()], random)

    def in_order(self) -> list[str]:
        """All addresses, the chosen one first."""
        return self._addresses[self._chosen :] + self._addresses[: self._chosen]

    def choose(self, address: str) -> None:
        """Begin with this one from now on."""
        self._chosen = self._addresses.index(address)
