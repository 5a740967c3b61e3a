"""Why an engine cannot be reached, in words: its library tells a class and a number of the kernel's, or nothing."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Final

from skyrocket.remoting.addresses import Address
from skyrocket.remoting.errors import plainly

_CONNECT_SECONDS: Final = 1.0
_NEXT_STEP: Final = "start it, open its port, or correct controllerStore"


def not_reached(reasons: Sequence[str]) -> str:
    """For people: what each server said, and what to do."""
    return f"{'; '.join(reasons)}; {_NEXT_STEP}"


def innermost_reason(error: BaseException) -> str:
    """The kernel's reason, which libraries hide behind errors of their own."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OSError) and inner.errno is not None:
            return plainly(inner)
        inner = inner.__cause__ or inner.__context__
    return plainly(error)


async def why_unreachable(hosts: Sequence[str]) -> str | None:
    """What hinders a connection to each of them, and what to do; None when one takes connections."""
    reasons: list[str] = []
    for host in hosts:
        try:
            # In a thread: a name that cannot be resolved would outlive the loop's time-out, and complain on its own.
            await asyncio.wait_for(asyncio.to_thread(_connect, Address.parse(host)), _CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            reasons.append(f"{host}: {plainly(error)}")
        else:
            return None
    return not_reached(reasons)


def _connect(address: Address) -> None:
    socket.create_connection((address.host, address.port), _CONNECT_SECONDS).close()
