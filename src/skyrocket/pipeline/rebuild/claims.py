"""The claims of records by the kind of their queue: simple, batch, or one that cannot be."""

from typing import NamedTuple

import numpy as np

from skyrocket.format.dispatch_claims import Claimer, Claims, QueueName, QueueNumbers
from skyrocket.format.store_names import is_directory_name
from skyrocket.pipeline.rebuild.rules import RebuildRules


class BatchClaim(NamedTuple):
    """An entry of a batch queue; its place is the end of the queue."""

    queue: QueueName
    physical_offset: int
    size: int
    tags_code: int
    store_timestamp: int
    base_offset: int
    messages: int


class SortedClaims(NamedTuple):
    """The claims of a batch of records by the kind of their queue."""

    simple: Claims
    batches: list[BatchClaim]
    unusable: int  # records whose queue cannot have a directory


def claimer_of(rules: RebuildRules, numbers: QueueNumbers) -> Claimer:
    """Dispatch as a broker with these rules does it."""
    return Claimer(numbers, rules.delay_levels, rules.batch_topics, rules.light_queues, rules.removed_queues)


def sorted_claims(claims: Claims, numbers: QueueNumbers, batch_topics: frozenset[str]) -> SortedClaims:
    """Tell claims apart by their queues."""
    names = numbers.queue_names
    usable = np.array([is_directory_name(name.topic) and name.queue_id >= 0 for name in names], dtype=np.bool_)
    has_place = usable[claims["queue"]]
    unusable = len(claims) - int(has_place.sum())
    claims = claims[has_place] if unusable else claims
    if not batch_topics:
        return SortedClaims(claims, [], unusable)
    are_batches = np.array([name.topic in batch_topics for name in names], dtype=np.bool_)[claims["queue"]]
    batches = [
        BatchClaim(names[queue], offset, size, code, stored, base, messages)
        for queue, base, offset, size, code, stored, messages in claims[are_batches].tolist()
    ]
    return SortedClaims(claims[~are_batches], batches, unusable)
