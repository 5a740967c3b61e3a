"""Who a broker is: what it registers, and what it writes into messages and answers."""

import ipaddress
from dataclasses import dataclass

from skyrocket.model.message import Host
from skyrocket.remoting.addresses import Address


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Names and address of one broker."""

    address: Address  # where clients reach it; the host may be a name
    cluster_name: str = "DefaultCluster"
    broker_name: str = "broker-a"
    broker_id: int = 0
    region: str = "DefaultRegion"
    trace_on: bool = True
    ip: str = ""  # the address as numbers, when the host is a name

    @property
    def store_host(self) -> Host:
        """As records and message ids have it."""
        return packed_host(Address(self.ip or self.address.host, self.address.port))


def packed_host(address: Address) -> Host:
    """An address as records have it; an IPv4 address inside IPv6 becomes IPv4, as in Java."""
    ip = ipaddress.ip_address(address.host)
    if ip.version == 6 and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return Host(ip.packed, address.port)
