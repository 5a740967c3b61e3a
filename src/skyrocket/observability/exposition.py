"""Metrics as Prometheus reads them: the text format 0.0.4, made when somebody asks.

The text is simple enough to be written here: the usual client library would cost every server more than four megabytes
of memory, for counters that it would have to be told of on the hot path. Tests read what we write with that library.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Distribution(Protocol):
    """Counts by upper bounds in seconds, with one more for all above, and the sum of all times."""

    @property
    def bounds(self) -> Sequence[float]: ...

    @property
    def counts(self) -> Sequence[int]: ...

    @property
    def seconds(self) -> float: ...


class Kind(Enum):
    """What the number does over time."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(slots=True)
class Metric:
    """One name with its numbers, one for each set of labels."""

    name: str
    kind: Kind
    help: str
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)
    histograms: list[tuple[Mapping[str, str], Distribution]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> None:
        self.samples.append((labels, value))

    def add_all(self, distribution: Distribution, **labels: str) -> None:
        """Of a histogram: all its classes."""
        self.histograms.append((labels, distribution))


def single(name: str, kind: Kind, help_text: str, value: float) -> Metric:
    """A metric of one number."""
    metric = Metric(name, kind, help_text)
    metric.add(value)
    return metric


def histogram(name: str, help_text: str, distribution: Distribution) -> Metric:
    """A metric of one histogram."""
    metric = Metric(name, Kind.HISTOGRAM, help_text)
    metric.add_all(distribution)
    return metric


def label(value: bool) -> str:
    """A flag as the value of a label."""
    return "true" if value else "false"


def render(metrics: Iterable[Metric], common: Mapping[str, str]) -> bytes:
    """The page; `common` labels go with every number."""
    lines: list[str] = []
    for metric in metrics:
        lines += (f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind.value}")
        lines += (f"{metric.name}{_labels(common, labels)} {_number(value)}" for labels, value in metric.samples)
        for labels, distribution in metric.histograms:
            lines += _classes(metric.name, {**common, **labels}, distribution)
    return ("\n".join(lines) + "\n").encode()


def _classes(name: str, labels: Mapping[str, str], distribution: Distribution) -> Iterator[str]:
    """Each class holds those of all smaller ones, as Prometheus wants it."""
    total = 0
    bounds = (*(repr(float(bound)) for bound in distribution.bounds), "+Inf")
    for bound, count in zip(bounds, distribution.counts, strict=True):
        total += count
        yield f"{name}_bucket{_labels(labels, {'le': bound})} {total}"
    yield f"{name}_sum{_labels(labels, {})} {_number(distribution.seconds)}"
    yield f"{name}_count{_labels(labels, {})} {total}"


def _labels(common: Mapping[str, str], own: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in (*common.items(), *own.items()))
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
