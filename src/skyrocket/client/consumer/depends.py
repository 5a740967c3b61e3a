"""What a handler needs besides its message: objects of the application, made for each call and cleaned up after it.

    async def session() -> AsyncIterator[Session]:
        async with sessions() as session:
            yield session

    @consumer.on("Orders")
    async def paid(body: Order, session: Annotated[Session, Depends(session)]) -> None: ...

A dependency is a function, a generator that yields once, or an async one of either; it takes what handlers take, other
dependencies included. Within one call each is made once. What a generator does behind its `yield` runs when the handler
has ended, and sees its exception.
"""

import contextlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def Depends(make: Callable[..., Any]) -> Any:  # noqa: N802 - as users of FastStream and FastAPI know it
    """A parameter that this function makes; as `Annotated[T, Depends(f)]`, or as the parameter's default.

    Any, so that type checkers take it for a default of every type.
    """
    if not callable(make):
        raise TypeError(f"Depends({make!r}): give a function that makes the value")
    return Dependency(make)


@dataclass(frozen=True, slots=True)
class Dependency:
    """What `Depends` notes at a parameter."""

    make: Callable[..., Any]

    @property
    def needs_loop(self) -> bool:
        """A plain handler runs in a thread, where nobody could await this."""
        return inspect.iscoroutinefunction(self.make) or inspect.isasyncgenfunction(self.make)


class Made:
    """What was made for one call; closed when it ends."""

    def __init__(self) -> None:
        self.values: dict[Callable[..., Any], Any] = {}

    def enter(self, stack: contextlib.ExitStack, make: Callable[..., Any], given: dict[str, Any]) -> Any:
        """In a thread."""
        if inspect.isgeneratorfunction(make):
            made = stack.enter_context(contextlib.contextmanager(make)(**given))
        else:
            made = make(**given)
        self.values[make] = made
        return made

    async def enter_async(
        self, stack: contextlib.AsyncExitStack, make: Callable[..., Any], given: dict[str, Any]
    ) -> Any:
        """On the loop."""
        if inspect.isasyncgenfunction(make):
            made = await stack.enter_async_context(contextlib.asynccontextmanager(make)(**given))
        elif inspect.isgeneratorfunction(make):
            made = stack.enter_context(contextlib.contextmanager(make)(**given))
        else:
            made = make(**given)
            if inspect.isawaitable(made):
                made = await made
        self.values[make] = made
        return made
