"""The address that clients are told: found out, chosen by brokerIP1, and doubted aloud when nobody could reach it.

A client asks the name server for a route and connects to the address it finds there, whatever address the client itself
was given. So a broker that tells a wrong address looks healthy from inside and dead from outside: the classic trap of
containers, whose own address means nothing on other machines.
"""

import asyncio
import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from skyrocket.config.sources import environment_name
from skyrocket.errors import ConfigError
from skyrocket.remoting.addresses import Address

_SOMEWHERE: Final = ("192.0.2.1", 9)  # a documentation address: nothing is sent to it
_LOOPBACK: Final = "127.0.0.1"
_GET_INTERFACE_ADDRESS: Final = 0x8915  # SIOCGIFADDR
_IFREQ: Final = struct.Struct("16s4x4s232x")  # name; family and port; IPv4 address

BROKER_PREFIX: Final = "SKYROCKET_BROKER_"
HOW_TO_SET: Final = f"--broker-ip, brokerIP1 in the .conf file, or {environment_name('brokerIP1', BROKER_PREFIX)}"


def advertised_host(chosen: str, bind_address: str, find: Callable[[], str] | None = None) -> str:
    """brokerIP1, else the one interface that the broker listens on, else the address that leads out of the machine."""
    if chosen:
        ip = _parsed(chosen)
        if ip is None:
            return chosen.strip()
        if ip.is_unspecified or ip.is_multicast:
            raise ConfigError(f"brokerIP1={chosen} is not an address to connect to: give one that clients reach")
        return str(ip)
    bound = _parsed(bind_address)
    if bound is not None and not bound.is_unspecified:
        return str(bound)
    return (find or own_ip)()


def resolved(host: str) -> str:
    """The address as numbers, which records and message ids hold; raises ConfigError for a name that nobody knows.

    # RocketMQ: names are allowed too; clients are told the name, records get what it means at the start.
    """
    if _parsed(host) is not None:
        return host
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"brokerIP1={host!r} is neither an IP address nor a host name that this machine can resolve ({error}). "
            f"Correct it ({HOW_TO_SET})"
        ) from None
    return str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])


async def hosts_of(address: str) -> set[str]:
    """The numbers behind an address that a broker is registered with; raises OSError or ValueError."""
    host = Address.parse(address).host
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return {str(entry[4][0]) for entry in found}


def own_ip() -> str:
    """The address of the interface that leads out of this machine; of any other when none does, or the loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return next((ip for ip in _interface_ips(probe) if not ip.startswith("127.")), _LOOPBACK)


def _interface_ips(probe: socket.socket) -> list[str]:
    ips = []
    for _, name in socket.if_nameindex():
        try:
            answer = fcntl.ioctl(probe, _GET_INTERFACE_ADDRESS, _IFREQ.pack(name.encode(), bytes(4)))
        except OSError:
            continue  # an interface without an IPv4 address
        ips.append(socket.inet_ntoa(_IFREQ.unpack(answer)[1]))
    return ips


def doubt_about(host: str, *, is_chosen: bool, bind_address: str, in_container: bool) -> str | None:
    """Why clients elsewhere may not reach this address, and what to set; None when there is no reason to think so."""
    ip, bound = _parsed(host), _parsed(bind_address)
    listens_outside = bound is None or not bound.is_loopback
    if ip is not None and ip.is_loopback and listens_outside:
        return (
            f"clients are told {host}, which only programs on this machine can reach. For others set an address that "
            f"they can reach ({HOW_TO_SET}); to keep it local set bindAddress={host}"
        )
    if in_container and not is_chosen and ip is not None and ip.is_private and listens_outside:
        return (
            f"clients are told {host}, an address inside this container; programs outside of its network cannot reach "
            f"it. Set the address of the host machine ({HOW_TO_SET})"
        )
    return None


def is_in_container(environment: Mapping[str, str] | None = None, root: Path = Path("/")) -> bool:
    """Docker or Podman. A pod of Kubernetes does not count: its address is reachable in the whole cluster."""
    if "KUBERNETES_SERVICE_HOST" in (os.environ if environment is None else environment):
        return False
    return any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv"))


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip())
    except ValueError:
        return None
