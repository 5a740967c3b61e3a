"""Rows as Spark hands them over: checked, and made into the parts of messages, column by column.

Nothing here looks at one row after the other, except to name the one that cannot be sent. Messages of rows that are
sent later (`delayLevel`, `deliverTimestamp`) are made one by one in timed_rows.py, since brokers take them in no batch.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.model import property_names
from skyrocket.pipeline.topic_sink.input_columns import InputColumns, InputError
from skyrocket.pipeline.topic_sink.settings import SinkSettings

_SEPARATORS: Final = "[\x01\x02]"
MOST_PROPERTY_BYTES: Final = 32767
_UNIQUE_KEY_BYTES: Final = 60  # UNIQ_KEY and WAIT


@dataclass(frozen=True, slots=True)
class RowNumbers:
    """How rows are called in errors: by their number in their Spark partition."""

    partition: int
    first_row: int

    def of(self, index: int) -> str:
        return f"row {self.first_row + index} of partition {self.partition}"


@dataclass(slots=True)
class TopicRows:
    """The rows of one topic, all arrays of one length."""

    topic: str
    body: "pa.BinaryArray"
    properties: "pa.BinaryArray"  # as text, without the unique key
    queue_ids: npt.NDArray[np.int64]  # -1: not given
    sharding_keys: "pa.Array | None"
    message_ids: "pa.BinaryArray | None"
    numbers: npt.NDArray[np.int64]  # of the rows in their partition
    timed: npt.NDArray[np.bool_]  # to be delivered later

    def __len__(self) -> int:
        return len(self.body)

    def take(self, indices: npt.NDArray[np.int64]) -> "TopicRows":
        chosen = pa.array(indices)
        return TopicRows(
            self.topic,
            self.body.take(chosen),
            self.properties.take(chosen),
            self.queue_ids[indices],
            None if self.sharding_keys is None else self.sharding_keys.take(chosen),
            None if self.message_ids is None else self.message_ids.take(chosen),
            self.numbers[indices],
            self.timed[indices],
        )

    def contents(self) -> "pa.BinaryArray":
        """What tells a row from others: its messageId, or all that it says."""
        if self.message_ids is not None:
            return self.message_ids
        queues = pa.array(self.queue_ids).cast(pa.string()).cast(pa.binary())
        return pc.binary_join_element_wise(queues, self.body, self.properties, b"\x00")


def rows_of_topics(
    batch: "pa.RecordBatch", columns: InputColumns, settings: SinkSettings, numbers: RowNumbers
) -> list[TopicRows]:
    """The rows of a batch, apart by topic; raises InputError for the first row that cannot be sent."""
    body = _binary(_column(batch, columns, "body"))
    _refuse(pc.is_null(body), numbers, "has no body (NULL)")
    sizes = pc.binary_length(body)
    _refuse(pc.equal(sizes, 0), numbers, "has an empty body, which brokers refuse")
    _check_sizes(sizes, numbers, settings.max_message_size)
    properties = _property_text(batch, columns, numbers, drops_reserved=settings.drops_reserved)
    _check_property_sizes(properties, numbers)
    message_ids = None
    if columns.has("messageId"):
        message_ids = _binary(_column(batch, columns, "messageId"))
        _refuse(
            pc.is_null(message_ids), numbers, 'has no "messageId" (NULL); each row needs one if the column is there'
        )
    queue_ids = _numbers(batch, columns, "queueId", -1)
    _refuse(pa.array(queue_ids < -1), numbers, "has a negative queueId")
    rows = TopicRows(
        settings.topic or "",
        body,
        properties,
        queue_ids,
        _column(batch, columns, "shardingKey") if columns.has("shardingKey") else None,
        message_ids,
        np.arange(len(body), dtype=np.int64) + numbers.first_row,
        _timed(batch, columns),
    )
    return [rows] if settings.topic is not None else _apart(rows, _column(batch, columns, "topic"), numbers)


def _apart(rows: TopicRows, topics: "pa.Array", numbers: RowNumbers) -> list[TopicRows]:
    _refuse(
        pc.or_kleene(pc.is_null(topics), pc.equal(pc.fill_null(topics, ""), "")),
        numbers,
        'has no topic, and there is no option "topic"',
    )
    coded = topics.dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    parts = []
    for code, topic in enumerate(coded.dictionary.to_pylist()):
        part = rows if len(coded.dictionary) == 1 else rows.take(np.flatnonzero(codes == code))
        part.topic = topic
        parts.append(part)
    return parts


# ── properties ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _property_text(
    batch: "pa.RecordBatch", columns: InputColumns, numbers: RowNumbers, *, drops_reserved: bool
) -> "pa.BinaryArray":
    """`NAME 1 value 2 …` of each row, as it stands in a record."""
    pieces: list[Any] = []
    if columns.has("tags"):
        pieces.append(_piece(property_names.TAGS, _column(batch, columns, "tags"), numbers))
    if columns.has("keys"):
        keys = _column(batch, columns, "keys")
        if pa.types.is_list(keys.type) or pa.types.is_large_list(keys.type):
            keys = pc.binary_join(keys.cast(pa.list_(pa.string())), " ")
        pieces.append(_piece(property_names.KEYS, keys, numbers))
    if columns.has("shardingKey"):
        pieces.append(_piece(property_names.SHARDING_KEY, _column(batch, columns, "shardingKey"), numbers))
    if columns.has("properties"):
        pieces.append(_of_map(_column(batch, columns, "properties"), numbers, drops_reserved=drops_reserved))
    pieces += _timing(batch, columns, numbers)
    if not pieces:
        return pa.array([b""], pa.binary()).take(pa.array(np.zeros(len(batch), np.int64)))
    return pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement="")


def _piece(name: str, values: "pa.Array", numbers: RowNumbers) -> "pa.BinaryArray":
    """One property of all rows; null where a row has none."""
    values = pc.if_else(pc.equal(pc.utf8_trim_whitespace(values), ""), None, values)
    _refuse(
        pc.match_substring_regex(values, _SEPARATORS), numbers, f"has 0x01 or 0x02 in {name}, which separate properties"
    )
    return pc.binary_join_element_wise(f"{name}\x01".encode(), _binary(values), b"\x02", b"")


def _of_map(column: "pa.MapArray", numbers: RowNumbers, *, drops_reserved: bool) -> "pa.BinaryArray":
    starts = column.offsets.to_numpy()
    names, values = column.keys, column.items
    row_of = np.searchsorted(starts, np.arange(len(names)), side="right") - 1

    def refuse(bad: "pa.Array", problem: str) -> None:
        at = pc.index(pc.fill_null(bad, False), True).as_py()
        if at >= 0:
            raise InputError(f"{numbers.of(int(row_of[at]))} has the property {names[at].as_py()!r} {problem}")

    if drops_reserved:
        used = ~pc.is_in(names, _RESERVED).to_numpy(zero_copy_only=False)
        kept = np.concatenate(([0], np.cumsum(used)))
        starts = kept[starts].astype(np.int32)
        chosen = pa.array(np.flatnonzero(used))
        names, values, row_of = names.take(chosen), values.take(chosen), row_of[used]
    refuse(
        pc.is_in(names, _RESERVED),
        "which RocketMQ itself uses: give it as a column (tags, keys, shardingKey, delayLevel), leave it out of the "
        'map, or set the option "reservedProperties" to "drop"',
    )
    refuse(pc.is_null(values), "without a value (NULL)")
    refuse(pc.equal(pc.utf8_trim_whitespace(values), ""), "with a blank value, which brokers lose")
    refuse(pc.equal(pc.utf8_trim_whitespace(names), ""), "with a blank name")
    refuse(pc.match_substring_regex(values, _SEPARATORS), "with 0x01 or 0x02 in its value")
    refuse(pc.match_substring_regex(names, _SEPARATORS), "with 0x01 or 0x02 in its name")
    texts = pc.binary_join_element_wise(_binary(names), b"\x01", _binary(values), b"\x02", b"")
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), texts)
    return pc.binary_join(lists, b"")  # a row without a map has an empty list


def _timing(batch: "pa.RecordBatch", columns: InputColumns, numbers: RowNumbers) -> list[Any]:
    """When a row is to be delivered, as brokers read it."""
    pieces = []
    if columns.has("delayLevel"):
        levels = _numbers(batch, columns, "delayLevel", 0)
        _refuse(pa.array(levels < 0), numbers, "has a negative delayLevel")
        text = pc.if_else(pa.array(levels > 0), pa.array(levels).cast(pa.string()), None)
        pieces.append(_piece(property_names.DELAY_LEVEL, text, numbers))
    if columns.has("deliverTimestamp"):
        moments = _column(batch, columns, "deliverTimestamp")
        if pa.types.is_timestamp(moments.type):
            moments = moments.cast(pa.timestamp("ms", moments.type.tz), safe=False).cast(pa.int64())
        _refuse(pc.less_equal(moments, 0), numbers, "has a deliverTimestamp before 1970")
        pieces.append(_piece(property_names.TIMER_DELIVER_MS, moments.cast(pa.string()), numbers))
    if len(pieces) == 2:
        both = pc.and_(pc.is_valid(pieces[0]), pc.is_valid(pieces[1]))
        _refuse(both, numbers, "has both delayLevel and deliverTimestamp: one of them must be NULL")
    return pieces


def _timed(batch: "pa.RecordBatch", columns: InputColumns) -> npt.NDArray[np.bool_]:
    """Which rows are to be delivered later."""
    timed = np.zeros(len(batch), np.bool_)
    if columns.has("delayLevel"):
        timed |= _numbers(batch, columns, "delayLevel", 0) > 0
    if columns.has("deliverTimestamp"):
        timed |= pc.is_valid(_column(batch, columns, "deliverTimestamp")).to_numpy(zero_copy_only=False)
    return timed


# ── checks ───────────────────────────────────────────────────────────────────────────────────────────────────────────

_RESERVED: Final = pa.array(sorted(property_names.RESERVED))


def _refuse(bad: "pa.Array", numbers: RowNumbers, problem: str) -> None:
    at = pc.index(pc.fill_null(bad, False), True).as_py()
    if at >= 0:
        raise InputError(f"{numbers.of(at)} {problem}")


def _check_sizes(sizes: "pa.Array", numbers: RowNumbers, most: int) -> None:
    at = pc.index(pc.greater(sizes, most), True).as_py()
    if at >= 0:
        raise InputError(
            f"{numbers.of(at)} has a body of {sizes[at].as_py()} bytes; maxMessageSize is {most}: send less, or raise "
            'the option "maxMessageSize" and the setting maxMessageSize of the brokers'
        )


def _check_property_sizes(properties: "pa.BinaryArray", numbers: RowNumbers) -> None:
    sizes = pc.binary_length(properties)
    most = MOST_PROPERTY_BYTES - _UNIQUE_KEY_BYTES
    at = pc.index(pc.greater(sizes, most), True).as_py()
    if at >= 0:
        raise InputError(
            f"{numbers.of(at)} has {sizes[at].as_py()} bytes of tags, keys and properties; brokers take at most {most}"
        )


# ── columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _column(batch: "pa.RecordBatch", columns: InputColumns, name: str) -> Any:
    return batch.column(batch.schema.get_field_index(columns.names[name]))


def _binary(values: "pa.Array") -> Any:
    return values if pa.types.is_binary(values.type) else values.cast(pa.binary())


def _numbers(batch: "pa.RecordBatch", columns: InputColumns, name: str, absent: int) -> npt.NDArray[np.int64]:
    if not columns.has(name):
        return np.full(len(batch), absent, np.int64)
    filled = pc.fill_null(_column(batch, columns, name).cast(pa.int64()), absent)
    numbers: npt.NDArray[np.int64] = filled.to_numpy(zero_copy_only=False)
    return numbers
