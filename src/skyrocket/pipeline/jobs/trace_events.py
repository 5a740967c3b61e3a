"""The trace topic as rows: one row per event that a client has told about a message.

Bodies are read by the same decoder that the client uses. One that cannot be read becomes a row of kind `damaged` with
the reason, so that nothing is missing in silence.
"""

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as fn
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

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
# Column of a row, the event's field, its type here and in Arrow.
_FIELDS: Final[tuple[tuple[str, str, DataType, pa.DataType], ...]] = (
    ("timeMs", "timestamp", LongType(), pa.int64()),
    ("group", "group", StringType(), pa.string()),
    ("topic", "topic", StringType(), pa.string()),
    ("messageId", "message_id", StringType(), pa.string()),
    ("tags", "tags", StringType(), pa.string()),
    ("keys", "keys", StringType(), pa.string()),
    ("storeHost", "store_host", StringType(), pa.string()),
    ("bodyLength", "body_length", IntegerType(), pa.int32()),
    ("costMs", "cost_ms", LongType(), pa.int64()),
    ("requestId", "request_id", StringType(), pa.string()),
    ("retryTimes", "retry_times", IntegerType(), pa.int32()),
    ("succeeded", "succeeded", BooleanType(), pa.bool_()),
    ("clientHost", "client_host", StringType(), pa.string()),
)
_SPARK_TYPE: Final = ArrayType(
    StructType(
        [
            StructField("kind", StringType()),
            *(StructField(name, kind) for name, _, kind, _ in _FIELDS),
            StructField("outcome", StringType()),
            StructField("reason", StringType()),
        ]
    )
)
_ARROW_TYPE: Final = pa.list_(
    pa.struct(
        [
            ("kind", pa.string()),
            *((name, kind) for name, _, _, kind in _FIELDS),
            ("outcome", pa.string()),
            ("reason", pa.string()),
        ]
    )
)


def rows_of_body(body: bytes | None) -> list[dict[str, Any]]:
    """What one message of the trace topic says."""
    try:
        return [_row(event) for event in decode_trace(body or b"")]
    except DataError as error:
        return [{"kind": DAMAGED, "reason": str(error)}]


def _row(event: TraceEvent) -> dict[str, Any]:
    row = {name: getattr(event, attribute, None) for name, attribute, _, _ in _FIELDS}
    row["clientHost"] = row["clientHost"] or None
    outcome = event.outcome.name if isinstance(event, CallEnded) else None
    return {"kind": _KINDS[type(event)], **row, "outcome": outcome, "reason": None}


def _rows_of_bodies(bodies: pa.Array) -> pa.Array:
    return pa.array([rows_of_body(body.as_py()) for body in bodies], _ARROW_TYPE)


def events(traces: "DataFrame") -> "DataFrame":
    """Rows with `body` and `bornHost` of a trace topic → a row per event, with the host of the client that told it."""
    decode = arrow_udf(_rows_of_bodies, _SPARK_TYPE)  # type: ignore[call-overload]  # it goes by the annotations
    told = traces.select("bornHost", fn.inline(decode("body")))
    host = fn.regexp_replace("bornHost", r":\d+$", "")
    return told.withColumn("clientHost", fn.coalesce("clientHost", host)).drop("bornHost")
