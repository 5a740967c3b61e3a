"""Latencies in logarithmic buckets, as HDR histograms keep them: every value within 0.8 %, merged by adding.

A histogram of our own and not a package, because it is one numpy expression: latencies are collected in a list, which
costs a load generator least, and sorted into buckets some thousand at a time.
"""

from collections.abc import Mapping, Sequence

import numpy as np

_SUB_BUCKETS = 128  # of each power of two: a bucket's width is at most 1/128 of its value
_POWERS = 40  # nanoseconds up to 18 minutes
_SIZE = _SUB_BUCKETS * _POWERS


class Histogram:
    """Counts of latencies, given in seconds and kept in nanoseconds."""

    def __init__(self) -> None:
        self._counts = np.zeros(_SIZE, dtype=np.int64)
        self._largest = 0.0

    def __len__(self) -> int:
        return int(self._counts.sum())

    def add(self, seconds: Sequence[float]) -> None:
        """Count these latencies."""
        if not seconds:
            return
        values = np.maximum(np.asarray(seconds, dtype=np.float64) * 1e9, 1.0)
        fraction, power = np.frexp(values)  # fraction in [0.5, 1)
        bucket = (power - 1) * _SUB_BUCKETS + ((fraction - 0.5) * 2 * _SUB_BUCKETS).astype(np.int64)
        self._counts += np.bincount(np.clip(bucket, 0, _SIZE - 1), minlength=_SIZE)
        self._largest = max(self._largest, float(values.max()) / 1e9)

    def percentile(self, percent: float) -> float:
        """Seconds that so many percent of the latencies do not exceed (the upper edge of the bucket); 0 without any."""
        total = len(self)
        if not total:
            return 0.0
        rank = max(int(np.ceil(total * percent / 100)), 1)
        bucket = int(np.searchsorted(np.cumsum(self._counts), rank))
        return min(_upper_edge(bucket), self._largest)

    @property
    def largest(self) -> float:
        """The longest latency, exactly."""
        return self._largest

    def merge(self, other: "Histogram") -> None:
        """Count what the other has counted too."""
        self._counts += other._counts
        self._largest = max(self._largest, other._largest)

    def as_json(self) -> dict[str, object]:
        """Only the buckets that are not empty."""
        filled = np.flatnonzero(self._counts)
        return {"buckets": {str(at): int(self._counts[at]) for at in filled}, "largest": self._largest}

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> "Histogram":
        """What `as_json` gave."""
        histogram = cls()
        buckets, largest = fields["buckets"], fields["largest"]
        if not isinstance(buckets, dict) or not isinstance(largest, int | float):
            raise TypeError("no histogram")
        for at, count in buckets.items():
            histogram._counts[int(at)] = count
        histogram._largest = float(largest)
        return histogram


def _upper_edge(bucket: int) -> float:
    power, part = divmod(bucket, _SUB_BUCKETS)
    return float(2.0**power * (1 + (part + 1) / _SUB_BUCKETS)) / 1e9
