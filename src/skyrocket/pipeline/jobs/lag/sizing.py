"""How many threads, consumers and queues a flow of messages needs: the usual formulas, as plain functions.

    threads of a node  = C × (T1 + T2) / T1       C cores, T1 ms of computing and T2 ms of waiting per message
    rate of a node     = threads × 1000 / (T1 + T2)
    nodes              = peak rate / rate of a node
    concurrency        = threads × nodes          normal, delayed and transactional messages
                       = queues                   ordered messages: one at a time per queue; one queue is global order

They are the ideal: begin with fewer threads, measure, then raise them.
"""

import math
from dataclasses import dataclass

from skyrocket.errors import ConfigError


@dataclass(frozen=True)
class Handling:
    """What one message costs a consumer, and what a consumer has."""

    cpu_ms: float  # T1
    io_ms: float = 0.0  # T2
    cores: int = 1  # C, of one node
    threads: int | None = None  # of one node, where they are already chosen

    def __post_init__(self) -> None:
        if not self.cpu_ms > 0 or self.io_ms < 0:
            raise ConfigError(
                f"handling a message takes some computing and no negative waiting, not {self.cpu_ms:g} and "
                f"{self.io_ms:g} ms: measure both, or give --cpu-ms a small number"
            )
        if self.cores < 1 or (self.threads is not None and self.threads < 1):
            raise ConfigError("a consumer has at least one core and one thread")

    @property
    def ms(self) -> float:
        """From the call of the handler to its end."""
        return self.cpu_ms + self.io_ms

    @property
    def threads_per_node(self) -> int:
        """As chosen, else the best: enough to keep all cores busy while others wait."""
        return optimal_threads(self.cores, self.cpu_ms, self.io_ms) if self.threads is None else self.threads

    @property
    def node_rate(self) -> float:
        """Messages per second of one node: no more than its cores can compute, however many threads it has."""
        return min(self.threads_per_node * 1000 / self.ms, self.cores * 1000 / self.cpu_ms)


def optimal_threads(cores: int, cpu_ms: float, io_ms: float) -> int:
    """C × (T1 + T2) / T1, at least one."""
    return max(1, math.floor(cores * (cpu_ms + io_ms) / cpu_ms + 1e-9))


def nodes_needed(peak_rate: float, node_rate: float) -> int:
    """Peak over what one node does, at least one."""
    return max(1, math.ceil(peak_rate / node_rate - 1e-9))


def concurrency(threads_per_node: int, nodes: int, queues: int, *, ordered: bool) -> int:
    """How many messages are handled at the same moment."""
    return queues if ordered else threads_per_node * nodes


def queues_needed(rate: float, handling: Handling, nodes: int, *, ordered: bool) -> int:
    """Ordered: one message at a time per queue. Otherwise each node must have a queue, or it has nothing to do."""
    return max(1, math.ceil(rate * handling.ms / 1000 - 1e-9)) if ordered else nodes


@dataclass(frozen=True)
class Sizing:
    """What a group needs for a topic."""

    rate: float  # messages per second that it must handle
    threads_per_node: int
    node_rate: float
    nodes: int
    queues: int
    concurrency: int
    advice: str


def size(
    peak_rate: float, handling: Handling, queues: int, *, ordered: bool, backlog: int = 0, drain_s: float | None = None
) -> Sizing:
    """For a peak, and for a backlog that must be gone in some time."""
    rate = peak_rate + (backlog / drain_s if drain_s else 0.0)
    nodes = nodes_needed(rate, handling.node_rate)
    wanted = queues_needed(rate, handling, nodes, ordered=ordered)
    threads = handling.threads_per_node
    return Sizing(
        rate,
        threads,
        handling.node_rate,
        nodes,
        wanted,
        concurrency(threads, nodes, max(queues, wanted), ordered=ordered),
        _advice(nodes, threads, queues, wanted, ordered=ordered),
    )


def _advice(nodes: int, threads: int, queues: int, wanted: int, *, ordered: bool) -> str:
    if wanted > queues:
        why = "a queue is handled one message at a time" if ordered else "a consumer without a queue is idle"
        return f"{wanted} queues instead of {queues}: {why}; then {nodes} consumers with {threads} threads"
    return f"{nodes} consumers with {threads} threads; {queues} queues are enough"
