"""What a feature of the broker offers; `broker.py` loops over a list of them and knows none by name.

    class LocksFeature(Feature):
        def __init__(self, parts: Parts) -> None: ...       takes the shared parts, builds its own from them
        def handlers(self) -> Handlers: ...                  which requests it answers
        def services(self) -> Iterable[Work]: ...            loops that run while the broker serves
        def tables(self) -> Iterable[SavedTable]: ...        what is saved for it, soon after a change
        def metrics(self) -> Iterable[Metric]: ...           for /metrics
        def follows(self) -> Iterable[Follow]: ...           settings whose change takes effect at once
        def copied(self) -> Iterable[Copied]: ...            what a slave takes over from its master
        def copied_tables(self) -> Iterable[CopiedTable]: ...    the same for what comes in pages

A feature overrides what it needs; it is one folder, and one line in `broker/features.py`. Features never import each
other. What one needs of another is an event (a listener of the store or a table, a followed setting, a callback of the
server) or a small protocol that lies below both (`rules/`).

    open     the store is open, nobody is served          started    clients are served
    stopping the broker is about to leave                 let_go     answer those who wait
    close    nobody is served any more                    in reverse order of the list, as all on the way down
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from skyrocket.broker.state.saved_table import SavedTable
from skyrocket.observability.exposition import Metric
from skyrocket.observability.health import Check as Trouble
from skyrocket.observability.http_endpoint import Page
from skyrocket.protocol.requests.header import Request
from skyrocket.remoting.router import Check
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers


class Follow(NamedTuple):
    """Call `apply` when one of these settings (RocketMQ's keys) has another value."""

    apply: Callable[[], None]
    keys: tuple[str, ...]


class Copied(NamedTuple):
    """What a slave asks its master for, and what takes over the body of the answer; may raise DataError."""

    request: Request[Any]
    take: Callable[[bytes], None]
    is_needed: bool = False  # every master has it: a slave that does not get it is not in order
    after_log: bool = False  # it says what was put into the log: taken over when the slave has that log


class Pages(Protocol):
    """Asks until a table is whole: `skyrocket.protocol.requests.table_pages`."""

    @property
    def request(self) -> Request[Any] | None: ...

    def take(self, answer: Any, body: bytes, /) -> None: ...

    @property
    def table(self) -> Any: ...


class CopiedTable(NamedTuple):
    """A table of the master that every one has, and what takes it over when it is whole."""

    pages: Callable[[], Pages]
    take: Callable[[Any], None]


class GivenBack(NamedTuple):
    """What a slave tells its master when that is there again, and what to do when the master has answered."""

    request: Request[Any]
    done: Callable[[], None]


def asked_when_needed() -> None:
    """For settings that are read each time they count: nothing is to be done when they change."""


class Feature:
    """One thing that a broker can do; every method may be left as it is."""

    def checks(self) -> Iterable[Check]:
        """What the router asks before every handler."""
        return ()

    def handlers(self) -> Handlers:
        """Which requests it answers."""
        return ()

    def services(self) -> Iterable[Work]:
        """Loops that run while the broker serves."""
        return ()

    def tables(self) -> Iterable[SavedTable[Any]]:
        """What is saved for it."""
        return ()

    def copied(self) -> Iterable[Copied]:
        """What a slave takes over from its master."""
        return ()

    def copied_tables(self) -> Iterable[CopiedTable]:
        """What a slave takes over page by page, before all else."""
        return ()

    def given_back(self) -> Iterable[GivenBack]:
        """What a slave has learned while its master was gone; asked after all was copied."""
        return ()

    def taken_back(self) -> Iterable[Copied]:
        """What a master that comes back takes over from its slaves, if theirs is newer."""
        return ()

    def follows(self) -> Iterable[Follow]:
        """Settings that take effect while the broker runs."""
        return ()

    def metrics(self) -> Iterable[Metric]:
        """As they are now."""
        return ()

    def runtime_rows(self) -> Mapping[str, str]:
        """Rows of GET_BROKER_RUNTIME_INFO."""
        return {}

    def troubles(self) -> Mapping[str, Trouble]:
        """What must be well for the broker to be ready, by name."""
        return {}

    def pages(self) -> Mapping[str, Callable[[], Page]]:
        """Pages of the HTTP port, by path."""
        return {}

    async def open(self) -> None:
        """The store is open, nobody is served yet."""

    async def started(self) -> None:
        """Clients are served."""

    async def stopping(self) -> None:
        """The broker is about to leave; clients are still served."""

    def break_off(self) -> None:
        """Leave everybody without a word, as a killed process does."""

    def let_go(self) -> None:
        """Answer those who wait: the server is about to stop."""

    async def close(self) -> None:
        """Nobody is served any more; the store is still open."""
