"""What a broker's runtime table says, as numbers: RocketMQ's values are texts, and releases tell different ones."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker process at one moment; what it does not tell is None."""

    cluster: str
    broker: str
    broker_id: int
    address: str
    role: str  # master or slave
    is_up: bool
    trouble: str  # why it is not up
    version: str = ""
    started_ms: int | None = None
    in_per_second: float = 0.0
    out_per_second: float = 0.0
    in_today: int = 0
    out_today: int = 0
    disk_ratio: float | None = None
    dispatch_behind_bytes: int | None = None
    log_min_offset: int | None = None
    log_max_offset: int | None = None
    earliest_message_ms: int | None = None
    put_p99_ms: float | None = None


def state_of(cluster: str, broker: str, broker_id: int, address: str, rows: Mapping[str, str]) -> BrokerState:
    """A broker that has answered."""
    return BrokerState(
        cluster,
        broker,
        broker_id,
        address,
        "master" if broker_id == 0 else "slave",
        is_up=True,
        trouble="",
        version=rows.get("brokerVersionDesc", ""),
        started_ms=_whole(rows.get("bootTimestamp")),
        in_per_second=_first(rows.get("putTps")),
        # RocketMQ 4 spells it with one r.
        out_per_second=_first(rows.get("getTransferredTps") or rows.get("getTransferedTps")),
        in_today=_today(rows, "Put"),
        out_today=_today(rows, "Get"),
        disk_ratio=_number(rows.get("commitLogDiskRatio")),
        dispatch_behind_bytes=_whole(rows.get("dispatchBehindBytes")),
        log_min_offset=_whole(rows.get("commitLogMinOffset")),
        log_max_offset=_whole(rows.get("commitLogMaxOffset")),
        earliest_message_ms=_positive(_whole(rows.get("earliestMessageTimeStamp"))),
        put_p99_ms=_number(rows.get("putLatency99")),
    )


def _today(rows: Mapping[str, str], deed: str) -> int:
    now, morning = _whole(rows.get(f"msg{deed}TotalTodayNow")), _whole(rows.get(f"msg{deed}TotalTodayMorning"))
    return max((now or 0) - (morning or 0), 0)


def _first(text: str | None) -> float:
    """Of rates over 10 s, 60 s and 600 s, separated by blanks."""
    return _number(text.split()[0] if text and text.split() else None) or 0.0


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None
