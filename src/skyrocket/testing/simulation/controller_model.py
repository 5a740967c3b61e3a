"""The rules of a controller for one set, without network or engine: what may be changed, and who is elected.

Every change is a compare-and-set: a master must name its epoch and the epoch of the set that it replaces.
"""

from dataclasses import dataclass, field

from skyrocket.broker.state.switching import RoleWord
from skyrocket.protocol.errors import (
    BrokerIdInvalid,
    ElectMasterFailed,
    FencedMasterEpoch,
    FencedSyncStateSetEpoch,
    InvalidMaster,
    InvalidReplicas,
)


@dataclass
class Alive:
    """What a replica's last heartbeat said."""

    at: float
    expiry: float = 10.0
    epoch: int = -1
    max_offset: int = 0
    priority: int = 2**31 - 1


@dataclass
class ControllerModel:
    """State that survives: ids, addresses, master, sets. Who is alive is known by heartbeats alone."""

    addresses: dict[int, str] = field(default_factory=dict)
    check_codes: dict[int, str] = field(default_factory=dict)
    alive: dict[int, Alive] = field(default_factory=dict)
    master_id: int | None = None
    master_epoch: int = 0
    members: frozenset[int] = frozenset()
    members_epoch: int = 0

    def next_id(self) -> int:
        return max(self.check_codes, default=0) + 1

    def apply_id(self, broker_id: int, check_code: str) -> None:
        """Raises BrokerIdInvalid when another one has it."""
        if self.check_codes.setdefault(broker_id, check_code) != check_code:
            raise BrokerIdInvalid(f"id {broker_id} is another broker's")

    def register(self, broker_id: int, address: str) -> RoleWord:
        """Raises InvalidReplicas."""
        if broker_id not in self.check_codes:
            raise InvalidReplicas(f"no broker has the id {broker_id}")
        self.addresses[broker_id] = address
        return self.word()

    def beat(self, broker_id: int, said: Alive) -> None:
        self.alive[broker_id] = said

    def word(self) -> RoleWord:
        address = self.addresses.get(self.master_id) if self.master_id is not None else None
        return RoleWord(self.master_id, address, self.master_epoch, self.members, self.members_epoch)

    def alter(
        self, master_id: int, master_epoch: int, members: frozenset[int], members_epoch: int, now: float
    ) -> RoleWord:
        """Another sync-state set, by its master's word; raises what says why not."""
        if master_id != self.master_id:
            raise InvalidMaster(f"{self.master_id} is master")
        if master_epoch != self.master_epoch:
            raise FencedMasterEpoch(f"the epoch is {self.master_epoch}")
        if members_epoch != self.members_epoch:
            raise FencedSyncStateSetEpoch(f"the set's epoch is {self.members_epoch}")
        if not members <= self.addresses.keys() or master_id not in members:
            raise InvalidReplicas(f"{sorted(members)} are not all replicas, or the master is missing")
        if any(not self.is_alive(member, now) for member in members - {master_id}):
            raise InvalidReplicas(f"not all of {sorted(members)} live")
        self.members, self.members_epoch = members, self.members_epoch + 1
        return self.word()

    def is_alive(self, broker_id: int, now: float) -> bool:
        said = self.alive.get(broker_id)
        return said is not None and now - said.at <= said.expiry

    def electable(self, now: float) -> list[int]:
        """Members that live; where nobody was ever master, every replica."""
        allowed = self.members if self.members_epoch else frozenset(self.addresses)
        return [broker_id for broker_id in sorted(allowed) if self.is_alive(broker_id, now)]

    def elect(self, now: float, asked_by: int | None = None) -> RoleWord:
        """Choose a master unless the one that is there lives; raises ElectMasterFailed."""
        if self.master_id is not None and self.is_alive(self.master_id, now):
            return self.word()
        found = self.electable(now)
        if not found:
            raise ElectMasterFailed("no member of the sync-state set lives")
        if asked_by in found and not self.members_epoch:
            chosen = asked_by
        else:
            chosen = max(found, key=lambda each: (self.alive[each].epoch, self.alive[each].max_offset, -each))
        self.master_id, self.master_epoch = chosen, self.master_epoch + 1
        assert chosen is not None
        self.members, self.members_epoch = frozenset({chosen}), self.members_epoch + 1
        return self.word()

    def scan(self, now: float) -> RoleWord | None:
        """Replace a master that is gone; None when nothing was changed."""
        if self.master_id is None or self.is_alive(self.master_id, now) or not self.electable(now):
            return None
        return self.elect(now)
