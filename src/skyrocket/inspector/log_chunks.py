"""The records of the log, a chunk at a time: whether they are intact, and what they claim of queues and index."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skyrocket.errors import DataError
from skyrocket.format.compression import plain_body
from skyrocket.format.dispatch_claims import Claimer, Claims, IndexKeys, QueueNumbers
from skyrocket.format.dtypes import Int64s
from skyrocket.format.record import Buffer
from skyrocket.format.record_columns import Parts, PropertyTexts, checksum_problems, examine
from skyrocket.format.sys_flag import COMPRESSED
from skyrocket.offline.log_walk import RecordRun


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record whose layout is intact and whose content is not."""

    physical_offset: int
    size: int
    reason: str
    damaged: bool  # false: the checksum is right, but the body does not inflate


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Everything that one run of records says; damaged records claim nothing."""

    physical_offsets: Int64s
    sizes: Int64s
    store_timestamps: Int64s
    claims: Claims
    keys: IndexKeys
    bad_records: list[BadRecord]
    odd_properties: list[tuple[int, str]]  # physical offset, and what is wrong with the property text


class ChunkReader:
    """Turns runs of records into chunks; numbers every queue that a record names."""

    def __init__(
        self, delay_levels: str, batch_topics: frozenset[str], removed_queues: Mapping[str, int] | None = None
    ) -> None:
        self.numbers = QueueNumbers()
        self._claimer = Claimer(self.numbers, delay_levels, batch_topics, removed_queues=removed_queues or {})

    def chunk(self, run: RecordRun) -> LogChunk:
        """What the records of a run must have caused."""
        damaged = checksum_problems(run.window, run.parts)
        bad = [_bad(run, row, reason, damaged=True) for row, reason in damaged.items()]
        bad += [_bad(run, row, reason, damaged=False) for row, reason in _uninflatable(run, damaged)]
        parts = run.parts
        if damaged:
            parts = examine(run.window, np.delete(parts.positions, list(damaged)), run.physical_offset)
        topics = zip(parts.topic_starts.tolist(), (parts.topic_starts + parts.topic_lengths).tolist(), strict=True)
        topic_numbers = self.numbers.of_topics(run.window[start:end] for start, end in topics)
        records = (parts, PropertyTexts(run.window, parts), topic_numbers)
        return LogChunk(
            physical_offsets=parts.heads["physical_offset"],
            sizes=parts.sizes,
            store_timestamps=parts.heads["store_timestamp"],
            claims=self._claimer.claims(*records),
            keys=self._claimer.keys(*records),
            bad_records=sorted(bad, key=lambda each: each.physical_offset),
            odd_properties=_odd_properties(run.window, parts),
        )


def _bad(run: RecordRun, row: int, reason: str, *, damaged: bool) -> BadRecord:
    return BadRecord(run.physical_offset + int(run.parts.positions[row]), int(run.parts.sizes[row]), reason, damaged)


def _odd_properties(window: Buffer, parts: Parts) -> list[tuple[int, str]]:
    """Records whose property text is not text, or names a property without a value: a reader loses these."""
    found = []
    starts, lengths = parts.properties_starts.tolist(), parts.properties_lengths.tolist()
    for row, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        text = bytes(window[start : start + length])
        reason = ""
        if not text.isascii():
            try:
                text.decode()
            except UnicodeDecodeError as error:
                reason = f"its properties are not text: {error.reason} at byte {error.start} of them"
        if not reason and (
            b"\x01\x02" in text or text.count(b"\x01") != text.rstrip(b"\x02").count(b"\x02") + bool(text)
        ):
            reason = "a property has no value, or no name"
        if reason:
            found.append((int(parts.heads["physical_offset"][row]), reason))
    return found


def _uninflatable(run: RecordRun, damaged: dict[int, str]) -> list[tuple[int, str]]:
    """Records whose body is compressed and does not inflate, and why."""
    parts, found = run.parts, []
    for row in np.flatnonzero((parts.sys_flags & COMPRESSED != 0) & (parts.body_lengths > 0)).tolist():
        start, length = int(parts.body_starts[row]), int(parts.body_lengths[row])
        try:
            if row not in damaged:
                plain_body(run.window[start : start + length], int(parts.sys_flags[row]))
        except DataError as error:
            found.append((row, str(error)))
    return found
