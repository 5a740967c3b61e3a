"""Dead letters as files: a table for spreadsheets, and columns with whole bodies."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from skyrocket.client.consumer.dead_letter_cause import cause_of
from skyrocket.client.core.message import ReceivedMessage
from skyrocket.console.api.values import BadInput


def csv_of(names: Sequence[str], rows: Iterable[object]) -> str:
    """One line for each."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(getattr(row, name)) for name in names])
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Spreadsheets take what begins so for a formula."""
    text = " ".join(value) if isinstance(value, list) else value
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def parquet_of(messages: Sequence[ReceivedMessage]) -> bytes:
    """One row for each; raises BadInput where pyarrow is missing."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise BadInput("Parquet needs pyarrow beside the console: pip install pyarrow, or take csv or json") from None
    text = pa.string()
    schema = pa.schema(
        {
            "message_id": text,
            "topic": text,
            "died_at": pa.timestamp("ms", "UTC"),
            "attempts": pa.int32(),
            "keys": pa.list_(text),
            "tags": text,
            "error": text,
            "error_message": text,
            "host": text,
            "properties": pa.map_(text, text),
            "body": pa.binary(),
        }
    )
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([_record(message) for message in messages], schema), out)
    return out.getvalue()


def _record(message: ReceivedMessage) -> dict[str, Any]:
    cause = cause_of(message)
    return {
        "message_id": message.message_id,
        "topic": message.topic,
        "died_at": message.store_timestamp,
        "attempts": message.reconsume_times,
        "keys": list(message.keys),
        "tags": message.tags,
        "error": None if cause is None else cause.error_type,
        "error_message": None if cause is None else cause.error_message,
        "host": None if cause is None else cause.host,
        "properties": list(message.properties.items()),
        "body": message.body,
    }
