"""Inside a task: ranges of queues → Arrow batches.

While this thread decodes a group of answers, the next group is fetched on the process's event loop.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from skyrocket.client.consumer.queue_ranges import Piece, QueueRange, RangeRules, RangeUnreadable
from skyrocket.client.core.errors import BrokerRefused
from skyrocket.columns import decode_parts
from skyrocket.columns.schema import COLUMNS
from skyrocket.errors import CorruptRecord, DataError
from skyrocket.format.column_walk import ColumnWalk, Damage
from skyrocket.format.record_columns import Parts, examine
from skyrocket.format.sys_flag import INNER_BATCH
from skyrocket.pipeline.task_process import spare_loaded_objects
from skyrocket.pipeline.topic_source.cluster import Cluster
from skyrocket.pipeline.topic_source.connection import connected, run, submit
from skyrocket.pipeline.topic_source.loss import Loss, decide
from skyrocket.pipeline.topic_source.refusals import named
from skyrocket.pipeline.topic_source.settings import ANONYMOUS_GROUP, TopicSettings, Wanted


@dataclass
class RangesPartition(InputPartition):
    """What one task reads; empty when there is nothing at all."""

    ranges: tuple[QueueRange, ...] = ()


def read_ranges(settings: TopicSettings, schema: pa.Schema, ranges: Sequence[QueueRange]) -> Iterator[pa.RecordBatch]:
    """All messages of the ranges that are wanted, in order of queues and offsets."""
    if not ranges:
        return
    fetcher = _Fetcher(settings, ranges)
    try:
        for group in fetcher:
            yield from (batch for batch in decoded(group, settings, schema) if batch.num_rows)
    finally:
        fetcher.close()
        spare_loaded_objects()


class _Fetcher:
    """Groups of pieces, one fetched ahead."""

    def __init__(self, settings: TopicSettings, ranges: Sequence[QueueRange]) -> None:
        self._settings = settings
        self._ranges = ranges
        self._one_at_a_time = asyncio.Lock()
        self._groups = run(self._open())
        self._next: Future[list[Piece] | None] = submit(self._fetch())

    async def _open(self) -> AsyncGenerator[list[Piece], None]:
        connection = await connected(self._settings.cluster)
        return connection.reader().groups(self._ranges, rules_of(self._settings))

    async def _fetch(self) -> list[Piece] | None:
        async with self._one_at_a_time:
            try:
                return await anext(self._groups, None)
            except BrokerRefused as refusal:
                raise named(refusal, self._settings.wanted) from refusal

    def __iter__(self) -> Iterator[list[Piece]]:
        while (group := self._next.result()) is not None:
            self._next = submit(self._fetch())
            yield group

    def close(self) -> None:
        """Also in the middle: a limit, or an error further on."""
        self._next.cancel()
        submit(self._close())

    async def _close(self) -> None:
        async with self._one_at_a_time:  # a cancelled fetch must have left the generator
            await self._groups.aclose()


def rules_of(settings: TopicSettings) -> RangeRules:
    def lost(offsets: QueueRange, why: str) -> None:
        decide([Loss(offsets, why)], fails=settings.fail_on_data_loss)

    transport, wanted = settings.transport, settings.wanted
    return RangeRules(
        lost=lost,
        group=settings.group or ANONYMOUS_GROUP,
        expression=wanted.expression,
        expression_type=wanted.expression_type,
        batch_size=transport.batch_size,
        in_flight=transport.in_flight,
        timeout=transport.timeout_ms / 1000,
        patience=transport.absence_ms / 1000,
    )


def decoded(group: list[Piece], settings: TopicSettings, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of some answers of one broker; raises CorruptRecord and RangeUnreadable."""
    buffer = b"".join(piece.body for piece in group)
    broker_name = group[0].offsets.queue.broker_name
    needed = [name for name in _compared(settings.wanted) if name not in schema.names]
    full = pa.schema([*schema, *(pa.field(name, COLUMNS[name]) for name in needed)])
    walk = ColumnWalk(buffer, 0, len(buffer), None)
    for parts in walk:
        if isinstance(parts, Damage):
            raise _damaged(group, parts.position, parts.cause)
        inside = _inside(group, parts)
        wanted = parts if inside.all() else examine(buffer, parts.positions[inside], None)
        try:
            batch = decode_parts(buffer, wanted, full, broker_name, settings.decompress, settings.properties)
        except DataError as error:
            raise CorruptRecord(f"{error} ({group[0].offsets} and what follows)") from error
        batch = _shown(_matching(batch, settings.wanted), settings.cluster)
        yield batch.select(schema.names) if needed else batch
    if walk.stop < len(buffer):
        raise _damaged(group, walk.stop, "no record follows")


def _inside(group: list[Piece], parts: Parts) -> NDArray[np.bool_]:
    """Which records belong to the piece in which they came: brokers may send more than was asked for."""
    ends = np.cumsum([len(piece.body) for piece in group])
    of_piece = np.searchsorted(ends, parts.positions, side="right")
    offsets = np.asarray(parts.heads["queue_offset"])
    before = offsets < np.array([piece.offsets.begin for piece in group])[of_piece]
    if (before & ((parts.sys_flags & INNER_BATCH) != 0)).any():
        offending = group[int(of_piece[np.argmax(before)])].offsets
        raise RangeUnreadable(
            offending,
            "it begins inside of a batch that is stored as one",
            "begin at the batch, or read the topic by a consumer",
        )
    return ~before & (offsets < np.array([piece.offsets.end for piece in group])[of_piece])


def _compared(wanted: Wanted) -> list[str]:
    return ["tags"] * bool(wanted.tags) + ["keys"] * bool(wanted.keys)


def _matching(batch: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    """Brokers compare hashes of tags and know nothing of keys: both are compared here."""
    if wanted.tags:
        batch = batch.filter(pc.is_in(batch.column("tags"), value_set=pa.array(wanted.tags)))
    if wanted.keys:
        of_rows = pc.split_pattern(pc.fill_null(batch.column("keys"), ""), " ")
        hits = pc.is_in(pc.list_flatten(of_rows), value_set=pa.array(wanted.keys))
        rows = pc.unique(pc.filter(pc.list_parent_indices(of_rows), hits))
        batch = batch.take(rows)
    return batch


def _shown(batch: pa.RecordBatch, cluster: Cluster) -> pa.RecordBatch:
    """With the names of topics as users know them."""
    if not cluster.namespace or "topic" not in batch.schema.names:
        return batch
    coded = batch.column("topic").dictionary_encode()  # many rows, few topics
    names = pa.array(map(cluster.shown, coded.dictionary.to_pylist()), pa.string())
    place = batch.schema.get_field_index("topic")
    return batch.set_column(place, batch.schema.field(place), names.take(coded.indices))


def _damaged(group: list[Piece], position: int, cause: str) -> CorruptRecord:
    for piece in group:
        if position < len(piece.body):
            return CorruptRecord(f"an answer for {piece.offsets} has a damaged record at byte {position}: {cause}")
        position -= len(piece.body)
    return CorruptRecord(f"the answers for {group[0].offsets} end with a damaged record: {cause}")
