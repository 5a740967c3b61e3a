"""What can go wrong between two peers before an answer is there; every text names the address and the cause."""

from collections.abc import Sequence

from skyrocket.errors import SkyrocketError


class RemotingError(SkyrocketError):
    """No answer came; whether the request was carried out is not known unless the class says so."""

    def __init__(self, address: str, what: str, cause: BaseException | None = None) -> None:
        self.address = address
        self.what = what
        self.__cause__ = cause
        because = "" if cause is None else f": {_named(cause)}"
        super().__init__(f"{address}: {what}{because}")


class ConnectFailed(RemotingError):
    """There is no connection; the request was not sent."""


class ConnectionLost(RemotingError):
    """The connection ended while the answer was awaited."""


class CallTimeout(RemotingError):
    """The answer did not come in time."""


class TooManyCalls(RemotingError):
    """As many calls as allowed wait for answers; this one was not sent."""


class RemotingClosed(RemotingError):
    """This side was closed."""


class NoAddressAnswered(RemotingError):
    """All addresses of a list were tried; `failures` has one error for each."""

    def __init__(self, failures: Sequence[RemotingError]) -> None:
        self.failures = tuple(failures)
        tried = "; ".join(map(str, failures)) or "the list is empty"
        super().__init__(",".join(failure.address for failure in failures), f"no address answered ({tried})")


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
