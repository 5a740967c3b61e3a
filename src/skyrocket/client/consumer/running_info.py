"""What a consumer tells tools about itself."""

from collections.abc import Callable, Iterable, Mapping

from skyrocket.client.consumer.process_queue import ProcessQueue
from skyrocket.clock import Clock
from skyrocket.model.message_queue import MessageQueue
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo, ProcessQueueInfo
from skyrocket.protocol.bodies.subscription import SubscriptionData


def running_info(
    queues: Iterable[ProcessQueue],
    offset_of: Callable[[MessageQueue], int | None],
    subscriptions: Iterable[SubscriptionData],
    properties: Mapping[str, str],
    clock: Clock,
) -> ConsumerRunningInfo:
    """The state of all queues in hand."""
    now, now_ms = clock.monotonic(), clock.now_ms()

    def wall(moment: float) -> int:
        return now_ms - round((now - moment) * 1000)

    table = {
        each.queue: ProcessQueueInfo(
            commit_offset=offset_of(each.queue) or 0,
            cached_min_offset=each.min_offset or 0,
            cached_max_offset=max(each.max_offset, 0),
            cached_messages=each.count,
            cached_mib=each.size >> 20,
            is_locked=each.is_locked,
            last_lock_timestamp=wall(each.locked_at),
            is_dropped=each.is_dropped,
            last_pull_timestamp=wall(each.last_pulled),
            last_consume_timestamp=wall(each.last_consumed),
        )
        for each in queues
    }
    ordered = tuple(sorted(subscriptions, key=lambda each: each.topic))
    return ConsumerRunningInfo(properties=properties, subscriptions=ordered, queues=table, status={})
