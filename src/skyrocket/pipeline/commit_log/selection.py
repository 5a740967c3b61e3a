"""Which records of a batch are wanted, decided before anything of them is decoded."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyrocket.columns import property_blocks, topics
from skyrocket.format import sys_flag as flags
from skyrocket.format.dtypes import Bools
from skyrocket.format.record import Buffer
from skyrocket.format.record_columns import Parts, examine
from skyrocket.model import property_names

_UNWRAPPED = flags.INNER_BATCH | flags.NEED_UNWRAP


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that must all hold; empty or None: no condition."""

    topics: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    first_time: int | None = None  # store times in milliseconds
    end_time: int | None = None

    @property
    def by_property(self) -> bool:
        return bool(self.tags or self.keys)

    def of_records(self, buffer: Buffer, parts: Parts) -> Parts:
        """The records that may be wanted. Inner batches have properties inside, and pass on topic and time alone."""
        wanted = np.ones(len(parts), dtype=np.bool_)
        if self.first_time is not None:
            wanted &= parts.heads["store_timestamp"] >= self.first_time
        if self.end_time is not None:
            wanted &= parts.heads["store_timestamp"] < self.end_time
        if self.topics:
            names = pa.array([topic.encode() for topic in self.topics], pa.binary())
            wanted &= _bools(pc.is_in(topics(buffer, parts), names))
        parts = _chosen(buffer, parts, wanted)
        if not self.by_property or not len(parts):
            return parts
        blocks = property_blocks(buffer, parts)
        tags = blocks.column(property_names.TAGS)
        keys = blocks.column(property_names.KEYS), blocks.column(property_names.UNIQUE_KEY)
        inside = (parts.sys_flags & _UNWRAPPED) == _UNWRAPPED
        return _chosen(buffer, parts, self._by_property(tags, *keys) | inside)

    def of_rows(self, tags: pa.Array, keys: pa.Array, unique_keys: pa.Array) -> pa.Array:
        """Which decoded messages have these tags and keys."""
        return pa.array(self._by_property(tags, keys, unique_keys))

    def _by_property(self, tags: pa.Array, keys: pa.Array, unique_keys: pa.Array) -> Bools:
        wanted = np.ones(len(tags), dtype=np.bool_)
        if self.tags:
            wanted &= _bools(pc.is_in(tags, pa.array(self.tags, pa.string())))
        if self.keys:
            asked = pa.array(self.keys, pa.string())
            one = _bools(pc.is_in(unique_keys, asked)) | _bools(pc.is_in(keys, asked))
            several = np.flatnonzero(~one & _bools(pc.match_substring(keys, " ")))  # keys are joined by blanks
            texts = keys.take(pa.array(several)).to_pylist()
            one[several] = [not set(self.keys).isdisjoint(text.split(" ")) for text in texts]
            wanted &= one
        return wanted


def _chosen(buffer: Buffer, parts: Parts, wanted: Bools) -> Parts:
    return parts if wanted.all() else examine(buffer, parts.positions[wanted], None)


def _bools(column: pa.Array) -> Bools:
    found: Bools = column.fill_null(False).to_numpy(zero_copy_only=False)
    return found
