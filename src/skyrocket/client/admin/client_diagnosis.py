"""What the clients of a group tell of themselves, judged: differing subscriptions, stuck queues, queues of nobody."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from skyrocket.client.core.errors import NoRoute
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import RETRY_PREFIX
from skyrocket.model.words import said
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.running_info import ConsumerRunningInfo
from skyrocket.protocol.bodies.subscription import ALL_TAGS, SubscriptionData

if TYPE_CHECKING:
    from skyrocket.client.admin.topic_admin import TopicAdmin

_STUCK_MS: Final = 60_000


def same_subscriptions(infos: Mapping[str, ConsumerRunningInfo]) -> bool:
    """Whether all members of a group want the same."""
    wanted = {frozenset(map(_wanted, info.subscriptions)) for info in infos.values()}
    return len(wanted) <= 1


def _wanted(subscription: SubscriptionData) -> tuple[str, str, frozenset[str]]:
    """What is asked for, however it is written: the order of tags means nothing."""
    kind = subscription.expression_type or "TAG"
    parts = subscription.expression.split("||") if kind == "TAG" else [subscription.expression]
    return subscription.topic, kind, frozenset(part.strip() for part in parts if part.strip()) or frozenset({ALL_TAGS})


def queue_findings(client_id: str, info: ConsumerRunningInfo, now_ms: int) -> list[str]:
    """Queues in which a push consumer does not get on, in RocketMQ's words."""
    if info.properties.get("PROP_CONSUME_TYPE") != "CONSUME_PASSIVELY":
        return []
    is_orderly = str(info.properties.get("PROP_CONSUMEORDERLY")).lower() == "true"
    found: list[str] = []
    for queue, each in sorted(info.queues.items()):
        where = (
            f"{client_id} MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
        )
        if is_orderly and not each.is_locked:
            idle_ms = now_ms - each.last_lock_timestamp
            found.append(said("{where} can't lock for a while, {idle_ms}ms", where=where, idle_ms=idle_ms))
        elif is_orderly and each.is_dropped and each.try_unlock_times > 0:
            found.append(said("{where} unlock {times} times, still failed", where=where, times=each.try_unlock_times))
        elif not is_orderly and each.cached_messages > 0 and now_ms - each.last_consume_timestamp > _STUCK_MS:
            idle_ms = now_ms - each.last_consume_timestamp
            found.append(
                said("{where} can't consume for a while, maybe blocked, {idle_ms}ms", where=where, idle_ms=idle_ms)
            )
    return found


async def unowned_queues(
    admin: "TopicAdmin", members: ConsumerConnections, infos: Mapping[str, ConsumerRunningInfo]
) -> list[MessageQueue]:
    """Queues of the group's topics that no member has; none of a broadcast group, and none where queues are popped."""
    if members.message_model != "CLUSTERING" or members.consume_type != "CONSUME_PASSIVELY":
        return []
    if any(info.pop_queues for info in infos.values()):
        return []
    owned = {queue for info in infos.values() for queue in info.queues}
    found = []
    for topic in sorted(members.subscriptions):
        if topic.startswith(RETRY_PREFIX):
            continue
        try:
            queues = await admin.queues(topic)
        except NoRoute:
            continue
        found += [queue for queue in queues if queue not in owned]
    return found
