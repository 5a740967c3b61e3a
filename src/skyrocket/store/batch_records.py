"""The records of a client batch, made from its parts: one pack each, and the rest is joined as it came.

    element   size ┊ 0 ┊ 0 ┊ flag ┊ body length ┊ body ┊                properties length ┊ properties
    record    front: size … physical offset ┊ common ┊ body length ┊ body ┊ topic ┊ properties length ┊ properties

`common` is what is the same in all records of the batch: from the flags of the system to the transaction's offset.
"""

from collections.abc import Iterable
from itertools import accumulate, chain, repeat
from struct import Struct
from typing import Final, NamedTuple

from skyrocket.format.batch import ELEMENT_FRAME_SIZE, BatchColumns, EvenBatch, cut_batch
from skyrocket.format.crc import crc32
from skyrocket.format.record import FIELD_CODES, HEADS, PROPERTIES_LENGTH
from skyrocket.store.record_run import RecordRun, RunPart
from skyrocket.store.topic_queue import TopicQueue

_names: Final = list(FIELD_CODES)
_FRONT: Final = ">" + "".join(FIELD_CODES[name] for name in _names[: _names.index("sys_flag")])
_FRONT_SIZE: Final = Struct(_FRONT).size
_FRONT_ZEROS: Final = (0,) * _names.index("sys_flag")
_LENGTH: Final = FIELD_CODES["body_length"]
_LENGTH_SIZE: Final = Struct(f">{_LENGTH}").size
_PACKS: Final = tuple(
    Struct(f"{_FRONT}{head.size - _FRONT_SIZE - _LENGTH_SIZE}s{_LENGTH}").pack for head in HEADS
)  # by the two IPv6 bits
_FRAME_SIZES: Final = tuple(head.size + PROPERTIES_LENGTH.size - ELEMENT_FRAME_SIZE for head in HEADS)
_HOST_BITS: Final = 0x30
_join = b"".join


class BatchOrigin(NamedTuple):
    """What the messages of a batch have in common."""

    sys_flag: int
    born_timestamp: int
    born_host: bytes  # packed
    reconsume_times: int = 0


class PlainBatch(NamedTuple):
    """A batch on its way into the log; its queue is a simple one."""

    queue: TopicQueue
    batch: BatchColumns | EvenBatch
    origin: BatchOrigin


def host_bits(origin: BatchOrigin, store_host: bytes) -> int:
    """Which of the hosts are IPv6: the index of the record's head."""
    return (len(origin.born_host) == 20) | (len(store_host) == 20) << 1


def flag_with_hosts(origin: BatchOrigin, bits: int) -> int:
    """The flags of the system as its records have them."""
    return origin.sys_flag & ~_HOST_BITS | bits << 4


def messages_in(plain: PlainBatch) -> int:
    """How many messages a batch has."""
    batch = plain.batch
    return batch.messages if isinstance(batch, EvenBatch) else len(batch.sizes)


def total_size(batches: Iterable[PlainBatch], store_host: bytes) -> int:
    """How large the records of batches are together."""
    total = 0
    for queue, batch, origin in batches:
        added = _FRAME_SIZES[host_bits(origin, store_host)] + len(queue.topic_part)
        if isinstance(batch, EvenBatch):
            total += batch.messages * (batch.size + added)
        else:
            total += sum(batch.sizes) + len(batch.sizes) * added
    return total


def records_of(plain: PlainBatch, store_host: bytes, start: int, now: int) -> tuple[bytes, RecordRun]:
    """The bytes for this place of the log, and what dispatch has to know of them; the queue goes on behind them."""
    queue, batch, origin = plain
    if isinstance(batch, EvenBatch):
        batch = cut_batch(batch.data)
    bits = host_bits(origin, store_host)
    added = _FRAME_SIZES[bits] + len(queue.topic_part)
    sys_flag = flag_with_hosts(origin, bits)
    count, queue_offset = len(batch.sizes), queue.next_offset
    head = HEADS[bits].pack(
        *_FRONT_ZEROS, sys_flag, origin.born_timestamp, origin.born_host, now, store_host, origin.reconsume_times, 0, 0
    )
    middle = queue.topic_part
    sizes: list[int] | tuple[int, ...]
    starts: list[int] | range
    if batch.same_end is not None:
        size = batch.sizes[0] + added
        sizes, starts = (size,) * count, range(start, start + count * size, size)
        middle += batch.same_end
    else:
        sizes = [size + added for size in batch.sizes]
        starts = list(accumulate(sizes, initial=start))[:-1]
    queue.next_offset = queue_offset + count
    fronts = map(
        _PACKS[bits],
        sizes,
        repeat(queue.record_magic),
        [crc32(body) & 0x7FFFFFFF for body in batch.bodies],
        repeat(queue.queue_id),
        batch.flags,
        range(queue_offset, queue_offset + count),
        starts,
        repeat(head[_FRONT_SIZE:-_LENGTH_SIZE]),
        batch.body_lengths,
    )
    data = _join(chain.from_iterable(zip(fronts, batch.bodies, repeat(middle), batch.ends, strict=False)))
    part = RunPart(queue, queue_offset, 0, count)
    return data, RecordRun((part,), starts, sizes, now, batch.properties, sys_flag)
