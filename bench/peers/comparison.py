"""What is compared with Apache RocketMQ, and which ratio is wanted."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bench.load.server_usage import Memory
from bench.peers.raw_pulls import RAW_PULLS
from bench.peers.rocketmq_client import Measured, Phase
from bench.replication.servers import ALONE, ASYNC, SYNC

T = TypeVar("T")


@dataclass(frozen=True)
class ServerResult:
    """One server, measured."""

    name: str
    seconds_to_ready: float
    idle_memory: Memory
    measured: Measured

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "ServerResult":
        """What `dataclasses.asdict` gave."""
        measured = fields["measured"]
        phases = {name: Phase(**phase) for name, phase in measured["phases"].items()}
        return cls(
            fields["name"],
            fields["seconds_to_ready"],
            Memory(**fields["idle_memory"]),
            Measured(phases, Memory(**measured["loaded_memory"])),
        )


@dataclass(frozen=True)
class WithSlave:
    """Sends to a master whose slave follows, or to one that is alone."""

    rate: float
    of_alone: float
    p99_ms: float
    master_cpu_us: float  # per message
    slave_cpu_us: float | None  # None for a master alone


Pair = dict[str, WithSlave]  # by set-up: alone, with an asynchronous and with a synchronous slave


@dataclass(frozen=True)
class Wanted:
    """A bound of the ratio ours ÷ Apache's, or of our own value."""

    at_least: float | None = None
    at_most: float | None = None
    goal: float | None = None

    def met(self, ratio: float) -> bool:
        """Whether the ratio keeps the bound (not the goal, which is beyond)."""
        if self.at_least is not None and ratio < self.at_least:
            return False
        return self.at_most is None or ratio <= self.at_most

    def __str__(self) -> str:
        bound = f"≥ {self.at_least:g} ×" if self.at_least is not None else f"≤ {self.at_most:g} ×"
        return bound + (f" (goal {self.goal:g})" if self.goal is not None else "")


@dataclass(frozen=True)
class Measure(Generic[T]):
    """One line of the comparison."""

    name: str
    unit: str
    value: Callable[[T], float | None]
    wanted: Wanted | None = None
    is_own_bound: bool = False  # it bounds our value, whatever Apache's is


def _phase(name: str, what: Callable[[Phase], float | None]) -> Callable[[ServerResult], float | None]:
    """None for phases that runs of former days do not have."""
    return lambda result: what(phase) if (phase := result.measured.phases.get(name)) else None


MEASURES: tuple[Measure[ServerResult], ...] = (
    Measure("send, 128-byte messages: rate", "msg/s", _phase("send", lambda p: p.rate), Wanted(at_least=1.6, goal=2)),
    Measure("– broker CPU per message", "µs", _phase("send", lambda p: p.cpu_us), Wanted(at_most=0.33, goal=0.25)),
    Measure("– latency, median", "ms", _phase("send", lambda p: p.p50_ms)),
    Measure("– latency, 99 %", "ms", _phase("send", lambda p: p.p99_ms), Wanted(at_most=1.0)),
    Measure("– latency, 99.9 %", "ms", _phase("send", lambda p: p.p999_ms)),
    Measure("push consumer: rate", "msg/s", _phase("consume", lambda p: p.rate), Wanted(at_least=2)),
    Measure("– broker CPU per message", "µs", _phase("consume", lambda p: p.cpu_us), Wanted(at_most=0.6)),
    Measure("raw pulls of 32: rate", "msg/s", _phase(RAW_PULLS, lambda p: p.rate), Wanted(at_least=2)),
    Measure("– broker CPU per message", "µs", _phase(RAW_PULLS, lambda p: p.cpu_us), Wanted(at_most=0.6)),
    Measure("batches of 16: rate", "msg/s", _phase("batch", lambda p: p.rate), Wanted(at_least=1, goal=1.2)),
    Measure("– broker CPU per message", "µs", _phase("batch", lambda p: p.cpu_us), Wanted(at_most=0.7, goal=0.5)),
    Measure("– latency of a batch, 99 %", "ms", _phase("batch", lambda p: p.p99_ms)),
    Measure("private memory, idle", "MB", lambda r: r.idle_memory.anonymous / 1e6, Wanted(at_most=0.25)),
    Measure(
        "private memory, most under load",
        "MB",
        lambda r: r.measured.loaded_memory.anonymous / 1e6,
        Wanted(at_most=0.25),
    ),
    Measure("time to ready", "s", lambda r: r.seconds_to_ready, Wanted(at_most=0.2)),
)


