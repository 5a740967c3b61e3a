"""The states of producers, consumers and admins."""

from enum import Enum

from skyrocket.client.errors import ForkedClient, NotRunning


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
