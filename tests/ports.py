"""Ports for servers that must know theirs before they start, or have the same again after a kill.

They lie below those that the kernel gives to connections, or one of these might take a port while its server is away,
and below those that brokers choose for themselves. Processes that test side by side choose among different ones.
"""

import contextlib
import os
import random
import socket
from collections import deque
from typing import Final

_APART: Final = 4
_SHARES: Final = 16
_PORTS: Final = range(12_000, 20_000, _APART)
# A broker also takes the port two below for urgent requests, and the next one for its slaves.
_NEIGHBOURS: Final = (-2, 0, 1)

_chosen_lately: Final[deque[int]] = deque(maxlen=64)


def free_port() -> int:
    """A port that is free now, as are those that a broker takes beside its own."""
    own = _PORTS[os.getpid() % _SHARES :: _SHARES]
    for port in random.sample(own, len(own)):
        if port in _chosen_lately:
            continue
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for distance in _NEIGHBOURS:
                held.enter_context(socket.create_server(("127.0.0.1", port + distance)))
            _chosen_lately.append(port)
            return port
    raise AssertionError(f"no port is free between {_PORTS.start} and {_PORTS.stop}")
