"""The queue entries of the records of client batches, all at once."""

from itertools import repeat
from typing import Final

import numpy as np

from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.queue_entry import ENTRY, ENTRY_DTYPE
from skyrocket.store.record_run import RecordRun
from skyrocket.store.tags_code import TagsCoder

_TAGS: Final = b"TAGS"
_pack = ENTRY.pack
_join = b"".join


def entries_of(run: RecordRun, tags: TagsCoder) -> bytes:
    """The bytes of the entries, in the order of the records."""
    texts = run.properties
    if not isinstance(texts, EvenTexts):
        codes = map(tags.code, texts) if _join(texts).find(_TAGS) >= 0 else repeat(0)  # one look at all of them
        return _join(map(_pack, run.starts, run.sizes, codes))
    entries = np.empty(run.count, dtype=ENTRY_DTYPE)
    entries["physical_offset"] = np.arange(run.starts[0], run.end_offset, run.sizes[0])
    entries["size"] = run.sizes[0]
    entries["tags_code"] = _codes(texts, tags)
    return entries.tobytes()


def _codes(texts: EvenTexts, tags: TagsCoder) -> int | list[int]:
    """The tags codes: one for all, if all have the same tags in the same place."""
    found = texts.joined.count(_TAGS)
    if not found:
        return 0
    first = texts[0]
    at = first.find(_TAGS)
    end = first.find(b"\x02", at)
    # As many as there are texts, and all have one there: none has a second one elsewhere.
    if found == len(texts) and at >= 0 and texts.all_have(max(at - 1, 0), len(first) if end < 0 else end + 1):
        return tags.code(first)
    return list(map(tags.code, texts[:]))
