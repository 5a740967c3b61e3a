"""`lag` in this process: the steps of `jobs/lag/job.py` over Arrow tables."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.columns.schema import TIMESTAMP
from skyrocket.pipeline.jobs.lag.job import LagLimits, Plan, over_limits, report_of, sizing_table, stuck
from skyrocket.pipeline.jobs.lag.samples import SAMPLES, Committed
from skyrocket.pipeline.jobs.local.grouping import Row, by, grouped, least, most, skewed_rows, table_of, total
from skyrocket.pipeline.report import Report

_QUEUE: Final = ("topic", "brokerName", "queueId")
_FLOW: Final = ("group", "topic")
_NAMES: Final = {"group": pa.string(), "topic": pa.string(), "brokerName": pa.string(), "queueId": pa.int32()}
_RATES: Final = {"seconds": pa.float64(), "arriving": pa.float64(), "consuming": pa.float64()}
_OFFSETS: Final = {"brokerOffset": pa.int64(), "consumerOffset": pa.int64(), "lag": pa.int64()}
_FLOWS: Final = {"group": pa.string(), "topic": pa.string(), "messages": pa.int64()}
QUEUES: Final = pa.schema({**_NAMES, **_OFFSETS, **_RATES, "leastLag": pa.int64(), "samples": pa.int64()})
GROUPS: Final = pa.schema(
    {**_FLOWS, **_RATES, "queues": pa.int64(), "catchUpSeconds": pa.float64(), "state": pa.string()}
)
SKEWED: Final = pa.schema({**_NAMES, "lag": pa.int64(), "mean": pa.float64(), "ratio": pa.float64()})
BACKLOG: Final = pa.schema({"sampled": TIMESTAMP, **_FLOWS, "seconds": pa.float64(), "queues": pa.int64()})


def run(
    samples: pa.Table,
    messages: pa.Table,
    limits: LagLimits | None = None,
    plan: Plan | None = None,
    ordered: Collection[str] = (),
) -> Report:
    """From samples, and the rows of the messages at which groups stood."""
    limits = limits or LagLimits()
    waiting = with_waiting(samples, messages)
    queues = sorted(progress(waiting), key=by("group", *_QUEUE, down=["lag"]))
    flows = table_of(sorted(outlook(queues), key=by(*_FLOW, down=["messages"])), GROUPS)
    each = table_of(queues, QUEUES)
    skew = skewed_rows(queues, _FLOW, "lag", factor=limits.skew_factor, least_count=limits.skew_messages)
    tables = {
        "groups": flows,
        "over_limits": over_limits(flows, limits),
        "stuck_queues": stuck(each),
        "skewed_queues": table_of(({name: row[name] for name in SKEWED.names} for row in skew), SKEWED),
        "queues": each.drop_columns(["leastLag"]),
        "backlog_over_time": table_of(sorted(backlog(waiting), key=by("sampled", *_FLOW)), BACKLOG),
    }
    if plan is not None:
        tables["sizing"] = sizing_table(flows, plan, ordered)
    return report_of(tables)


def with_waiting(samples: pa.Table, messages: pa.Table) -> list[Row]:
    """Samples with `lag` and `waitedMs`, of the first message at or behind the consumer's offset."""
    ends = messages.group_by(list(_QUEUE)).aggregate([("queueOffset", "min")])
    first_left = {tuple(row[name] for name in _QUEUE): row["queueOffset_min"] for row in ends.to_pylist()}
    rows: list[dict[str, Any]] = samples.to_pylist()
    for row in rows:
        queue = tuple(row[name] for name in _QUEUE)
        row["queue"] = queue
        # Retention may have passed the consumer: then the first that is left waits.
        row["stand"] = None if queue not in first_left else max(row["consumerOffset"], first_left[queue])
    stored_ms = _stored_ms(messages, {(row["queue"], row["stand"]) for row in rows})
    for row in rows:
        first_ms = stored_ms.get((row["queue"], row["stand"]))
        row["lag"] = max(row["brokerOffset"] - row["consumerOffset"], 0)
        # A clock that is behind the broker's has waited no negative time.
        waited = None if first_ms is None else max(row["sampledMs"] - first_ms, 0)
        row["waitedMs"] = 0 if row["lag"] == 0 else waited
    return list(rows)


