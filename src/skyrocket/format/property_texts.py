"""Single properties of many records, found one name at a time in their joined property blocks."""

import re

import numpy as np

from skyrocket.format.record_columns import Parts
from skyrocket.format.text_hashes import Texts


class PropertyTexts:
    """The property blocks of records that lie in one buffer."""

    def __init__(self, buffer: bytes, parts: Parts) -> None:
        starts, lengths = parts.properties_starts, parts.properties_lengths
        blocks = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
        self._joined = b"\x02" + b"\x02".join([buffer[start:end] for start, end in blocks]) + b"\x02"
        self._block_starts = np.cumsum(lengths + 1) - lengths

    def texts(self, name: str) -> Texts:
        """The values of a property; an empty value does not exist, the last of several counts."""
        pattern = re.compile(b"\x02" + re.escape(name.encode()) + b"\x01([^\x02]+)")
        spans = [match.span(1) for match in pattern.finditer(self._joined)]
        starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        records = np.searchsorted(self._block_starts, starts, side="right") - 1
        last = np.append(records[1:] != records[:-1], True)[: len(records)]
        return Texts(self._joined, starts[last], ends[last], records[last])
