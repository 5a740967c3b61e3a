"""The progress of groups against the queues: a pure comparison."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from skyrocket.pipeline.audit.findings import Finding


class QueueRange(NamedTuple):
    """Queue offsets that a queue has, end exclusive."""

    begin: int
    end: int


def compare_offsets(
    offsets: Mapping[str, Mapping[int, int]], queues: Mapping[tuple[str, int], QueueRange]
) -> Iterable[Finding]:
    """What the file of consumer offsets says against what there is; keys are topic@group."""
    for key, by_queue in offsets.items():
        topic, _, group = key.partition("@")  # a broadcasting group has a third part, which says so
        for queue_id, offset in by_queue.items():
            queue = queues.get((topic, queue_id))
            place = (topic, queue_id, offset)
            if queue is None:
                if offset > 0:
                    yield Finding("orphaned-offset", *place, detail=f"group {group}: the queue has no files")
            elif offset > queue.end:
                yield Finding("offset-ahead", *place, detail=f"group {group}: the queue ends at {queue.end}")
            elif offset < queue.begin:
                missed = queue.begin - offset
                yield Finding(
                    "offset-behind", *place, detail=f"group {group}: begins at {queue.begin}, {missed} missed"
                )
