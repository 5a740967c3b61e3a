"""How far groups are, as rows: messages that wait, and for how long they have."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from skyrocket.cli.nouns.moments import moment, span
from skyrocket.cli.output.rows import Column, Row
from skyrocket.model.topic import RETRY_PREFIX

if TYPE_CHECKING:
    from skyrocket.client import Admin, QueueLag

QUEUE_LAGS: Final = (
    Column("topic"),
    Column("broker"),
    Column("queueId", "QUEUE", number=True),
    Column("brokerOffset", "END", number=True),
    Column("consumerOffset", "AT", number=True),
    Column("lag", number=True),
    Column("inFlight", "IN FLIGHT", number=True),
    Column("behind", "BEHIND"),
    Column("lastConsumed", "LAST CONSUMED", wide=True),
)
GROUP_LAGS: Final = (
    Column("group"),
    Column("topic"),
    Column("lag", number=True),
    Column("behind", "BEHIND"),
    Column("queues", number=True),
    Column("lastConsumed", "LAST CONSUMED", wide=True),
)


def behind_seconds(lag: int, last_timestamp: int) -> float | None:
    """How old the last consumed message is, while others wait; None when it is not known."""
    if lag <= 0:
        return 0.0
    return max(time.time() - last_timestamp / 1000, 0.0) if last_timestamp > 0 else None


def queue_lag_rows(lags: "Iterable[QueueLag]") -> list[Row]:
    """One row for each queue."""
    return [
        {
            "topic": each.queue.topic,
            "broker": each.queue.broker_name,
            "queueId": each.queue.queue_id,
            "brokerOffset": each.broker_offset,
            "consumerOffset": each.consumer_offset,
            "lag": each.lag,
            "inFlight": each.in_flight,
            "behind": span(behind_seconds(each.lag, each.last_timestamp)),
            "behindSeconds": behind_seconds(each.lag, each.last_timestamp),
            "lastConsumed": moment(each.last_timestamp),
        }
        for each in lags
    ]


async def group_lag_rows(admin: "Admin", cluster: str | None, topic: str | None) -> list[Row]:
    """One row for each group and topic; retry topics count as topics of their groups."""
    rows: list[Row] = []
    for group, lags in sorted((await admin.all_lag(cluster=cluster)).items()):
        by_topic: dict[str, list[QueueLag]] = {}
        for each in lags:
            by_topic.setdefault(each.queue.topic, []).append(each)
        for name, all_of in sorted(by_topic.items(), key=lambda pair: (pair[0].startswith(RETRY_PREFIX), pair[0])):
            if topic not in (None, name):
                continue
            behind = [behind_seconds(each.lag, each.last_timestamp) for each in all_of]
            known = [seconds for seconds in behind if seconds is not None]
            rows.append(
                {
                    "group": group,
                    "topic": name,
                    "lag": sum(each.lag for each in all_of),
                    "behind": span(max(known)) if known else None,
                    "behindSeconds": max(known) if known else None,
                    "queues": len(all_of),
                    "lastConsumed": moment(max(each.last_timestamp for each in all_of)),
                }
            )
    return rows
