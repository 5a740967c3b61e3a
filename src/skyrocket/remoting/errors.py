"""What can go wrong between two peers before an answer is there; every text names the address and the cause."""

import errno
import re
import socket
from collections.abc import Sequence
from typing import Final

from skyrocket.errors import SkyrocketError

# What an operator can look at, instead of the name of a Python class and a number of the kernel's.
_PLAIN: Final = {
    errno.ECONNREFUSED: "nothing listens there",
    errno.EHOSTUNREACH: "the host cannot be reached from here",
    errno.ENETUNREACH: "the network cannot be reached from here",
    errno.ETIMEDOUT: "no answer in time: is it a wrong address, or a firewall?",
    errno.ECONNRESET: "the other side reset the connection",
    errno.EPIPE: "the other side closed the connection",
}


class RemotingError(SkyrocketError):
    """No answer came; whether the request was carried out is not known unless the class says so."""

    def __init__(self, address: str, what: str, cause: BaseException | None = None) -> None:
        self.address = address
        self.what = what
        self.__cause__ = cause
        because = "" if cause is None else f": {plainly(cause)}"
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


def plainly(error: BaseException) -> str:
    """The cause in words; what has no words of ours keeps its class and text."""
    inner = getattr(error, "reason", None)
    if isinstance(inner, BaseException):  # urllib's errors have the kernel's inside
        return plainly(inner)
    if isinstance(error, socket.gaierror):
        return f"the host's name is not known here ({error.strerror})"
    if isinstance(error, TimeoutError) and not str(error):
        return _PLAIN[errno.ETIMEDOUT]
    # A name with several addresses has an error of each in one text.
    numbers = {int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error))}
    known = [_PLAIN[number] for number in sorted(numbers) if number in _PLAIN]
    if isinstance(error, OSError) and known and len(known) == len(numbers):
        return ", or ".join(known)
    if type(error) is ConnectionError and str(error):
        return str(error)  # words of ours
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
