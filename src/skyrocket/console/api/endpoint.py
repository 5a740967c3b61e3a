"""What an endpoint is: a function with types, put on a path.

    family = Family("Topics")

    @family.get("/api/topics/{topic}")
    async def topic(call: Call) -> TopicPage: ...

    @family.post("/api/topics")
    async def create(call: Call, wanted: NewTopic) -> Done: ...

The second parameter is a dataclass: what a GET reads from the query string, and all others from a JSON body. The answer
is a dataclass too. Both are what `openapi` tells of it.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Final, TypeVar, get_type_hints

from skyrocket.client.admin.admin import Admin
from skyrocket.console.core.parts import Parts
from skyrocket.console.login.accounts import Actor
from skyrocket.console.login.sessions import NeedsLogin, Session
from skyrocket.model.words import Phrase, phrase_of

H = TypeVar("H", bound=Callable[..., Awaitable[Any]])

JSON: Final = ("application/json",)


@dataclass(slots=True)
class Call:
    """One request: whose it is, and what it may use."""

    parts: Parts
    path: Mapping[str, str]
    actor: Actor
    address: str = ""  # of the browser
    session: Session | None = None
    cookie: str | None = None
    new_cookie: str | None = None  # to set; "" removes it
    before: Any = None  # what a change found, for the audit
    after: Any = None  # and what it left; else what it answers

    @property
    def admin(self) -> Admin:
        """In the name of who asks: the console's account for reading, that of the session for changes."""
        return self.actor.admin

    @property
    def now_ms(self) -> int:
        return self.parts.clock.now_ms()

    def check_session(self) -> None:
        """For what goes on after its request; raises NeedsLogin when it may not any more."""
        parts, session = self.parts, self.session
        if parts.settings.anonymous_may_read or session is None:
            return
        is_there = parts.sessions.knows(self.cookie) if session.token is None else parts.tokens.knows(session.token)
        if not is_there:
            raise NeedsLogin("this session has ended: log in again")


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made."""

    done: str  # what, in words
    details: dict[str, str] = field(default_factory=dict)
    phrase: Phrase = field(init=False)  # what the words are made of, for who says them in another language

    def __post_init__(self) -> None:
        object.__setattr__(self, "phrase", phrase_of(self.done))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path and method."""

    family: str
    method: str
    path: str
    handler: Callable[..., Awaitable[Any]]
    wanted: type[Any] | None
    answer: Any
    secret: bool = False  # only for those who have logged in, and in their name, also as a GET
    is_open: bool = False  # for everybody, also as a POST: the login itself
    media: Sequence[str] = JSON  # what the answer may be

    @property
    def changes(self) -> bool:
        """Whether it changes something: it needs a session then, and is written down."""
        return self.method != "GET"

    @property
    def only_looks(self) -> bool:
        """Whether it only says what a change would do."""
        return self.path.endswith("/preview")


class Family:
    """Endpoints of one kind of thing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.endpoints: list[Endpoint] = []

    def get(
        self, path: str, *, secret: bool = False, is_open: bool = False, media: Sequence[str] = JSON
    ) -> Callable[[H], H]:
        """Reads; `media` is of what is not JSON."""
        return self._on("GET", path, secret=secret, is_open=is_open, media=media)

    def post(self, path: str, *, is_open: bool = False) -> Callable[[H], H]:
        """Creates, or does."""
        return self._on("POST", path, is_open=is_open)

    def put(self, path: str) -> Callable[[H], H]:
        """Changes what is there."""
        return self._on("PUT", path)

    def delete(self, path: str) -> Callable[[H], H]:
        """Removes."""
        return self._on("DELETE", path)

    def _on(self, method: str, path: str, **options: Any) -> Callable[[H], H]:
        def put(handler: H) -> H:
            hints = get_type_hints(handler)
            names = list(signature(handler).parameters)
            wanted = hints[names[1]] if len(names) > 1 else None
            self.endpoints.append(Endpoint(self.name, method, path, handler, wanted, hints["return"], **options))
            return handler

        return put
