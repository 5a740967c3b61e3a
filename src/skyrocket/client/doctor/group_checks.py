"""Groups: do they consume, and will they before messages are gone?"""

from collections.abc import Callable, Iterator
from typing import Final

from skyrocket.client.admin.client_diagnosis import queue_findings, same_subscriptions
from skyrocket.client.doctor.facts import ClusterFacts, GroupFacts
from skyrocket.client.doctor.finding import Finding, error, note, warning
from skyrocket.client.doctor.gathering import is_of_applications
from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.model.words import Said, said, said_of
from skyrocket.protocol.codes import Version, version_name

_MANY: Final = 1000  # messages
_SKEW: Final = 0.8
_QUEUES_FOR_SKEW: Final = 4
_RECENT_MS: Final = 3_600_000
_HOUR_MS: Final = 3_600_000
_LATE: Final = 0.8  # of the retention
COMMIT_SECONDS: Final = 15  # clients say every five how far they are: what came since then seems to wait
OLDEST_VERSION: Final = Version.V4_9_3  # clients of before miss fixes of lost and repeated messages


def members(facts: ClusterFacts) -> Iterator[Finding]:
    """Somebody must be there, and all must want the same."""
    for group in facts.groups.values():
        if group.lag > 0 and group.client_count == 0:
            remedy = "start its consumers, or `skyrocket group delete` if nobody needs it any more"
            yield error(
                "no-client",
                group.name,
                said_of(group.lag, "{n:,} message waits and no client runs", "{n:,} messages wait and no client runs"),
                remedy,
            )
        if group.configs and not any(config.may_consume for config in group.configs.values()):
            remedy = "`skyrocket group update {where} --enable`"
            yield error("group-disabled", group.name, "brokers let it consume nothing", remedy)
        elif closed := [str(place) for place, config in group.configs.items() if not config.may_consume]:
            what, remedy = "{closed} let it consume nothing, others do", "`skyrocket group update {where} --enable`"
            yield error("group-disabled", group.name, what, remedy, closed=", ".join(closed))
        if len(group.infos) > 1 and not same_subscriptions(group.infos):
            yield error(
                "subscriptions-differ",
                group.name,
                "its {clients} clients subscribe to different things: messages are lost to the wrong ones",
                "deploy the same version everywhere, or give each its own group",
                clients=len(group.infos),
            )
        old = [each for each in (group.members.connections if group.members else ()) if each.version < OLDEST_VERSION]
        if old:
            oldest = version_name(min(each.version for each in old))
            remedy = "upgrade them; releases before 4.9.3 miss fixes of lost and repeated messages"
            yield note(
                "old-clients",
                group.name,
                said_of(
                    len(old),
                    "{n:,} client is of {oldest} or newer",
                    "{n:,} clients are of {oldest} or newer",
                    oldest=oldest,
                ),
                remedy,
            )


def sameness(facts: ClusterFacts) -> Iterator[Finding]:
    """A group is one thing, and known wherever its topics are."""
    for group in facts.groups.values():
        attempts = {config.retry_max_times for config in group.configs.values()}
        if len(attempts) > 1:
            told = ", ".join(map(str, sorted(attempts)))
            remedy = "`skyrocket group update {where} --retries N`"
            yield warning(
                "group-differs", group.name, "brokers differ in how many retries it has: {told}", remedy, told=told
            )
        wanted = group.members.subscriptions if group.members else ()
        needed = {place for topic in wanted if is_of_applications(topic) for place in facts.topics.get(topic, ())}
        for broker in facts.masters:
            creates = broker.settings.get("autoCreateSubscriptionGroup") != "false"
            if broker.place in needed and broker.place not in group.configs and not creates:
                remedy = "`skyrocket group create {where}`, or autoCreateSubscriptionGroup=true"
                what = "{place} does not know it and creates no groups: messages there are not consumed"
                yield error("group-missing", group.name, what, remedy, place=broker.place)


def sharing(facts: ClusterFacts) -> Iterator[Finding]:
    """Queues and clients must fit together."""
    for group in facts.groups.values():
        if group.members is None or not _shares_queues(group):
            continue
        queues = _readable_queues(facts, group)
        idle = group.client_count - len(queues)
        all_tell = (
            len(group.infos) == group.client_count
        )  # those who do not may pop: queues are shared by any number then
        if all_tell and queues and idle > 0:
            yield warning(
                "more-clients-than-queues",
                group.name,
                said_of(
                    idle,
                    "{clients} clients share {queues}: {n:,} is idle",
                    "{clients} clients share {queues}: {n:,} are idle",
                    clients=group.client_count,
                    queues=said_of(len(queues), "{n:,} queue", "{n:,} queues"),
                ),
                "stop some, or give the topic more queues",
            )
        if all_tell:
            owned = {queue for info in group.infos.values() for queue in info.queues}
            for queue in sorted(queues - owned):
                remedy = "look at the clients' logs for failed rebalances; a restart of one of them shares anew"
                yield error("queue-without-owner", group.name, "nobody has {queue}", remedy, queue=_queue(queue))
        if any(broker.problem is not None for broker in facts.masters):
            continue  # who does not answer may have the topic
        for topic in sorted(group.members.subscriptions):
            if is_of_applications(topic) and topic not in facts.topic_names:
                remedy = "create it, or correct the subscription: `skyrocket topic create {topic}`"
                yield error(
                    "no-such-topic", group.name, "it subscribes to {topic}, which no broker has", remedy, topic=topic
                )


