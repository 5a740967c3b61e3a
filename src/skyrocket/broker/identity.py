"""Who a broker is: what it registers, and what it writes into messages and answers."""

import ipaddress
import socket
from dataclasses import dataclass

from skyrocket.model.message import Host
from skyrocket.remoting.addresses import Address

_SOMEWHERE = ("192.0.2.1", 9)  # a documentation address: nothing is sent to it


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Names and address of one broker."""

    address: Address  # where clients reach it
    cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    broker_id: int = 0
    region: str = "DefaultRegion"
    trace_on: bool = True

    @property
    def store_host(self) -> Host:
        """As records and message ids have it."""
        return packed_host(self.address)


def packed_host(address: Address) -> Host:
    """An address as records have it; an IPv4 address inside IPv6 becomes IPv4, as in Java."""
    ip = ipaddress.ip_address(address.host)
    if ip.version == 6 and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return Host(ip.packed, address.port)


def own_ip() -> str:
    """The address of the interface that leads out of this machine; the loopback's when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_SOMEWHERE)
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
