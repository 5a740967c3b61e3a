"""The records of many even batches at once, filled column by column.

    batch        a row that all of its records begin as: its own head, zeros for the body, the topic, zeros
    record       a copy of that row, then: CRC, flag, queue offset, physical offset, body, properties

What arrives in one turn of an event loop often looks alike: of one topic, with bodies and properties of one length. For
some dozens of records this costs less than one pack each (`batch_records`), for hundreds a fraction of that.
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import chain, groupby
from struct import Struct
from typing import Final, NamedTuple, cast

import numpy as np

from skyrocket.format.batch import BODY_AT, ELEMENT_FRAME_SIZE, FLAG_AT, EvenBatch
from skyrocket.format.crc import crc32
from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.record import HEADS, PROPERTIES_LENGTH, field_offset
from skyrocket.store.batch_records import BatchOrigin, PlainBatch, flag_with_hosts, host_bits, records_of
from skyrocket.store.record_run import RecordRun, RunPart
from skyrocket.store.topic_queue import TopicQueue

_FROM_RECORDS: Final = 24  # fewer cost less when each is packed
_TOP_BIT_CLEARED: Final = 0x7FFFFFFF
_join = b"".join


_EvenOne = tuple[TopicQueue, EvenBatch, BatchOrigin]


class _Look(NamedTuple):
    """What must be the same for batches to become records together."""

    element_size: int
    body_length: int
    magic: int
    topic_part: bytes
    sys_flag: int
    bits: int


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
    for look, group in groupby(batches, partial(_look, store_host)):
        alike = list(group)
        even = cast("list[_EvenOne]", alike) if look is not None else []
        if look is not None and sum([batch.messages for _, batch, _ in even]) >= _FROM_RECORDS:
            made = [_even_records(look, even, store_host, start, now)]
        else:
            made = []
            for plain in alike:
                made.append(records_of(plain, store_host, made[-1][1].end_offset if made else start, now))
        for data, run in made:
            pieces.append(data)
            runs.append(run)
            start = run.end_offset
    return pieces, runs


def _look(store_host: bytes, plain: PlainBatch) -> _Look | None:
    queue, batch, origin = plain
    if not isinstance(batch, EvenBatch):
        return None
    bits = host_bits(origin, store_host)
    sys_flag = flag_with_hosts(origin, bits)
    return _Look(batch.size, batch.body_length, queue.record_magic, queue.topic_part, sys_flag, bits)


def _even_records(
    look: _Look, batches: Sequence[_EvenOne], store_host: bytes, start: int, now: int
) -> tuple[bytes, RecordRun]:
    properties_length = look.element_size - ELEMENT_FRAME_SIZE - look.body_length
    layout = _layout(look.body_length, len(look.topic_part), properties_length, look.bits)
    size = layout.record.itemsize
    pack, rest = HEADS[look.bits].pack, bytes(look.body_length) + look.topic_part
    rest += PROPERTIES_LENGTH.pack(properties_length) + bytes(properties_length)
    rows: list[bytes] = []
    parts: list[RunPart] = []
    counts: list[int] = []
    count = 0
    for queue, batch, origin in batches:
        head = pack(
            size, look.magic, 0, queue.queue_id, 0, 0, 0,
            look.sys_flag, origin.born_timestamp, origin.born_host, now, store_host, origin.reconsume_times, 0,
            look.body_length,
        )  # fmt: skip
        rows += (head, rest)
        counts.append(batch.messages)
        parts.append(RunPart(queue, queue.next_offset, count, count + batch.messages))
        queue.next_offset += batch.messages
        count += batch.messages
    joined = _join([batch.data for _, batch, _ in batches])
    elements = np.frombuffer(joined, layout.element)
    records = np.repeat(np.frombuffer(_join(rows), f"V{size}"), counts).view(layout.record)
    bodies = chain.from_iterable(layout.bodies.iter_unpack(joined))
    numbers = np.arange(count)
    records["body_crc"] = np.fromiter(map(crc32, bodies), np.uint32, count) & _TOP_BIT_CLEARED
    records["queue_offset"] = numbers + np.repeat([part.first_queue_offset - part.at for part in parts], counts)
    records["physical_offset"] = numbers * size + start
    for name in layout.copied:
        records[name] = elements[name]
    texts = elements["properties"].tobytes() if properties_length else b""
    run = RecordRun(
        parts,
        range(start, start + count * size, size),
        (size,) * count,
        now,
        EvenTexts(texts, properties_length, count),
        look.sys_flag,
    )
    return records.tobytes(), run


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
