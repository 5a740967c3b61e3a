"""The states of producers, consumers and admins, what each refuses in which, and `async with` for all of them."""

from abc import ABC, abstractmethod
from enum import Enum
from typing import Final, Self

from skyrocket.client.core.errors import AlreadyStarted, ForkedClient, NotRunning


class State(Enum):
    """In this order, never back."""

    NEW = "not started"
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    FORKED = "of the parent process"


RUNNING: Final = State.RUNNING  # for who asks with every message: an enumeration's members are found slowly


class Startable(ABC):
    """Started by `async with`, and stopped when that ends."""

    _state = State.NEW

    def _check_new(self) -> None:
        if self._state is not State.NEW:
            raise AlreadyStarted(str(self), self._state.value)

    def _check_running(self) -> None:
        if self._state is not State.RUNNING:
            raise ForkedClient(str(self)) if self._state is State.FORKED else NotRunning(str(self), self._state.value)

    @abstractmethod
    async def start(self) -> None:
        """Take up work."""

    @abstractmethod
    async def stop(self) -> None:
        """End it in order."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