def _stored_ms(messages: pa.Table, stands: set[tuple[Any, Any]]) -> dict[tuple[Any, Any], int]:
    """When the messages at these places were stored."""
    offsets = pa.array(sorted({offset for _, offset in stands if offset is not None}), pa.int64())
    near = messages.filter(pc.is_in(messages["queueOffset"], offsets)).to_pylist()
    found: dict[tuple[Any, Any], int] = {}
    for row in near:
        place = (tuple(row[name] for name in _QUEUE), row["queueOffset"])
        found[place] = round(row["storeTimestamp"].timestamp() * 1000)
    return found


def backlog(waiting: Sequence[Row]) -> list[Row]:
    """Per moment, group and topic: messages that wait, and for how long the first of them."""
    return [
        {
            "sampled": pa.scalar(sampled_ms * 1000, TIMESTAMP).as_py(),
            "group": group,
            "topic": topic,
            "messages": sum(row["lag"] for row in rows),
            "seconds": _seconds(most(row["waitedMs"] for row in rows)),
            "queues": len(rows),
        }
        for (sampled_ms, group, topic), rows in grouped(waiting, "sampledMs", *_FLOW).items()
    ]


def progress(waiting: Sequence[Row]) -> list[Row]:
    """Per group and queue: the last sample, and how fast both ends moved since the first."""
    found: list[Row] = []
    for key, rows in grouped(waiting, "group", *_QUEUE).items():
        first, last = (choose(rows, key=lambda row: row["sampledMs"]) for choose in (min, max))
        seconds = (last["sampledMs"] - first["sampledMs"]) / 1000
        found.append(
            {
                **dict(zip(("group", *_QUEUE), key, strict=True)),
                **{name: last[name] for name in _OFFSETS},
                "seconds": _seconds(last["waitedMs"]),
                "arriving": (last["brokerOffset"] - first["brokerOffset"]) / seconds if seconds else None,
                "consuming": (last["consumerOffset"] - first["consumerOffset"]) / seconds if seconds else None,
                "leastLag": least(row["lag"] for row in rows),
                "samples": len(rows),
            }
        )
    return found


def outlook(queues: Sequence[Row]) -> list[Row]:
    """Per group and topic: rates, and the seconds until it has caught up if they stay."""
    found: list[Row] = []
    for (group, topic), rows in grouped(queues, *_FLOW).items():
        messages = sum(row["lag"] for row in rows)
        arriving, consuming = (total(row[name] for row in rows) for name in ("arriving", "consuming"))
        gain = None if arriving is None or consuming is None else consuming - arriving
        flow = {"group": group, "topic": topic, "messages": messages, "queues": len(rows)}
        flow |= {"seconds": most(row["seconds"] for row in rows), "arriving": arriving, "consuming": consuming}
        flow["catchUpSeconds"] = 0.0 if messages == 0 else messages / gain if gain is not None and gain > 0 else None
        flow["state"] = _state(messages, consuming, gain)
        found.append(flow)
    return found


def _state(messages: int, consuming: float | None, gain: float | None) -> str:
    if messages == 0:
        return "caught up"
    if consuming is None:
        return "one sample: rates unknown"
    if consuming <= 0:
        return "stands still"
    return "catching up" if gain is not None and gain > 0 else "falling behind"


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def store_samples(committed: Collection[Committed], messages: pa.Table) -> pa.Table:
    """One sample per committed offset of a store directory, as of its last message; queues end where the log says."""
    ends = messages.group_by(list(_QUEUE)).aggregate([("queueOffset", "max"), ("storeTimestamp", "max")]).to_pylist()
    now_ms = max((round(row["storeTimestamp_max"].timestamp() * 1000) for row in ends), default=0)
    by_queue = {(row["topic"], row["queueId"]): row for row in ends}
    rows = [
        {
            "sampledMs": now_ms,
            "group": each.group,
            **{name: end[name] for name in _QUEUE},
            "brokerOffset": end["queueOffset_max"] + 1,
            "consumerOffset": each.offset,
        }
        for each in committed
        if (end := by_queue.get((each.topic, each.queue_id))) is not None
    ]
    return pa.Table.from_pylist(rows, SAMPLES)