def _shares_queues(group: GroupFacts) -> bool:
    assert group.members is not None
    is_clustered = group.members.message_model == "CLUSTERING" and group.members.consume_type == "CONSUME_PASSIVELY"
    return is_clustered and not any(info.pop_queues for info in group.infos.values())


def _readable_queues(facts: ClusterFacts, group: GroupFacts) -> set[MessageQueue]:
    assert group.members is not None
    return {
        MessageQueue(topic, queues.broker_name, queue_id)
        for topic in group.members.subscriptions
        if is_of_applications(topic) and topic in facts.routes
        for queues in facts.routes[topic].queues
        if queues.permission & 4
        for queue_id in range(queues.read_queues)
    }


def _queue(queue: MessageQueue) -> Said:
    return said(
        "queue {queue} of {topic} at {broker}", queue=queue.queue_id, topic=queue.topic, broker=queue.broker_name
    )


def progress(facts: ClusterFacts) -> Iterator[Finding]:
    """Lag: how much, how old, and does it shrink?"""
    retention_ms = min((each.setting("fileReservedTime", 72) for each in facts.answering), default=72) * _HOUR_MS
    for group in facts.groups.values():
        for each in group.lags:
            known = facts.offsets.get(each.queue)
            end = each.broker_offset if known is None else max(each.broker_offset, known.max_offset)
            if each.consumer_offset > end:  # `known` was asked for later: consumers may have been quicker than the look
                what = "its offset {consumer_offset} of {queue} is behind the end {broker_offset}"
                remedy = "`skyrocket reset --group {where} --topic {topic} --to latest`"
                yield error(
                    "offset-beyond-end",
                    group.name,
                    what,
                    remedy,
                    consumer_offset=each.consumer_offset,
                    queue=_queue(each.queue),
                    broker_offset=end,
                    topic=each.queue.topic,
                )
            if known is not None and 0 <= each.consumer_offset < known.min_offset:
                lost = known.min_offset - each.consumer_offset
                what = said_of(
                    lost,
                    "{n:,} message of {queue} was deleted before it consumed it",
                    "{n:,} messages of {queue} were deleted before it consumed them",
                    queue=_queue(each.queue),
                )
                remedy = "lengthen fileReservedTime, or add consumers; they cannot be brought back from this cluster"
                yield error("messages-expired", group.name, what, remedy)
            late_ms = group.late_ms(each, facts.now_ms) or 0
            if late_ms > _LATE * retention_ms:
                what = "it is {late:.1f} h behind in {queue}, and messages live {kept} h"
                remedy = "add consumers now, or lengthen fileReservedTime before messages are deleted"
                yield error(
                    "lag-near-retention",
                    group.name,
                    what,
                    remedy,
                    late=late_ms / _HOUR_MS,
                    queue=_queue(each.queue),
                    kept=retention_ms // _HOUR_MS,
                )
        yield from _shape(facts, group)


def _shape(facts: ClusterFacts, group: GroupFacts) -> Iterator[Finding]:
    by_topic: dict[str, list[int]] = {}
    for each in group.lags:
        by_topic.setdefault(each.queue.topic, []).append(max(each.lag, 0))
    for topic, lags in by_topic.items():
        total = sum(lags)
        if len(lags) >= _QUEUES_FOR_SKEW and total >= _MANY and max(lags) > _SKEW * total:
            what = "{most:,} of {total:,} wait in one queue of {topic}"
            remedy = "choose a sharding key with more values, or look at the client that has this queue"
            yield warning("queue-skewed", group.name, what, remedy, most=max(lags), total=total, topic=topic)
    if facts.sample_seconds > 0 and group.earlier:
        before = sum(max(each.lag, 0) for each in group.earlier.values())
        if group.lag > max(before, _MANY, group.come_in(COMMIT_SECONDS, facts.sample_seconds)):
            rate = (group.lag - before) / facts.sample_seconds
            remedy = "`skyrocket doctor --group {where}` says why"
            what = "{lag:,} wait, {rate:.0f} more every second"
            yield warning("lag-growing", group.name, what, remedy, lag=group.lag, rate=rate)
    if group.members is not None and group.members.message_model == "BROADCASTING":
        return  # RocketMQ: nothing is locked there, and its clients say so
    for client_id, info in group.infos.items():
        for what in queue_findings(client_id, info, facts.now_ms):
            remedy = "look at its stacks: `skyrocket group client {where} {client_id} --stacks`"
            yield error("client-stuck", group.name, what, remedy, client_id=client_id)


def failures(facts: ClusterFacts) -> Iterator[Finding]:
    """Messages that groups could not consume."""
    for group in facts.groups.values():
        dead = [each for queue, each in facts.offsets.items() if queue.topic == DLQ_PREFIX + group.name]
        count = sum(each.max_offset - each.min_offset for each in dead)
        last = max((each.last_update_timestamp for each in dead), default=0)
        if count and facts.now_ms - last < _RECENT_MS:
            remedy = "`skyrocket dlq list {where}` has the causes, `dlq resend` tries again"
            yield warning(
                "dead-letters",
                group.name,
                said_of(
                    count, "{n:,} dead letter, the last within the hour", "{n:,} dead letters, the last within the hour"
                ),
                remedy,
            )
        waiting = sum(max(each.lag, 0) for each in group.lags if each.queue.topic == RETRY_PREFIX + group.name)
        if waiting >= _MANY:
            remedy = "its handler fails again and again: look at its log"
            yield warning(
                "retries-waiting", group.name, "{waiting:,} messages wait for another attempt", remedy, waiting=waiting
            )


CHECKS: Final[tuple[Callable[[ClusterFacts], Iterator[Finding]], ...]] = (
    members,
    sameness,
    sharing,
    progress,
    failures,
)
