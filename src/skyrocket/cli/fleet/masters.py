"""Who is master of each set of a fleet: said when it changes, because with fail-over nobody else decides it here."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from skyrocket.cli.fleet.plan import BrokerPlan
from skyrocket.cli.fleet.readiness import replica_sets
from skyrocket.protocol.bodies.controller import ReplicasInfo
from skyrocket.remoting.client import RemotingClient

_PAUSE_SECONDS: Final = 0.5


def set_names(plans: Sequence[BrokerPlan]) -> list[str]:
    """Each name once."""
    return list(dict.fromkeys(plan.name for plan in plans))


async def tell_masters(
    controller: str, names: Sequence[str], show: Callable[[str, str], None], tls: ssl.SSLContext | None = None
) -> None:
    """Show name and news of each set, the first ones at once; until cancelled."""
    told: dict[str, str] = {}
    async with RemotingClient(tls=tls) as client:
        while True:
            for name, info in (await replica_sets(client, controller, names)).items():
                if told.get(name) != (news := _news(info)):
                    told[name] = news
                    show(name, news)
            await asyncio.sleep(_PAUSE_SECONDS)


def _news(info: ReplicasInfo) -> str:
    if not info.master_address:
        return "has no master now: nothing is taken until one of those in sync is back"
    others = sorted(
        replica.broker_address or str(replica.broker_id)
        for replica in info.in_sync_replicas
        if replica.broker_id != info.master_broker_id
    )
    return (
        f"master is {info.master_address} (epoch {info.master_epoch}), in sync with it: {', '.join(others) or 'nobody'}"
    )
