"""`dlq` in this process: the steps of `jobs/dlq.py` over an Arrow table."""

import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from skyrocket.client.consumer.dead_letter_cause import ERROR, HOST, MESSAGE, TRACE
from skyrocket.columns.schema import TIMESTAMP
from skyrocket.model.property_names import RETRY_TOPIC
from skyrocket.model.topic import DLQ_PREFIX
from skyrocket.pipeline.jobs.dlq import (
    BODY_CHARACTERS,
    CAUSE,
    CAUSE_CHARACTERS,
    DLQ_ORIGIN_TOPIC,
    FIRST_LINE,
    IDENTIFIERS,
    MOST_LETTERS,
    PLACE,
    report_of,
)
from skyrocket.pipeline.jobs.local.grouping import Row, by, grouped, most, nulls_first, table_of
from skyrocket.pipeline.report import Report

_TEXT: Final = pa.string()
_CAUSES: Final = dict.fromkeys(CAUSE, _TEXT)
CAUSES: Final = pa.schema(
    {
        **_CAUSES,
        "letters": pa.int64(),
        "first": TIMESTAMP,
        "last": TIMESTAMP,
        "mostRetries": pa.int32(),
        "hosts": pa.list_(_TEXT),
    }
)
_SHOWN: Final = {"messageId": _TEXT, "keys": _TEXT, "died": TIMESTAMP, "errorMessage": _TEXT, "traceback": _TEXT}
SAMPLES: Final = pa.schema({**_CAUSES, **_SHOWN, "body": _TEXT})
BY_HOUR: Final = pa.schema({"hour": TIMESTAMP, "group": _TEXT, "letters": pa.int64()})
LETTERS: Final = pa.schema(
    {
        "topic": _TEXT,
        "brokerName": _TEXT,
        "queueId": pa.int32(),
        "queueOffset": pa.int64(),
        "messageId": _TEXT,
        **_CAUSES,
        "died": TIMESTAMP,
    }
)


def run(rows: pa.Table, sample: int = 3) -> Report:
    """From rows of dead-letter topics."""
    dead = letters(rows)
    causes = sorted(_causes(dead), key=by(*CAUSE, down=["letters"]))
    hours = [
        {"hour": hour, "group": group, "letters": len(found)}
        for (hour, group), found in grouped(dead, "hour", "group").items()
    ]
    return report_of(
        {
            "causes": table_of(causes, CAUSES),
            "samples": table_of(_samples(dead, sample), SAMPLES),
            "by_hour": table_of(sorted(hours, key=by("hour", "group")), BY_HOUR),
            "letters": table_of(_chosen(sorted(dead, key=by(*PLACE)), LETTERS.names), LETTERS, MOST_LETTERS),
        }
    )


def letters(rows: pa.Table) -> list[Row]:
    """Rows of dead-letter topics → group, origin, cause and what else one wants to know about each."""
    return [_letter(row) for row in rows.to_pylist() if row["topic"].startswith(DLQ_PREFIX)]


def _letter(row: dict[str, Any]) -> Row:
    properties = dict(row["properties"] or ())
    error, message = properties.get(ERROR), properties.get(MESSAGE)
    times = row["reconsumeTimes"] or 0
    tried = f"no cause written, tried {times} {'time' if times == 1 else 'times'}"
    return {
        **row,
        "group": row["topic"].removeprefix(DLQ_PREFIX),
        "originTopic": properties.get(RETRY_TOPIC, properties.get(DLQ_ORIGIN_TOPIC, "(unknown)")),
        "cause": tried if error is None else cause_of(error, message or ""),
        "errorMessage": message,
        "host": properties.get(HOST),
        "traceback": properties.get(TRACE),
        "messageId": row["msgId"] if row["uniqKey"] is None else row["uniqKey"],
        "died": row["storeTimestamp"],
        "hour": row["storeTimestamp"].replace(minute=0, second=0, microsecond=0),
    }


def cause_of(error: str, message: str) -> str:
    """Type and first line of the text, in which what differs from letter to letter is left open."""
    first_line = re.match(FIRST_LINE, message, re.ASCII)
    assert first_line is not None, "the pattern matches any text"
    identifiers = re.sub(IDENTIFIERS, "#", first_line[1], flags=re.ASCII)
    alike = re.sub(r"\d+", "#", identifiers, flags=re.ASCII)[:CAUSE_CHARACTERS]
    return f"{error}: {alike}" if alike else error


def _causes(dead: Sequence[Row]) -> list[Row]:
    return [
        {
            **dict(zip(CAUSE, key, strict=True)),
            "letters": len(rows),
            "first": min(row["died"] for row in rows),
            "last": max(row["died"] for row in rows),
            "mostRetries": most(row["reconsumeTimes"] for row in rows),
            "hosts": sorted({row["host"] for row in rows if row["host"] is not None}),
        }
        for key, rows in grouped(dead, *CAUSE).items()
    ]


def _samples(dead: Sequence[Row], count: int) -> list[Row]:
    """The newest letters of each cause, with the beginning of their bodies."""
    found: list[Row] = []
    for _, rows in sorted(grouped(dead, *CAUSE).items(), key=lambda group: nulls_first(*group[0])):
        newest = sorted(rows, key=lambda row: (row["died"], row["queueOffset"]), reverse=True)[:count]
        found += [{**row, "body": body_text(row["body"])} for row in newest]
    return _chosen(found, SAMPLES.names)


def body_text(body: bytes | None) -> str | None:
    """The beginning of a body; what is not text is shown as it is."""
    if body is None:
        return None
    try:
        return body.decode()[:BODY_CHARACTERS]
    except UnicodeDecodeError:
        return body.hex().upper()[:BODY_CHARACTERS]


def _chosen(rows: Sequence[Row], names: Sequence[str]) -> list[Row]:
    return [{name: row[name] for name in names} for row in rows]
