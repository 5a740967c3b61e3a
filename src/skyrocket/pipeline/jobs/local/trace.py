"""`trace` in this process: the steps of `jobs/trace.py` over Arrow tables."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from skyrocket.columns.schema import TIMESTAMP
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX
from skyrocket.pipeline.jobs.local.grouping import (
    Row,
    grouped,
    least,
    most,
    nulls_first,
    percentiles_of,
    skewed_rows,
    table_of,
)
from skyrocket.pipeline.jobs.tables import PERCENTILES
from skyrocket.pipeline.jobs.trace import LATENCY_BY, STAGES, UNKNOWN, TraceLimits, report_of, slow_consumers
from skyrocket.pipeline.jobs.trace_events import CALL_BEGAN, CALL_ENDED, DAMAGED, SENT, rows_of_body
from skyrocket.pipeline.report import Report

_TEXT, _COUNT, _FLOAT = pa.string(), pa.int64(), pa.float64()
_BY: Final = {"topic": _TEXT, "group": _TEXT, "client": _TEXT, "minute": TIMESTAMP}
_FIGURES: Final = {"stage": _TEXT, "count": _COUNT, **dict.fromkeys(PERCENTILES, _FLOAT), "max": _FLOAT}
RETRIES: Final = pa.schema(
    {
        "group": _TEXT,
        "messages": _COUNT,
        "calls": _COUNT,
        "failedCalls": _COUNT,
        "calledAgain": _COUNT,
        "neverSucceeded": _COUNT,
        "mostRetries": pa.int32(),
    }
)
CLIENTS: Final = pa.schema({"group": _TEXT, "client": _TEXT, "calls": _COUNT, "p90": _FLOAT})
HOT_KEYS: Final = pa.schema({"topic": _TEXT, "key": _TEXT, "count": _COUNT, "share": _FLOAT, "isHot": pa.bool_()})
_QUEUE: Final = {"topic": _TEXT, "brokerName": _TEXT, "queueId": pa.int32()}
SKEW: Final = pa.schema({**_QUEUE, "count": _COUNT, "mean": _FLOAT, "ratio": _FLOAT})
DAMAGED_TRACES: Final = pa.schema({"clientHost": _TEXT, "reason": _TEXT})
_PORT: Final = re.compile(r":\d+$")


def run(traces: pa.Table, messages: pa.Table | None = None, limits: TraceLimits | None = None) -> Report:
    """From rows of a trace topic, and (for exact store times and queues) the rows of the topics that were traced."""
    limits = limits or TraceLimits()
    told = events(traces)
    sent, called = sends(told), calls(told)
    travelled = journeys(sent, called, {} if messages is None else store_times(messages))
    tables = {
        **{name: latency(travelled, by) for name, by in LATENCY_BY.items()},
        "retries": table_of(retries(called), RETRIES),
        "slow_consumers": slow_consumers(table_of(handling(called), CLIENTS), limits),
        "hot_keys": table_of(hot_keys(sent, limits), HOT_KEYS),
    }
    if messages is not None:
        counts = messages.group_by(list(_QUEUE)).aggregate([([], "count_all")]).rename_columns({"count_all": "count"})
        skew = skewed_rows(
            counts.to_pylist(), ["topic"], "count", factor=limits.skew_factor, least_count=limits.skew_count
        )
        tables["queue_skew"] = table_of(skew, SKEW)
    damaged = [row for row in told if row["kind"] == DAMAGED]
    tables["damaged_traces"] = table_of(
        ({name: row[name] for name in DAMAGED_TRACES.names} for row in damaged), DAMAGED_TRACES
    )
    return report_of(tables, exact=messages is not None)


def events(traces: pa.Table) -> list[Row]:
    """A row per event, with the host of the client that told it."""
    found: list[Row] = []
    for trace in traces.to_pylist():
        host = None if trace["bornHost"] is None else _PORT.sub("", trace["bornHost"])
        found += [{**row, "clientHost": row.get("clientHost") or host} for row in rows_of_body(trace["body"])]
    return found


def sends(told: Sequence[Row]) -> list[Row]:
    """A row per message that was sent: the first event of each id."""
    found: list[Row] = []
    for (message_id,), rows in grouped((row for row in told if row["kind"] == SENT), "messageId").items():
        first = min(rows, key=lambda row: row["timeMs"])
        answered = least(None if row["costMs"] is None else row["timeMs"] + row["costMs"] for row in rows)
        head = {name: first[name] for name in ("topic", "keys", "storeHost")}
        found.append({"messageId": message_id, **head, "sentMs": first["timeMs"], "answeredMs": answered})
    return found


def calls(told: Sequence[Row]) -> list[Row]:
    """A row per message and call of a handler; `endedMs` is null while it runs, or when its end was not told."""
    ended: dict[Any, Row] = {}
    began: dict[Any, Row] = {}
    for row in told:
        if row["kind"] in (CALL_BEGAN, CALL_ENDED):
            (began if row["kind"] == CALL_BEGAN else ended).setdefault((row["requestId"], row["messageId"]), row)
    found: list[Row] = []
    for key, begin in began.items():
        end: Mapping[str, Any] = ended.get(key, {})
        ended_ms, cost_ms = end.get("timeMs"), end.get("costMs")
        if ended_ms is None and cost_ms is not None:
            ended_ms = begin["timeMs"] + cost_ms  # RocketMQ: older clients tell only the share of the call
        head = {name: begin[name] for name in ("messageId", "group", "clientHost", "retryTimes")}
        found.append({**head, "beganMs": begin["timeMs"], "endedMs": ended_ms, "succeeded": end.get("succeeded")})
    return found


def store_times(messages: pa.Table) -> dict[str, int]:
    """When each id was first stored; retries and dead letters are later lives of a message."""
    found: dict[str, int] = {}
    for row in messages.select(["topic", "uniqKey", "storeTimestamp"]).to_pylist():
        if row["uniqKey"] is not None and not row["topic"].startswith((RETRY_PREFIX, DLQ_PREFIX)):
            stored_ms = round(row["storeTimestamp"].timestamp() * 1000)
            found[row["uniqKey"]] = min(stored_ms, found.get(row["uniqKey"], stored_ms))
    return found


def journeys(sent: Sequence[Row], called: Sequence[Row], stored: Mapping[str, int]) -> list[Row]:
    """A row per message and consumer group (group is null where nobody was called), with the stages in ms."""
    of_message: dict[Any, dict[Any, list[Row]]] = {}
    for (message_id, group), rows in grouped(called, "messageId", "group").items():
        of_message.setdefault(message_id, {})[group] = rows
    nothing: dict[Any, list[Row]] = {None: []}
    found = [
        _journey(send, group, rows, stored.get(send["messageId"], send["answeredMs"]))
        for send in sent
        for group, rows in of_message.get(send["messageId"], nothing).items()
    ]
    known = {send["messageId"] for send in sent}
    for message_id, groups in of_message.items():
        if message_id not in known:
            unknown = {"messageId": message_id, "topic": None, "sentMs": None}
            found += [_journey(unknown, group, rows, None) for group, rows in groups.items()]
    return found


def _journey(send: Row, group: str | None, rows: Sequence[Row], stored_ms: int | None) -> Row:
    successes = [row for row in rows if row["succeeded"]]
    success = min(successes, key=lambda row: nulls_first(row["endedMs"], row["beganMs"]), default=None)
    last = max(rows, key=lambda row: nulls_first(row["beganMs"], row["endedMs"]), default=None)
    final: Mapping[str, Any] = success or last or {}
    first_ms = least(row["beganMs"] for row in rows)
    return {
        "messageId": send["messageId"],
        "topic": UNKNOWN if send["topic"] is None else send["topic"],
        "group": group,
        "client": final.get("clientHost"),
        "minute": _minute(send["sentMs"]),
        "send": _difference(stored_ms, send["sentMs"]),
        "wait": _difference(first_ms, stored_ms),
        "handle": _difference(final.get("endedMs"), final.get("beganMs")),
        "end to end": None if success is None else _difference(success["endedMs"], send["sentMs"]),
    }


def _difference(end: int | None, begin: int | None) -> int | None:
    return None if end is None or begin is None else end - begin


def _minute(sent_ms: int | None) -> datetime | None:
    if sent_ms is None:
        return None
    moment: datetime = pa.scalar(sent_ms // 60_000 * 60_000_000, TIMESTAMP).as_py()
    return moment


def latency(travelled: Sequence[Row], by: Sequence[str]) -> pa.Table:
    """Percentiles of each stage; sends belong to topics, whatever the groups of a message did."""
    stages = [*STAGES] if tuple(by) == ("topic",) else [*STAGES][1:]
    first = {
        id(min(rows, key=lambda row: nulls_first(row["group"]))) for rows in grouped(travelled, "messageId").values()
    }
    found: list[Row] = []
    for key, rows in sorted(
        ((key, rows) for key, rows in grouped(travelled, *by).items() if None not in key), key=lambda group: group[0]
    ):
        for stage in stages:
            counted = rows if stage != "send" else [row for row in rows if id(row) in first]
            values = [row[stage] for row in counted if row[stage] is not None]
            if values:
                found.append({**dict(zip(by, key, strict=True)), "stage": stage, **percentiles_of(values)})
    return table_of(found, pa.schema({**{name: _BY[name] for name in by}, **_FIGURES}))


def retries(called: Sequence[Row]) -> list[Row]:
    """Per group: how often handlers failed, and what never succeeded in the time that was looked at."""
    found: list[Row] = []
    for (group,), rows in grouped(called, "group").items():
        messages = grouped(rows, "messageId").values()
        found.append(
            {
                "group": group,
                "messages": len(messages),
                "calls": len(rows),
                "failedCalls": sum(not row["succeeded"] for row in rows),
                "calledAgain": sum(len(each) > 1 for each in messages),
                "neverSucceeded": sum(not any(row["succeeded"] for row in each) for each in messages),
                "mostRetries": most(row["retryTimes"] for row in rows),
            }
        )
    return sorted(found, key=lambda row: (-row["failedCalls"], *nulls_first(row["group"])))


def handling(called: Sequence[Row]) -> list[Row]:
    """Per group and client: how often it was called, and the p90 of its calls in ms."""
    took = [{**row, "ms": row["endedMs"] - row["beganMs"]} for row in called if row["endedMs"] is not None]
    return [
        {
            "group": group,
            "client": client,
            "calls": len(rows),
            "p90": percentiles_of([row["ms"] for row in rows])["p90"],
        }
        for (group, client), rows in grouped(took, "group", "clientHost").items()
    ]


def hot_keys(sent: Sequence[Row], limits: TraceLimits) -> list[Row]:
    """The most frequent keys of each topic, with their share of its messages; `isHot` marks those over the limits."""
    totals = Counter(row["topic"] for row in sent if row["topic"] is not None)
    counted = Counter(
        (row["topic"], key) for row in sent if row["topic"] is not None for key in (row["keys"] or "").split()
    )
    found = [
        {
            "topic": topic,
            "key": key,
            "count": count,
            "share": count / totals[topic],
            "isHot": count / totals[topic] >= limits.hot_share and count >= limits.hot_count,
        }
        for (topic, key), count in counted.items()
        if count > 1
    ]
    ordered = sorted(found, key=lambda row: (not row["isHot"], -row["count"], row["topic"], row["key"]))
    return list(ordered[: limits.most_keys])
