"""What a broker knows of the role that its controller gave it; it lives as master, or as slave, until that changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from skyrocket.broker.state.epochs import Epochs


class RoleWord(NamedTuple):
    """Who is master of the set and who is in sync, by a controller's word; ids are the controller's."""

    master_id: int | None
    master_address: str | None
    master_epoch: int
    members: frozenset[int] = frozenset()
    members_epoch: int = 0


@dataclass(slots=True)
class Switching:
    """Of one life of a broker."""

    broker_id: int  # the controller's, whatever the role; 0 before it has given one
    epochs: Epochs
    role: RoleWord | None = None  # of a master: the word that made it one; of a slave None until it is known
    told: Callable[[RoleWord], None] = field(default=lambda word: None)  # a controller spoke
    demand_cut: Callable[[int], None] = field(default=lambda end: None)  # the log must end at an offset
