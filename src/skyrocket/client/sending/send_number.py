"""Numbered sends: a producer's id and a number in two properties, so that a broker knows a retry when it sees one.

Our brokers answer a repeated number with the receipt of the first message, inside a window; all others store the
properties and ignore them.
"""

import itertools
import os
from typing import NamedTuple

from skyrocket.model.property_names import SEND_PRODUCER_ID, SEND_SEQUENCE


class SendNumber(NamedTuple):
    """One message of one producer, the same for all attempts to send it."""

    producer_id: str
    sequence: int

    def properties(self) -> dict[str, str]:
        return {SEND_PRODUCER_ID: self.producer_id, SEND_SEQUENCE: str(self.sequence)}


class SendNumbers:
    """The numbers of one producer's life: after a restart it is another producer."""

    def __init__(self) -> None:
        self._producer_id = os.urandom(16).hex()
        self._next = itertools.count(1)

    def next(self) -> SendNumber:
        return SendNumber(self._producer_id, next(self._next))
