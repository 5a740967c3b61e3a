"""The order in which a Java HashMap gives its keys: the order of extFields on the wire.

    bucket = (h ^ h >>> 16) & (capacity - 1)      h = String.hashCode of the key

Buckets ascend; within a bucket keys stand as they were put in. The table doubles when it is more than three
quarters full. RocketMQ makes the map with room for 16 from a header class, and for 256 when a single field was
added before that: answers to sends, signed requests, requests with `ReqT` or `_UNIQUE_KEY_QUERY`.
"""

from collections.abc import Iterable
from functools import lru_cache

FROM_HEADER = 16
FROM_SINGLE_FIELD = 256


def java_map_order(keys: Iterable[str], capacity: int = FROM_HEADER) -> list[str]:
    """The keys, given in the order in which they are put in, as a HashMap of that initial capacity gives them."""
    distinct = list(dict.fromkeys(keys))
    while len(distinct) > fill_limit(capacity):
        capacity *= 2
    return bucket_order(distinct, capacity)


def fill_limit(capacity: int) -> int:
    """How many keys a table holds before it doubles."""
    return capacity * 3 // 4


def bucket_order(keys: Iterable[str], capacity: int) -> list[str]:
    """Keys in the order in which Java walks a table of this capacity that does not grow."""
    return sorted(keys, key=lambda key: _spread(key) & (capacity - 1))


@lru_cache(maxsize=4096)
def _spread(key: str) -> int:
    h = 0
    units = key.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        h = (31 * h + (high << 8 | low)) & 0xFFFFFFFF
    return h ^ h >> 16
