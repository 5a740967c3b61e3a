"""What controllers need of an engine: documents with versions, and one leader at a time among those who joined.

    join(me, told)      from now on `told` hears every change of our standing, in the event loop's thread
    documents()         all of them, as they are after every write of every leader before us
    write(…)            one document, if its version is still the one that we know and we still lead; else it raises

Both conditions are checked by the engine in one step with the write. So it does not matter whether a leader knows
already that it leads no more: after the engine has given the lead to another, no write of the old leader gets through.
Whoever cannot reach its engine does not lead; it hears a standing without a leader. Who stands still hears nothing:
so a standing says how long it can be relied upon, and reads are answered no longer than that.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias

from skyrocket.errors import SkyrocketError


class Member(NamedTuple):
    """A controller that takes part."""

    controller_id: str
    address: str


class Standing(NamedTuple):
    """Who leads. `leadership` is the number under which we do, larger than every leader's before; None: we do not."""

    leadership: int | None = None
    leader: Member | None = None
    members: tuple[Member, ...] = ()
    trouble: str | None = None  # why there is no leader, for people
    sure_until: float | None = None  # monotonic; nobody else can lead before, if we do. None: without end


class Document(NamedTuple):
    """A replica set as bytes; the version is the engine's, and changes with every write."""

    content: bytes
    version: int


class EngineError(SkyrocketError):
    """The engine did not do it."""


class EngineUnavailable(EngineError):
    """It did not answer. A write may have happened or not: read again before the next."""


class Overtaken(EngineError):
    """Nothing was written: the document has another version, or another controller leads."""


Told: TypeAlias = Callable[[Standing], None]


class Engine(Protocol):
    """One place of documents, as one controller uses it."""

    description: str  # for people: what it is and where

    async def join(self, me: Member, told: Told) -> None:
        """Take part until `close`. Returns at once; an engine that cannot be reached is tried again for ever."""
        ...

    async def documents(self) -> Mapping[str, Document]:
        """All documents by name; raises EngineUnavailable. Only a leader asks."""
        ...

    async def write(self, leadership: int, name: str, content: bytes | None, version: int | None) -> int | None:
        """Write or, without content, remove a document; a version of None means that there is none yet.

        Returns the new version, None after a removal. Raises Overtaken or EngineUnavailable.
        """
        ...

    async def close(self) -> None:
        """Take part no more: another may lead at once."""
        ...
