"""Controllers and the replica sets under them, found through what brokers say in their settings.

Name servers know no controllers; `controllerAddr` of a broker names them, Apache's and ours alike.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.admin import Admin
from skyrocket.client.core.errors import NotFound, NotOffered
from skyrocket.clock import Clock
from skyrocket.console.cluster.runtime import BrokerState
from skyrocket.console.cluster.shared_answers import SharedAnswer
from skyrocket.console.cluster.view import ClusterView
from skyrocket.errors import SkyrocketError
from skyrocket.protocol.bodies.controller import ReplicaIdentity, ReplicasInfo

_OFTEN_SECONDS: Final = 4.0
_RARELY_SECONDS: Final = 15.0  # settings of brokers


@dataclass(frozen=True, slots=True)
class ControllerRow:
    """One controller."""

    address: str
    id: str  # among its peers; "" when it does not tell
    is_up: bool
    is_leader: bool
    trouble: str


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A broker of a set."""

    broker_id: int
    address: str
    role: str  # master or slave
    is_in_sync: bool
    is_alive: bool | None  # None: the controller does not tell
    behind_bytes: int | None  # its log is shorter than the master's by so much; None: one of them does not answer


@dataclass(frozen=True, slots=True)
class ReplicaSetRow:
    """Brokers of one name: who is master, since which epoch, and who is in sync."""

    broker: str
    cluster: str
    master_id: int | None
    master_address: str
    master_epoch: int | None
    set_epoch: int | None
    replicas: list[ReplicaRow]


@dataclass(frozen=True, slots=True)
class ControllersView:
    """All that the controllers tell; `is_configured` is False where no broker names one."""

    is_configured: bool
    group: str
    controllers: list[ControllerRow]
    sets: list[ReplicaSetRow]
    trouble: str  # why there are no sets


class Controllers:
    """Shared answers about controllers."""

    def __init__(self, admin: Admin, view: ClusterView, clock: Clock) -> None:
        self._admin = admin
        self._view = view
        self._addresses = SharedAnswer(admin.controller_addresses, _RARELY_SECONDS, clock)
        self.state = SharedAnswer(self._state, _OFTEN_SECONDS, clock)

    def forget(self) -> None:
        """Something was changed."""
        self._addresses.forget()
        self.state.forget()

    async def end(self) -> None:
        """Leave no question open."""
        await self._addresses.end()
        await self.state.end()

    async def _state(self) -> ControllersView:
        configured = await self._addresses.get()
        if not configured:
            return ControllersView(False, "", [], [], "")
        asked = dict(await asyncio.gather(*(self._controller(address) for address in configured)))
        groups = {group for _, group, _ in asked.values() if group}
        ids = {address: name for _, _, peers in asked.values() for name, address in _peers(peers)}
        others = [address for address in ids if address not in asked]
        asked |= dict(await asyncio.gather(*(self._controller(address) for address in others)))
        rows = [
            ControllerRow(row.address, ids.get(address, ""), row.is_up, row.is_leader, row.trouble)
            for address, (row, _, _) in sorted(asked.items())
        ]
        sets, trouble = await self._sets(rows)
        return ControllersView(True, ", ".join(sorted(groups)), rows, sets, trouble)

    async def _controller(self, address: str) -> tuple[str, tuple[ControllerRow, str, str]]:
        try:
            told = await self._admin.controller_metadata(address)
        except SkyrocketError as error:
            return address, (ControllerRow(address, "", False, False, str(error)), "", "")
        return address, (ControllerRow(address, "", True, told.is_leader, ""), told.group or "", told.peers or "")

    async def _sets(self, rows: Sequence[ControllerRow]) -> tuple[list[ReplicaSetRow], str]:
        living = [row.address for row in rows if row.is_up]
        if not living:
            return [], "no controller answers"
        states = await self._view.brokers.get()
        try:
            try:
                names = await self._admin.replica_set_names(living[0])
            except NotOffered:  # Apache's tell of a set by its name alone
                names = sorted({state.broker for state in states})
            found = await self._admin.replica_sets(living[0], names) if names else {}
        except NotFound as error:
            return [], str(error)
        except SkyrocketError as error:
            return [], f"controller {living[0]} does not tell of its sets: {error}"
        return [_set_row(name, info, states) for name, info in sorted(found.items())], ""


def _peers(text: str) -> list[tuple[str, str]]:
    """`n0:host:port;n1:…` as ids and addresses."""
    parts = [each.strip().partition(":") for each in text.split(";") if each.strip()]
    return [(name, address) for name, _, address in parts if ":" in address]


def _set_row(name: str, info: ReplicasInfo, states: Sequence[BrokerState]) -> ReplicaSetRow:
    by_address = {state.address: state for state in states}
    end = _log_end(by_address.get(info.master_address or ""))

    def row(replica: ReplicaIdentity, *, in_sync: bool) -> ReplicaRow:
        own = _log_end(by_address.get(replica.broker_address or ""))
        return ReplicaRow(
            replica.broker_id,
            replica.broker_address or "",
            "master" if replica.broker_id == info.master_broker_id else "slave",
            in_sync,
            replica.alive,
            None if end is None or own is None else max(end - own, 0),
        )

    replicas = [row(each, in_sync=True) for each in info.in_sync_replicas]
    replicas += [row(each, in_sync=False) for each in info.not_in_sync_replicas]
    return ReplicaSetRow(
        name,
        next((state.cluster for state in states if state.broker == name), ""),
        info.master_broker_id,
        info.master_address or "",
        info.master_epoch,
        info.sync_state_set_epoch,
        sorted(replicas, key=lambda each: each.broker_id),
    )


def _log_end(state: BrokerState | None) -> int | None:
    return state.log_max_offset if state is not None and state.is_up else None
