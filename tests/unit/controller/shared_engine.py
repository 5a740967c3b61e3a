"""An engine in memory that several controllers share; a test expires sessions, delays what is heard, fails writes."""

from collections.abc import Mapping

from skyrocket.controller.engines.engine import Document, EngineUnavailable, Member, Overtaken, Told
from skyrocket.controller.engines.member_line import standing_of


class SharedEngine:
    """The line of members and the documents; versions and numbers count up together."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.line: dict[int, Member] = {}
        self.revision = 0
        self._told: dict[int, Told] = {}
        self._deaf: set[str] = set()

    def seat(self) -> "Seat":
        """For one controller."""
        return Seat(self)

    def expire(self, controller_id: str, *, unheard: bool = False) -> None:
        """End the session of a controller; `unheard`: it does not know, because its watch is late."""
        if unheard:
            self._deaf.add(controller_id)
        for number in [each for each, member in self.line.items() if member.controller_id == controller_id]:
            member = self.line.pop(number)
            told = self._told.pop(number)
            if member.controller_id not in self._deaf:
                told(standing_of(self.line, None))
        self._tell()

    def joined(self, member: Member, told: Told) -> int:
        self._deaf.discard(member.controller_id)
        self.revision += 1
        self.line[self.revision] = member
        self._told[self.revision] = told
        self._tell()
        return self.revision

    def left(self, number: int) -> None:
        self.line.pop(number, None)
        self._told.pop(number, None)
        self._tell()

    def _tell(self) -> None:
        for number, told in list(self._told.items()):
            told(standing_of(self.line, number))


class Seat:
    """The engine as one controller has it."""

    description = "an engine in memory"

    def __init__(self, shared: SharedEngine) -> None:
        self._shared = shared
        self._number: int | None = None
        self.fails_before = False
        self.fails_after = False
        self.reads = 0

    async def join(self, me: Member, told: Told) -> None:
        self._number = self._shared.joined(me, told)

    async def documents(self) -> Mapping[str, Document]:
        self.reads += 1
        return dict(self._shared.documents)

    async def write(self, leadership: int, name: str, content: bytes | None, version: int | None) -> int | None:
        shared = self._shared
        if self.fails_before:
            raise EngineUnavailable("lost on the way")
        held = shared.documents.get(name)
        if leadership != min(shared.line, default=None) or version != (None if held is None else held.version):
            raise Overtaken(name)
        shared.revision += 1
        if content is None:
            del shared.documents[name]
        else:
            shared.documents[name] = Document(content, shared.revision)
        if self.fails_after:
            raise EngineUnavailable("the answer was lost")
        return None if content is None else shared.revision

    async def close(self) -> None:
        if self._number is not None:
            self._shared.left(self._number)
            self._number = None
