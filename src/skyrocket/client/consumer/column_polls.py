"""Pulled answers as Arrow columns: the records of many answers are joined and decoded at once, without Python objects.

The rows are those that `poll` would give as messages: inner batches unfolded, tags compared, offsets and queue of the
queue that was pulled, topics without their namespace.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.client.consumer.pulled_answer import PulledAnswer
from skyrocket.columns import decode_parts
from skyrocket.columns.schema import COLUMNS, arrow_schema
from skyrocket.errors import CorruptRecord
from skyrocket.format.record_columns import Parts, examine


class ColumnPolls:
    """Which columns somebody polls."""

    def __init__(self, columns: Iterable[str] | None, shown_topic: Callable[[str], str] | None) -> None:
        """Raises ConfigError for a column that does not exist."""
        self.schema = arrow_schema(columns)
        self._shown_topic = shown_topic  # None: topics are called as in their records
        needed = [name for name in ("queueId", "queueOffset", "tags") if name not in self.schema.names]
        self._with_keys = pa.schema([*self.schema, *(pa.field(name, COLUMNS[name]) for name in needed)])

    def none(self) -> pa.RecordBatch:
        """Columns without a row."""
        return pa.RecordBatch.from_pylist([], self.schema)

    def rows(self, answers: Sequence[PulledAnswer], most: int | None = None) -> pa.RecordBatch:
        """What was not handed out of these answers of one broker, up to a number; raises CorruptRecord and BadBody."""
        if all(answer.is_plain for answer in answers):
            buffer, parts = _joined(answers)
            queue_ids = np.repeat([answer.queue_id for answer in answers], [len(answer.starts) for answer in answers])
            if (parts.heads["queue_id"] == queue_ids).all():
                batch = decode_parts(buffer, parts, self.schema, answers[0].broker_name)
                return self._shown(batch if most is None else batch.slice(0, most))
        tables = [self._own_rows(answer) for answer in answers]
        batch = tables[0] if len(tables) == 1 else pa.concat_batches(tables)
        return self._shown((batch if most is None else batch.slice(0, most)).select(self.schema.names))

    def _own_rows(self, answer: PulledAnswer) -> pa.RecordBatch:
        """Of one answer, with all that sets its messages apart from its records."""
        buffer, parts = _joined([answer])
        batch = decode_parts(buffer, parts, self._with_keys, answer.broker_name)
        batch = _replaced(batch, "queueId", pa.repeat(pa.scalar(answer.queue_id, pa.int32()), batch.num_rows))
        if answer.delta:
            batch = _replaced(batch, "queueOffset", pc.add(batch.column("queueOffset"), answer.delta))
        if answer.seen is not None:
            offsets = batch.column("queueOffset")
            before, behind = pc.less(offsets, answer.seen.start), pc.greater_equal(offsets, answer.seen.stop)
            batch = batch.filter(pc.or_(before, behind))
        if answer.tags:
            batch = batch.filter(pc.is_in(batch.column("tags"), value_set=pa.array(sorted(answer.tags))))
        return batch.slice(answer.taken)

    def _shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._shown_topic is None or "topic" not in batch.schema.names:
            return batch
        coded = batch.column("topic").dictionary_encode()  # many rows, few topics
        names = pa.array(map(self._shown_topic, coded.dictionary.to_pylist()), pa.string())
        return _replaced(batch, "topic", names.take(coded.indices))


def _replaced(batch: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    place = batch.schema.get_field_index(name)
    return batch.set_column(place, batch.schema.field(place), column)


def _joined(answers: Sequence[PulledAnswer]) -> tuple[bytes, Parts]:
    """The records of all answers in one buffer."""
    sizes = [len(answer.body) for answer in answers]
    before = np.repeat(np.cumsum([0, *sizes[:-1]]), [len(answer.starts) for answer in answers])
    buffer = answers[0].body if len(answers) == 1 else b"".join([answer.body for answer in answers])
    starts = np.array([start for answer in answers for start in answer.starts], dtype=np.int64)
    parts = examine(buffer, starts + before, None)
    if not parts.fits.all():
        row = int(np.argmin(parts.fits))
        for answer in answers:
            if row < len(answer.starts):
                raise CorruptRecord(f"the record at offset {answer.offsets[row]} of {answer.queue} is not whole")
            row -= len(answer.starts)
    return buffer, parts
