"""Two machines on one: a part of the cores for the master and its senders, the rest for the slave and its readers.

With every process on all cores the senders lose what the slave and its reader take of them, and nothing is learned of
the master. On cores of its own it loses only what the slave asks of it.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cores:
    """Who runs where."""

    master: frozenset[int]  # and the load
    slave: frozenset[int]  # and its reader

    @property
    def are_apart(self) -> bool:
        return not self.master & self.slave


def shared() -> Cores:
    """Everyone may run everywhere."""
    every = frozenset(os.sched_getaffinity(0))
    return Cores(every, every)


def apart() -> Cores | None:
    """Half of them each; None where there is but one."""
    every = sorted(os.sched_getaffinity(0))
    half = len(every) // 2
    return Cores(frozenset(every[:half]), frozenset(every[half:])) if half else None


@contextlib.contextmanager
def children_on(cores: frozenset[int]) -> Iterator[None]:
    """Processes that this thread starts meanwhile stay on these cores; so does the thread, until the end."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def move(pid: int, cores: frozenset[int]) -> None:
    """All threads of a running process; those that they start later go with them."""
    for _ in range(2):  # once more for a thread that was started meanwhile
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.sched_setaffinity(int(thread.name), cores)