def _setup(setup: str, what: Callable[[WithSlave], float | None]) -> Callable[[Pair], float | None]:
    return lambda pair: what(pair[setup])


PAIR_MEASURES: tuple[Measure[Pair], ...] = (
    Measure("raw sends, master alone: rate", "msg/s", _setup(ALONE, lambda s: s.rate)),
    Measure("– broker CPU per message", "µs", _setup(ALONE, lambda s: s.master_cpu_us)),
    Measure("raw sends, asynchronous slave: rate", "msg/s", _setup(ASYNC, lambda s: s.rate)),
    Measure(
        "– of the master alone",
        "×",
        _setup(ASYNC, lambda s: s.of_alone),
        Wanted(at_least=0.85),
        is_own_bound=True,
    ),
    Measure("– master CPU per message", "µs", _setup(ASYNC, lambda s: s.master_cpu_us)),
    Measure("– slave CPU per message", "µs", _setup(ASYNC, lambda s: s.slave_cpu_us)),
    Measure(
        "raw sends, synchronous slave: rate",
        "msg/s",
        _setup(SYNC, lambda s: s.rate),
        Wanted(at_least=1.0),
    ),
    Measure(
        "– of the master alone",
        "×",
        _setup(SYNC, lambda s: s.of_alone),
        Wanted(at_least=0.5),
        is_own_bound=True,
    ),
    Measure("– master CPU per message", "µs", _setup(SYNC, lambda s: s.master_cpu_us)),
    Measure("– slave CPU per message", "µs", _setup(SYNC, lambda s: s.slave_cpu_us)),
    Measure("– latency, 99 %", "ms", _setup(SYNC, lambda s: s.p99_ms)),
)


@dataclass(frozen=True)
class Compared:
    """A measure with the values of all rounds, in which both servers took turns; None for one that was not run."""

    measure: Measure[Any]
    apaches: tuple[float | None, ...]
    our_values: tuple[float | None, ...]

    @property
    def apache(self) -> float | None:
        """The median of its rounds."""
        return _median(self.apaches)

    @property
    def ours(self) -> float | None:
        """The median of our rounds."""
        return _median(self.our_values)

    @property
    def ratios(self) -> list[float]:
        """Ours in Apache's, of each round."""
        pairs = zip(self.apaches, self.our_values, strict=False)
        return [ours / apache for apache, ours in pairs if ours is not None and apache]

    @property
    def ratio(self) -> float | None:
        """The median of the rounds' ratios: neighbours in time had the same machine, more or less."""
        return _median(self.ratios)

    @property
    def met(self) -> bool | None:
        """None where nothing is wanted or known."""
        judged = self.ours if self.measure.is_own_bound else self.ratio
        if self.measure.wanted is None or judged is None:
            return None
        return self.measure.wanted.met(judged)


def compare(apaches: Sequence[ServerResult], ours: Sequence[ServerResult]) -> list[Compared]:
    """Every measure, round beside round; a server that was not run leaves its column empty."""
    return _compared(MEASURES, apaches, ours)


def compare_pairs(apache: Pair, ours: Pair) -> list[Compared]:
    """The same for masters with their slaves."""
    return _compared(PAIR_MEASURES, [apache] if apache else [], [ours] if ours else [])


def _compared(measures: Sequence[Measure[T]], apaches: Sequence[T], ours: Sequence[T]) -> list[Compared]:
    return [
        Compared(measure, tuple(map(measure.value, apaches)), tuple(map(measure.value, ours))) for measure in measures
    ]


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
