"""What one broker of a set does for all: delivers what waits, ends transactions, revives what was popped.

    master                       always; what it puts goes into its own log
    slave, its master is there   never
    slave, acting                while its set has no master and no smaller id (`enableSlaveActingMaster`); its log
                                 grows by its master's bytes alone, so what it puts "escapes" to another master

Services are written once, as generators: they yield what must be put and are sent what became of it. `put_here` drives
them on a master, without a wait; `put_elsewhere` on an acting slave. What was not taken is not passed, on either.
"""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from skyrocket.errors import SkyrocketError
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import PutResult

T = TypeVar("T")

Puts: TypeAlias = Generator[Sequence[PutMessage], Sequence[PutResult], T]


class OtherBrokers(Protocol):
    """The other sets of the cluster; every wait is bounded."""

    async def put_group(self, messages: Sequence[PutMessage]) -> Sequence[PutResult]:
        """Send messages to masters of other sets; one that no master has taken is SERVICE_NOT_AVAILABLE."""

    async def fetch(self, broker_name: str, topic: str, queue_id: int, offset: int) -> bytes | None:
        """The record at a place of another set, None when it is gone; raises Unreachable."""


class Unreachable(Exception):
    """Nobody of a set answers."""


class SpecialServices:
    """Whether this broker acts as master, and whom it then has."""

    def __init__(self, *, is_master: bool = True) -> None:
        self.acts = False
        self._is_master = is_master
        self.others: OtherBrokers | None = None  # None: there are no name servers to find them by
        self._at_work = 0
        self._began = asyncio.Event()
        self._listeners: list[Callable[[bool], None]] = []

    def act(self, acts: bool) -> None:
        """Begin, or stop as soon as what is in hand is done."""
        if acts == self.acts:
            return
        self.acts = acts
        if acts:
            self._began.set()
        else:
            self._began.clear()
        for listener in self._listeners:
            listener(acts)

    def on_change(self, listener: Callable[[bool], None]) -> None:
        """Have a function called when this broker begins or stops to act."""
        self._listeners.append(listener)

    @property
    def are_here(self) -> bool:
        """Whether this broker does what one of the set does: it is the master, or acts in its place."""
        return self._is_master or self.acts

    async def begin(self) -> OtherBrokers:
        """Wait until this broker acts as master."""
        await self._began.wait()
        assert self.others is not None, "who acts has asked the name servers"
        return self.others

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Around what a service does while this broker acts, its last step among it."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    @property
    def are_over(self) -> bool:
        """Whether this broker does not act, and no service is in the middle of a step any more."""
        return not self.acts and not self._at_work


def put_here(work: Puts[T], put: Callable[[Sequence[PutMessage]], Sequence[PutResult]]) -> T:
    """Do a service's work with one's own log."""
    try:
        messages = next(work)
        while True:
            try:
                results = put(messages)
            except (SkyrocketError, OSError) as error:  # as if the service had called: it may know what to do
                messages = work.throw(error)
            else:
                messages = work.send(results)
    except StopIteration as done:
        result: T = done.value
        return result


async def put_elsewhere(work: Puts[T], others: OtherBrokers) -> T:
    """Do a service's work with the logs of others."""
    try:
        messages = next(work)
        while True:
            messages = work.send(await others.put_group(messages))
    except StopIteration as done:
        result: T = done.value
        return result
