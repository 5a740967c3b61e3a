"""The records of many batches at once, filled column by column.

    even       records of a row per batch (its own head, zeros for the body, the topic, zeros), repeated; then into all
               of them: CRC, flag, queue offset, physical offset, body, properties
    uneven     heads in the same way, and between them bodies, topics and properties as they came

What arrives in one turn of an event loop often looks alike: of one topic, with bodies and properties of one length. For
some dozens of records this costs less than one pack each (`batch_records`), for hundreds a fraction of that.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, groupby, repeat
from operator import itemgetter
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from skyrocket.format.batch import BODY_AT, ELEMENT_FRAME_SIZE, FLAG_AT, EvenBatch, cut_batch
from skyrocket.format.crc import crc32
from skyrocket.format.dtypes import Int64s, dtype_of
from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.record import FIELD_CODES, HEADS, PROPERTIES_LENGTH, field_offset
from skyrocket.store.batch_records import PlainBatch, flag_with_hosts, host_bits, messages_in, records_of
from skyrocket.store.record_run import RecordRun, RunPart

_FROM_EVEN: Final = 24  # fewer records cost less when each is packed
_FROM_UNEVEN: Final = 100
_HEAD_DTYPES: Final = tuple(dtype_of(head, FIELD_CODES) for head in HEADS)
_TOP_BIT_CLEARED: Final = 0x7FFFFFFF
_join = b"".join
_all = chain.from_iterable


class _Look(NamedTuple):
    """What must be the same for batches to become records together."""

    sys_flag: int
    bits: int
    topic_part: bytes
    even: tuple[int, int] | None  # sizes of element and body


class _Rows(NamedTuple):
    """What the batches of a group begin as, and where they are in it."""

    heads: list[bytes]
    parts: list[RunPart]
    counts: list[int]

    @property
    def queue_offsets(self) -> Int64s:
        """Of all records."""
        before = np.repeat([part.first_queue_offset - part.at for part in self.parts], self.counts)
        offsets: Int64s = np.arange(self.parts[-1].end) + before
        return offsets


class _Layout(NamedTuple):
    """Columns of elements and records; bytes are of types without meaning, which are copied at once."""

    element: "np.dtype[np.void]"
    record: "np.dtype[np.void]"
    copied: tuple[str, ...]  # the columns that both have
    bodies: Struct  # of an element: its body alone


def records_of_all(
    batches: Sequence[PlainBatch], store_host: bytes, start: int, now: int
) -> tuple[list[bytes], list[RecordRun]]:
    """The bytes for this place of the log, and what dispatch has to know of them; the queues go on behind them.

    The parts of the runs are the batches in their order.
    """
    pieces: list[bytes] = []
    runs: list[RecordRun] = []
    for look, group in groupby(_with_looks(batches, store_host), itemgetter(0)):
        alike = [plain for _, plain in group]
        if look.even is not None:
            made = [_even_records(look, alike, store_host, start, now)]
        elif sum([messages_in(plain) for plain in alike]) >= _FROM_UNEVEN:
            made = [_uneven_records(look, alike, store_host, start, now)]
        else:
            made = []
            for plain in alike:
                made.append(records_of(plain, store_host, made[-1][1].end_offset if made else start, now))
        for data, run in made:
            pieces.append(data)
            runs.append(run)
            start = run.end_offset
    return pieces, runs


def _with_looks(batches: Sequence[PlainBatch], store_host: bytes) -> Iterator[tuple[_Look, PlainBatch]]:
    """Even ones count as uneven where there are too few that look alike."""
    for look, group in groupby(batches, partial(_look, store_host)):
        alike = list(group)
        if look.even is not None and sum([messages_in(plain) for plain in alike]) < _FROM_EVEN:
            look = look._replace(even=None)
        yield from zip(repeat(look), alike, strict=False)


def _look(store_host: bytes, plain: PlainBatch) -> _Look:
    queue, batch, origin = plain
    bits = host_bits(origin, store_host)
    even = (batch.size, batch.body_length) if isinstance(batch, EvenBatch) else None
    return _Look(flag_with_hosts(origin, bits), bits, queue.topic_part, even)


def _rows_of(
    look: _Look, batches: Iterable[PlainBatch], store_host: bytes, now: int, size: int, body_length: int
) -> _Rows:
    """The queues go on behind them."""
    pack = HEADS[look.bits].pack
    rows = _Rows([], [], [])
    end = 0
    for plain in batches:
        queue, _, origin = plain
        head = pack(
            size, queue.record_magic, 0, queue.queue_id, 0, 0, 0,
            look.sys_flag, origin.born_timestamp, origin.born_host, now, store_host, origin.reconsume_times, 0,
            body_length,
        )  # fmt: skip
        count = messages_in(plain)
        rows.heads.append(head)
        rows.parts.append(RunPart(queue, queue.next_offset, end, end + count))
        rows.counts.append(count)
        queue.next_offset += count
        end += count
    return rows


def _even_records(
    look: _Look, batches: Sequence[PlainBatch], store_host: bytes, start: int, now: int
) -> tuple[bytes, RecordRun]:
    assert look.even is not None
    element_size, body_length = look.even
    properties_length = element_size - ELEMENT_FRAME_SIZE - body_length
    layout = _layout(body_length, len(look.topic_part), properties_length, look.bits)
    size = layout.record.itemsize
    rows = _rows_of(look, batches, store_host, now, size, body_length)
    rest = bytes(body_length) + look.topic_part + PROPERTIES_LENGTH.pack(properties_length) + bytes(properties_length)
    joined = _join([batch.data for _, batch, _ in batches if isinstance(batch, EvenBatch)])
    elements = np.frombuffer(joined, layout.element)
    firsts = np.frombuffer(rest.join(rows.heads) + rest, f"V{size}")
    records = np.repeat(firsts, rows.counts).view(layout.record)
    count = len(records)
    records["body_crc"] = _checksums(chain.from_iterable(layout.bodies.iter_unpack(joined)), count)
    records["queue_offset"] = rows.queue_offsets
    records["physical_offset"] = np.arange(count) * size + start
    for name in layout.copied:
        records[name] = elements[name]
    texts = elements["properties"].tobytes() if properties_length else b""
    run = RecordRun(
        rows.parts,
        range(start, start + count * size, size),
        (size,) * count,
        now,
        EvenTexts(texts, properties_length, count),
        look.sys_flag,
    )
    return records.tobytes(), run


def _uneven_records(
    look: _Look, batches: Sequence[PlainBatch], store_host: bytes, start: int, now: int
) -> tuple[bytes, RecordRun]:
    rows = _rows_of(look, batches, store_host, now, 0, 0)
    columns = [cut_batch(batch.data) if isinstance(batch, EvenBatch) else batch for _, batch, _ in batches]
    count = rows.parts[-1].end
    head = HEADS[look.bits]
    firsts = np.frombuffer(_join(rows.heads), f"V{head.size}")
    heads = np.repeat(firsts, rows.counts).view(_HEAD_DTYPES[look.bits])
    added = head.size + PROPERTIES_LENGTH.size - ELEMENT_FRAME_SIZE + len(look.topic_part)
    sizes = np.fromiter(_all(cut.sizes for cut in columns), np.int64, count) + added
    starts = np.cumsum(sizes) - sizes + start
    bodies = list(_all(cut.bodies for cut in columns))
    heads["size"] = sizes
    heads["body_crc"] = _checksums(bodies, count)
    heads["flag"] = np.fromiter(_all(cut.flags for cut in columns), np.int32, count)
    heads["queue_offset"] = rows.queue_offsets
    heads["physical_offset"] = starts
    heads["body_length"] = np.fromiter(_all(cut.body_lengths for cut in columns), np.int32, count)
    fronts = chain.from_iterable(Struct(f"{head.size}s").iter_unpack(heads.tobytes()))
    middles = _all(repeat(look.topic_part + (cut.same_end or b""), len(cut.sizes)) for cut in columns)
    ends = _all(cut.ends for cut in columns)
    data = _join(chain.from_iterable(zip(fronts, bodies, middles, ends, strict=True)))
    texts = list(_all(cut.properties for cut in columns))
    return data, RecordRun(rows.parts, starts.tolist(), sizes.tolist(), now, texts, look.sys_flag)


def _checksums(bodies: Iterable[bytes], count: int) -> Int64s:
    checksums: Int64s = np.fromiter(map(crc32, bodies), np.int64, count) & _TOP_BIT_CLEARED
    return checksums


@lru_cache(256)
def _layout(body_length: int, topic_length: int, properties_length: int, bits: int) -> _Layout:
    body_at = HEADS[bits].size
    properties_at = body_at + body_length + topic_length + PROPERTIES_LENGTH.size
    element_size = ELEMENT_FRAME_SIZE + body_length + properties_length
    copied = [
        ("flag", 4, FLAG_AT, field_offset("flag")),
        ("body", body_length, BODY_AT, body_at),
        ("properties", properties_length, element_size - properties_length, properties_at),
    ]
    copied = [column for column in copied if column[1]]  # there is no type of no bytes
    filled = [("body_crc", ">u4"), ("queue_offset", ">i8"), ("physical_offset", ">i8")]
    return _Layout(
        _columns([(name, f"V{width}", at) for name, width, at, _ in copied], element_size),
        _columns(
            [(name, kind, field_offset(name)) for name, kind in filled]
            + [(name, f"V{width}", at) for name, width, _, at in copied],
            properties_at + properties_length,
        ),
        tuple(name for name, *_ in copied),
        Struct(f">{BODY_AT}x{body_length}s{element_size - BODY_AT - body_length}x"),
    )


def _columns(fields: Sequence[tuple[str, str, int]], size: int) -> "np.dtype[np.void]":
    names, kinds, places = zip(*fields, strict=True)
    return np.dtype({"names": names, "formats": kinds, "offsets": places, "itemsize": size})
