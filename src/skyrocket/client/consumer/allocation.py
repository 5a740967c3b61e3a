"""Queues shared among the consumers of a group, as pure functions.

Every member computes its own share from the same sorted lists, so all must compute alike: these are RocketMQ's rules to
the letter. `AllocationStrategy` is a callable (group, own id, queues, ids) → own queues, with a name for brokers.
The usual one is here; `other_allocations` has the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from skyrocket.model.message_queue import MessageQueue

Queues = Sequence[MessageQueue]
Ids = Sequence[str]


class AllocationStrategy(Protocol):
    """A rule; `queues` and `ids` are sorted."""

    @property
    def name(self) -> str: ...

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]: ...


def own_index(own_id: str, queues: Queues, ids: Ids) -> int | None:
    """Our index among the members, None when there is none; raises ValueError where nothing can be shared."""
    if not own_id or not queues or not ids:
        raise ValueError("an own id, queues and members are needed to share queues")
    return ids.index(own_id) if own_id in ids else None


@dataclass(frozen=True, slots=True)
class Averagely:
    """Neighbouring queues in equal shares; the first ones get one more."""

    name: str = "AVG"

    def __call__(self, group: str, own_id: str, queues: Queues, ids: Ids) -> list[MessageQueue]:
        index = own_index(own_id, queues, ids)
        if index is None:
            return []
        share, more = divmod(len(queues), len(ids))
        size = share + 1 if index < more else share
        start = index * size + (0 if index < more else more)
        return list(queues[start : start + size])
