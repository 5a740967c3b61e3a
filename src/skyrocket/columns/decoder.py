"""Records at known places → one Arrow array per wanted column, copied out of the buffer in C loops."""

import sys
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from skyrocket.columns.batches import BadBody, member_records
from skyrocket.columns.properties import PropertyBlocks
from skyrocket.columns.schema import COLUMNS, TIMESTAMP, PropertiesForm
from skyrocket.columns.slices import few_different, few_texts, in_row_order, slices
from skyrocket.errors import CorruptRecord, DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.column_walk import record_positions
from skyrocket.format.compression import plain_body
from skyrocket.format.dispatch_claims import QueueNumbers
from skyrocket.format.dtypes import Int64s
from skyrocket.format.message_id import host_text
from skyrocket.format.record import Buffer, unpack_host
from skyrocket.format.record_columns import Parts, examine
from skyrocket.model import property_names

_UNWRAPPED = flags.INNER_BATCH | flags.NEED_UNWRAP
_NUMBERS = {
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "commitLogOffset": "physical_offset",
    "reconsumeTimes": "reconsume_times",
    "sysFlag": "sys_flag",
    "flag": "flag",
    "preparedTransactionOffset": "prepared_transaction_offset",
    "bodyCRC": "body_crc",
}
_TIMES = {"bornTimestamp": "born_timestamp", "storeTimestamp": "store_timestamp"}
_PROPERTIES = {
    "uniqKey": property_names.UNIQUE_KEY,
    "keys": property_names.KEYS,
    "tags": property_names.TAGS,
}
# Years 1 to 9999, which is what Spark's and Python's calendars hold; a client may have written any number.
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
# Four digits at once, by two bytes as they stand in memory.
_HEX_OF_PAIRS = np.frombuffer(
    b"".join(pair.to_bytes(2, sys.byteorder).hex().upper().encode() for pair in range(1 << 16)), dtype=np.uint32
)


def decode(
    buffer: Buffer,
    positions: Int64s,
    wanted: pa.Schema,
    broker_name: str | None,
    decompress: bool = True,
    properties: PropertiesForm = "map",
) -> pa.RecordBatch:
    """The columns of `wanted` for the records at these ascending positions; raises where one is damaged.

    A row is a message: the members of an inner batch that says "unwrap me" are rows of their own, as for a consumer.
    """
    parts = examine(buffer, positions, None)
    if not parts.fits.all():
        position = int(positions[np.argmin(parts.fits)])
        raise CorruptRecord(f"no whole record stands at byte {position} of {len(buffer)}")
    return decode_parts(buffer, parts, wanted, broker_name, decompress, properties)


def decode_parts(
    buffer: Buffer,
    parts: Parts,
    wanted: pa.Schema,
    broker_name: str | None,
    decompress: bool = True,
    properties: PropertiesForm = "map",
) -> pa.RecordBatch:
    """As `decode`, for records that a walk has examined already."""
    batches = (parts.sys_flags & _UNWRAPPED) == _UNWRAPPED
    if not batches.any():
        return _rows(buffer, parts, wanted, broker_name, decompress, properties)
    owners = np.flatnonzero(batches)
    others = np.flatnonzero(~batches)
    members, counts = member_records(buffer, [int(position) for position in parts.positions[owners]])
    member_parts = examine(members, record_positions(members, 0, len(members), None).positions, None)
    rows = [
        _rows(buffer, examine(buffer, parts.positions[others], None), wanted, broker_name, decompress, properties),
        _rows(members, member_parts, wanted, broker_name, decompress, properties),
    ]
    order = np.argsort(np.concatenate([others, np.repeat(owners, counts)]), kind="stable")
    return pa.concat_batches(rows).take(pa.array(order))


def topics(buffer: Buffer, parts: Parts) -> pa.BinaryArray:
    """The topics of records, undecoded."""
    return slices(pa.py_buffer(buffer), parts.topic_starts, parts.topic_lengths)


def topic_numbers(buffer: Buffer, parts: Parts, numbers: QueueNumbers) -> Int64s:
    """The topics of records, as numbers."""
    encoded = topics(buffer, parts).dictionary_encode()
    found: Int64s = numbers.of_topics(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()]
    return found


def property_blocks(buffer: Buffer, parts: Parts) -> PropertyBlocks:
    """The properties of records, by name."""
    return PropertyBlocks(slices(pa.py_buffer(buffer), parts.properties_starts, parts.properties_lengths))


