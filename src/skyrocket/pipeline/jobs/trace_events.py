"""The trace topic as rows: one row per event that a client has told about a message.

Bodies are read by the same decoder that the client uses. One that cannot be read becomes a row of kind `damaged` with
the reason, so that nothing is missing in silence.
"""

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type

from skyrocket.errors import DataError
from skyrocket.format.trace import CallBegan, CallEnded, Recalled, Sent, TraceEvent, TransactionEnded, decode_trace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SENT: Final = "sent"
CALL_BEGAN: Final = "call began"
CALL_ENDED: Final = "call ended"
DAMAGED: Final = "damaged"
_KINDS: Final[dict[type[Any], str]] = {
    Sent: SENT,
    CallBegan: CALL_BEGAN,
    CallEnded: CALL_ENDED,
    TransactionEnded: "transaction ended",
    Recalled: "recalled",
}
# Column of a row, the event's field and its type.
_FIELDS: Final[tuple[tuple[str, str, pa.DataType], ...]] = (
    ("timeMs", "timestamp", pa.int64()),
    ("group", "group", pa.string()),
    ("topic", "topic", pa.string()),
    ("messageId", "message_id", pa.string()),
    ("tags", "tags", pa.string()),
    ("keys", "keys", pa.string()),
    ("storeHost", "store_host", pa.string()),
    ("bodyLength", "body_length", pa.int32()),
    ("costMs", "cost_ms", pa.int64()),
    ("requestId", "request_id", pa.string()),
    ("retryTimes", "retry_times", pa.int32()),
    ("succeeded", "succeeded", pa.bool_()),
    ("clientHost", "client_host", pa.string()),
)
_TYPES: Final = {name: kind for name, _, kind in _FIELDS}
_ROWS: Final = pa.list_(pa.struct({"kind": pa.string(), **_TYPES, "outcome": pa.string(), "reason": pa.string()}))


def rows_of_body(body: bytes | None) -> list[dict[str, Any]]:
    """What one message of the trace topic says."""
    try:
        return [_row(event) for event in decode_trace(body or b"")]
    except DataError as error:
        return [{"kind": DAMAGED, "reason": str(error)}]


def _row(event: TraceEvent) -> dict[str, Any]:
    row = {name: getattr(event, attribute, None) for name, attribute, _ in _FIELDS}
    row["clientHost"] = row["clientHost"] or None
    outcome = event.outcome.name if isinstance(event, CallEnded) else None
    return {"kind": _KINDS[type(event)], **row, "outcome": outcome, "reason": None}


def _rows_of_bodies(bodies: pa.Array) -> pa.Array:
    return pa.array([rows_of_body(body.as_py()) for body in bodies], _ROWS)


def events(traces: "DataFrame") -> "DataFrame":
    """Rows with `body` and `bornHost` of a trace topic → a row per event, with the host of the client that told it."""
    decode = arrow_udf(_rows_of_bodies, from_arrow_type(_ROWS))  # type: ignore[call-overload]  # it goes by the annotations
    told = traces.select("bornHost", fn.inline(decode("body")))
    host = fn.regexp_replace("bornHost", r":\d+$", "")
    return told.withColumn("clientHost", fn.coalesce("clientHost", host)).drop("bornHost")
