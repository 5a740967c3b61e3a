"""The controllers that belong together, in RocketMQ's form `n0-10.0.0.1:9878;n1-10.0.0.2:9878`."""

from collections.abc import Iterable

from skyrocket.controller.engines.engine import Member
from skyrocket.errors import ConfigError
from skyrocket.remoting.addresses import Address


def parse_peers(text: str) -> dict[str, Address]:
    """Addresses by controller id; raises ConfigError."""
    peers: dict[str, Address] = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        controller_id, dash, address = part.partition("-")
        try:
            if not dash or not controller_id or controller_id in peers:
                raise ValueError(part)
            peers[controller_id] = Address.parse(address)
        except ValueError:
            raise ConfigError(
                f"controllerDLegerPeers: {part!r} is not a controller, or one that was named before. "
                "Write each as id-host:port, joined by ;"
            ) from None
    return peers


def own_peer(text: str, self_id: str) -> Address:
    """Where the controller of this id listens; raises ConfigError."""
    peers = parse_peers(text)
    if self_id not in peers:
        raise ConfigError(
            f"controllerDLegerSelfId={self_id} is none of controllerDLegerPeers ({text or 'which is empty'}): "
            f"add {self_id}-HOST:PORT, or name one of those"
        )
    return peers[self_id]


def peers_text(configured: str, members: Iterable[Member]) -> str:
    """All that are known, as GET_METADATA_INFO shows them: `n0:10.0.0.1:9878;n1:10.0.0.2:9878;`."""
    known = {controller_id: str(address) for controller_id, address in parse_peers(configured).items()}
    known |= {member.controller_id: member.address for member in members}
    return "".join(f"{controller_id}:{known[controller_id]};" for controller_id in sorted(known))
