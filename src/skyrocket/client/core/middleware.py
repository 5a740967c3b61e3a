"""Middleware: a function around every call of a handler and around every send, for both sides the same class.

    class Timing(Middleware):
        async def consume(self, call: ConsumeContext, proceed: Proceed) -> Any:
            began = time.monotonic()
            try:
                return await proceed()
            finally:
                log.info("%s took %.3f s", call.handler, time.monotonic() - began)

    consumer.use(Timing())
    producer.use(Timing())

The first that is used is the outermost. What `proceed` raises may be changed, kept back or let through; not calling it
means that the handler does not run, or that nothing is sent. Hooks (hooks.py) only look on, and cost less.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.hooks import ConsumeContext
from skyrocket.client.core.message import Message

Proceed: TypeAlias = Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class Sending:
    """One call of `send`, `send_batch`, `send_oneway` or `request`; `messages` may be replaced before `proceed`."""

    group: str
    messages: Sequence[Message]
    kind: str  # the method's name


class Middleware:
    """Override what is of interest; each must await `proceed()` and return what it returns."""

    async def consume(self, call: ConsumeContext, proceed: Proceed) -> Any:
        """Around a handler."""
        return await proceed()

    async def send(self, sending: Sending, proceed: Proceed) -> Any:
        """Around a send with all its attempts."""
        return await proceed()


def checked(middleware: Sequence[Middleware]) -> Sequence[Middleware]:
    """The same; raises WrongUse for what could not stand around a call: a class, a function, a hook."""
    for each in middleware:
        if isinstance(each, type):
            raise WrongUse(f"use({each.__name__}): give an object, as use({each.__name__}())")
        if not callable(getattr(each, "consume", None)) or not callable(getattr(each, "send", None)):
            raise WrongUse(f"use({each!r}): give a Middleware, an object with `consume` and `send`")
    return middleware


def through(around: Sequence[Callable[[Any, Proceed], Awaitable[Any]]], context: object, innermost: Proceed) -> Proceed:
    """`innermost` with all of these around it, the first outermost."""
    proceed = innermost
    for each in reversed(around):
        proceed = _one(each, context, proceed)
    return proceed


def _one(around: Callable[[Any, Proceed], Awaitable[Any]], context: object, proceed: Proceed) -> Proceed:
    return lambda: around(context, proceed)
