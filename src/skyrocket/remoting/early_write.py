"""Answers that leave before their turn ends: their peer can begin with them while we put the next ones together.

Event loops write when a turn is over, uvloop even what it is given before. A consumer of eight queues would wait for
all eight answers, and we for its next eight requests: each of us on a core of its own, and one of them always idle.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Final, cast

from skyrocket.protocol.command import Body
from skyrocket.remoting.answers import LaterAnswer, LaterRun

EARLY_FROM: Final = 32 << 10  # bytes that are worth a write of their own


def written_now(transport: asyncio.Transport | None, pieces: Sequence[Body | LaterAnswer | LaterRun]) -> bool:
    """Write at once, if the socket is plain and nothing waits to be written before; what it does not take follows.

    No answer that is still to come is among the pieces. False: nothing was written.
    """
    if (
        transport is None
        or transport.is_closing()
        or transport.get_write_buffer_size()
        or transport.get_extra_info("ssl_object") is not None
    ):
        return False
    data = b"".join(cast("Sequence[Body]", pieces))
    try:
        taken = os.write(transport.get_extra_info("socket").fileno(), data)
    except OSError:  # full, or lost: the transport finds out which
        taken = 0
    if taken < len(data):
        transport.write(data[taken:])
    return True
