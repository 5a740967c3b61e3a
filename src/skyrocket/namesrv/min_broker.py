"""A broker name has another member with the smallest id: which brokers hear of it (NOTIFY_MIN_BROKER_ID_CHANGE)."""

import logging
from collections.abc import Iterable

from skyrocket.namesrv.route_table import MinBrokerChange
from skyrocket.protocol.requests.broker_registration import NotifyMinBrokerIdChange
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError

_logger = logging.getLogger(__name__)

CONNECT_SECONDS = 0.3


def receivers(change: MinBrokerChange) -> list[str]:
    """All members after a removal; after a registration all but the one that has the smallest id now."""
    if change.offline_address is not None or len(change.addresses) == 1:
        return list(change.addresses.values())
    smallest = min(change.addresses)
    return [address for broker_id, address in change.addresses.items() if broker_id != smallest]


def notice(change: MinBrokerChange) -> NotifyMinBrokerIdChange:
    """What they hear."""
    smallest = min(change.addresses)
    return NotifyMinBrokerIdChange(
        min_broker_id=smallest,
        min_broker_addr=change.addresses[smallest],
        offline_broker_addr=change.offline_address,
        ha_broker_addr=change.ha_address,
    )


async def notify(client: RemotingClient, changes: Iterable[MinBrokerChange]) -> None:
    """Tell them; who cannot be reached learns it from its own next question."""
    for change in changes:
        for address in receivers(change):
            try:
                await client.call_oneway(address, notice(change), timeout_seconds=CONNECT_SECONDS)
            except RemotingError as error:
                _logger.warning("a broker did not hear of the new smallest id broker=%s reason=%s", address, error)
