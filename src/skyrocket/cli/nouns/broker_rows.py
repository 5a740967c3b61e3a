"""Brokers as rows: what `cluster list` and `broker list` make of the numbers that brokers tell as text."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from skyrocket.cli.nouns.moments import moment
from skyrocket.cli.output.rows import Column, Row

if TYPE_CHECKING:
    from skyrocket.client import BrokerPlace

LISTED: Final = (
    Column("cluster"),
    Column("broker"),
    Column("role"),
    Column("address"),
    Column("version"),
    Column("inTps", "IN/S", number=True),
    Column("outTps", "OUT/S", number=True),
    Column("diskRatio", "DISK", number=True),
    Column("oldestHours", "OLDEST H", number=True),
    Column("inToday", "IN TODAY", number=True, wide=True),
    Column("outToday", "OUT TODAY", number=True, wide=True),
    Column("sendQueue", "SEND QUEUE", number=True, wide=True),
    Column("pageCacheMs", "PAGE CACHE MS", number=True, wide=True),
    Column("timerBehind", "TIMER BEHIND", number=True, wide=True),
    Column("startedAt", "STARTED", wide=True),
)


def broker_row(place: "BrokerPlace", info: Mapping[str, str]) -> Row:
    """One broker."""
    oldest = whole(info, "earliestMessageTimeStamp")
    today = whole(info, "msgPutTotalTodayNow"), whole(info, "msgPutTotalTodayMorning")
    out = whole(info, "msgGetTotalTodayNow"), whole(info, "msgGetTotalTodayMorning")
    return {
        "cluster": place.cluster or None,
        "broker": place.broker_name or None,
        "role": "master" if place.is_master else f"slave {place.broker_id}",
        "address": place.address,
        "version": info.get("brokerVersionDesc"),
        "inTps": first_number(info.get("putTps")),
        "outTps": first_number(info.get("getTransferredTps") or info.get("getTransferedTps")),
        "diskRatio": first_number(info.get("commitLogDiskRatio")),
        "oldestHours": None if not oldest or oldest < 0 else (time.time() - oldest / 1000) / 3600,
        "inToday": today[0] - today[1],
        "outToday": out[0] - out[1],
        "sendQueue": whole(info, "sendThreadPoolQueueSize"),
        "pageCacheMs": whole(info, "pageCacheLockTimeMills"),
        "timerBehind": whole(info, "timerReadBehind"),
        "startedAt": moment(whole(info, "bootTimestamp")),
    }


def first_number(text: str | None) -> float | None:
    """The first of `10s 60s 600s` averages; None when there is none."""
    try:
        return float((text or "").split()[0])
    except (ValueError, IndexError):
        return None


def whole(info: Mapping[str, str], key: str) -> int:
    """A count of a broker, 0 where it tells none."""
    try:
        return int(info.get(key) or 0)
    except ValueError:
        return 0
