"""How far groups are, as rows: messages that wait, and for how long they have."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from skyrocket.cli.nouns.moments import moment, span
from skyrocket.cli.output.rows import Column, Row
from skyrocket.clock import SystemClock
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


class Behind:
    """For how long messages have waited; asked where the last one that was consumed does not say it."""

    def __init__(self, admin: "Admin") -> None:
        from skyrocket.client.admin.waits import Waits

        self._clock = SystemClock()
        self._waits = Waits(admin.waited_ms, self._clock)

    async def look(self, lags: "Mapping[str, Sequence[QueueLag]]") -> None:
        """Ask for these groups."""
        await self._waits.look(lags)

    def seconds(self, group: str, lag: "QueueLag") -> float | None:
        """How old the oldest message is that a group has not consumed; None when nobody says it."""
        if lag.lag <= 0:
            return 0.0
        since_ms = self._waits.since(group).get(lag.queue)
        return None if since_ms is None else max(self._clock.now_ms() - since_ms, 0) / 1000


async def queue_lag_rows(admin: "Admin", group: str, lags: "Sequence[QueueLag]") -> list[Row]:
    """One row for each queue."""
    behind = Behind(admin)
    await behind.look({group: lags})
    return [
        {
            "topic": each.queue.topic,
            "broker": each.queue.broker_name,
            "queueId": each.queue.queue_id,
            "brokerOffset": each.broker_offset,
            "consumerOffset": each.consumer_offset,
            "lag": each.lag,
            "inFlight": each.in_flight,
            "behind": span(behind.seconds(group, each)),
            "behindSeconds": behind.seconds(group, each),
            "lastConsumed": moment(each.last_timestamp),
        }
        for each in lags
    ]


async def group_lag_rows(admin: "Admin", cluster: str | None, topic: str | None) -> list[Row]:
    """One row for each group and topic; retry topics count as topics of their groups."""
    rows: list[Row] = []
    behind, known_lags = Behind(admin), await admin.all_lag(cluster=cluster)
    await behind.look(known_lags)
    for group, lags in sorted(known_lags.items()):
        by_topic: dict[str, list[QueueLag]] = {}
        for each in lags:
            by_topic.setdefault(each.queue.topic, []).append(each)
        for name, all_of in sorted(by_topic.items(), key=lambda pair: (pair[0].startswith(RETRY_PREFIX), pair[0])):
            if topic not in (None, name):
                continue
            known = [seconds for each in all_of if (seconds := behind.seconds(group, each)) is not None]
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
