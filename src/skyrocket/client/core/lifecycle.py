"""The states of producers, consumers and admins, and `async with` for all of them."""

from enum import Enum
from typing import Self

from skyrocket.client.core.errors import ForkedClient, NotRunning


class State(Enum):
    """In this order, never back."""

    NEW = "not started"
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    FORKED = "of the parent process"


def not_running(what: str, state: State) -> NotRunning | ForkedClient:
    """What to raise when something is used that does not run."""
    return ForkedClient(what) if state is State.FORKED else NotRunning(what, state.value)


class Startable:
    """Started by `async with`, and stopped when that ends."""

    async def start(self) -> None:
        """Take up work."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End it in order."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