def _rows(
    buffer: Buffer,
    parts: Parts,
    wanted: pa.Schema,
    broker_name: str | None,
    decompress: bool,
    properties: PropertiesForm,
) -> pa.RecordBatch:
    if not len(parts):
        return pa.RecordBatch.from_pylist([], wanted)
    blocks: list[PropertyBlocks] = []  # made once, and only when a column needs them

    def property_column(name: str) -> pa.Array:
        if not blocks:
            blocks.append(property_blocks(buffer, parts))
        return blocks[0].map() if name == "properties" else blocks[0].column(_PROPERTIES[name])

    def column(name: str) -> pa.Array:
        if name in _NUMBERS:
            return _numbers(parts, name)
        if name in _TIMES:
            return _times(parts.heads[_TIMES[name]])
        if name == "topic":
            return few_texts(topics(buffer, parts))
        if name == "brokerName":
            return pa.repeat(pa.scalar(broker_name, pa.string()), len(parts))
        if name == "msgId":
            return _offset_ids(parts)
        if name == "body":
            return _bodies(buffer, parts, decompress)
        if name in ("bornHost", "storeHost"):
            return _hosts(parts, "born_host" if name == "bornHost" else "store_host")
        if name == "properties" and properties == "raw":
            return slices(pa.py_buffer(buffer), parts.properties_starts, parts.properties_lengths)
        return property_column(name)

    return pa.RecordBatch.from_arrays([column(name) for name in wanted.names], schema=wanted)


def _numbers(parts: Parts, name: str) -> pa.Array:
    kind = COLUMNS[name]
    column = parts.heads.native(_NUMBERS[name], np.dtype(kind.to_pandas_dtype()))
    return pa.Array.from_buffers(kind, len(column), [None, pa.py_buffer(column)])


def _times(milliseconds: Int64s) -> pa.Array:
    if milliseconds.min() < _FIRST_MS or milliseconds.max() > _LAST_MS:
        milliseconds = np.clip(milliseconds, _FIRST_MS, _LAST_MS)
    micros = milliseconds * 1000
    return pa.Array.from_buffers(TIMESTAMP, len(micros), [None, pa.py_buffer(micros)])


def _by_layout(parts: Parts, made: Callable[["np.ndarray[tuple[int, ...], np.dtype[np.void]]"], pa.Array]) -> pa.Array:
    """A column from the heads of each layout; hardly ever more than one."""
    groups = parts.heads.groups
    if groups[0][0] is None:
        return made(groups[0][1])
    return in_row_order([rows for rows, _ in groups if rows is not None], [made(heads) for _, heads in groups])


def _hosts(parts: Parts, name: str) -> pa.Array:
    return _by_layout(parts, lambda heads: few_different(heads[name], lambda raw: host_text(unpack_host(raw))))


def _offset_ids(parts: Parts) -> pa.Array:
    """Store host, port and physical offset in hexadecimal digits."""

    def ids(heads: "np.ndarray[tuple[int, ...], np.dtype[np.void]]") -> pa.Array:
        hosts, offsets = heads["store_host"], heads["physical_offset"]
        host_pairs = hosts.dtype.itemsize // 2
        digits = np.empty((len(heads), host_pairs + 4), dtype=_HEX_OF_PAIRS.dtype)
        digits[:, :host_pairs] = _HEX_OF_PAIRS[np.ascontiguousarray(hosts).view(np.uint16).reshape(-1, host_pairs)]
        digits[:, host_pairs:] = _HEX_OF_PAIRS[np.ascontiguousarray(offsets).view(np.uint16).reshape(-1, 4)]
        ends = np.arange(len(heads) + 1, dtype=np.int32) * (digits.shape[1] * _HEX_OF_PAIRS.itemsize)
        return pa.StringArray.from_buffers(len(heads), pa.py_buffer(ends), pa.py_buffer(digits))

    return _by_layout(parts, ids)


def _bodies(buffer: Buffer, parts: Parts, decompress: bool) -> pa.Array:
    data = pa.py_buffer(buffer)
    packed = (parts.sys_flags & flags.COMPRESSED != 0) & (parts.body_lengths > 0)
    if not decompress or not packed.any():
        return slices(data, parts.body_starts, parts.body_lengths)
    plain_rows, packed_rows = np.flatnonzero(~packed), np.flatnonzero(packed)
    plain = slices(data, parts.body_starts[plain_rows], parts.body_lengths[plain_rows])
    unpacked = pa.array([_unpacked(buffer, parts, row) for row in packed_rows.tolist()], pa.binary())
    return in_row_order([plain_rows, packed_rows], [plain, unpacked])


def _unpacked(buffer: Buffer, parts: Parts, row: int) -> bytes:
    start = int(parts.body_starts[row])
    try:
        return plain_body(bytes(buffer[start : start + int(parts.body_lengths[row])]), int(parts.sys_flags[row]))
    except DataError as error:
        position = int(parts.positions[row])
        raise BadBody(position, int(parts.heads["physical_offset"][row]), str(error)) from error
