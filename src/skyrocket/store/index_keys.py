"""The index keys of many records at once, found in their properties."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skyrocket.format import index_keys
from skyrocket.format.even_texts import EvenTexts
from skyrocket.format.index_keys import KeyHashes
from skyrocket.format.property_segments import PropertySegments, joined_properties
from skyrocket.store.topic_queue import TopicQueue


def key_hashes(prefixes: NDArray[np.uint64], properties: Sequence[bytes], *, with_tags: bool) -> KeyHashes:
    """The keys of a batch, record by record; `prefixes` are those of its queue (`TopicQueue.index_prefixes`)."""
    return segment_hashes(joined_properties(properties), prefixes, with_tags=with_tags)


def segment_hashes(segments: PropertySegments, prefixes: NDArray[np.uint64], *, with_tags: bool) -> KeyHashes:
    """The same with properties that have been joined."""
    tags = segments.values(b"TAGS") if with_tags else None
    halves = prefixes.view(np.uint32).reshape(-1, 2)
    return index_keys.key_hashes(segments.values(b"UNIQ", b"_KEY"), segments.values(b"KEYS"), tags, halves)


def even_key_hashes(prefixes: NDArray[np.uint64], texts: EvenTexts, *, with_tags: bool) -> KeyHashes:
    """The same for texts of one length."""
    halves = prefixes.view(np.uint32).reshape(-1, 2)
    found = index_keys.even_key_hashes(texts, halves, with_tags=with_tags)
    return key_hashes(prefixes, texts[:], with_tags=with_tags) if found is None else found


def prefixes_of(queues: Sequence[TopicQueue]) -> NDArray[np.uint64]:
    """Of each queue: the hashes of what stands before its keys, and before its tags."""
    return np.array([queue.index_prefixes for queue in queues], dtype=np.uint64)
