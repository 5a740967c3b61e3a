"""Registrations that came before. A broker repeats its whole table every 30 s; reading 10,000 topics takes a quarter of
a second in which nobody else is answered, finding out that they are the same takes a millisecond or two.
"""

import re
from collections.abc import Collection
from hashlib import blake2b
from typing import Final

from skyrocket.namesrv.route_table import BrokerKey
from skyrocket.protocol.bodies.registration import BrokerRegistration, decode_registration
from skyrocket.protocol.command import Body

_WORTH_IT: Final = 16 << 10  # smaller bodies are read as fast as they are compared
# RocketMQ: brokers write the present time into this version of theirs, which we do not use.
_NEVER_THE_SAME: Final = re.compile(rb'"mappingDataVersion":\{[^{}]*\}')


class KnownRegistrations:
    """The last registration of every broker, by the hash of its bytes."""

    def __init__(self, live: Collection[BrokerKey]) -> None:
        self._live = live
        self._known: dict[BrokerKey, tuple[bytes, BrokerRegistration]] = {}

    def decode(self, key: BrokerKey, body: Body, *, compressed: bool, requester_version: int) -> BrokerRegistration:
        """The registration; raises MalformedBody."""
        if len(body) < _WORTH_IT:
            self._known.pop(key, None)
            return decode_registration(body, compressed=compressed, requester_version=requester_version)
        digest = _digest(bytes(body), f"{compressed} {requester_version}")
        known = self._known.get(key)
        if known is not None and known[0] == digest:
            return known[1]
        registration = decode_registration(body, compressed=compressed, requester_version=requester_version)
        self._known = {other: pair for other, pair in self._known.items() if other in self._live}
        self._known[key] = (digest, registration)
        return registration


def _digest(body: bytes, form: str) -> bytes:
    found = _NEVER_THE_SAME.search(body)
    start, end = found.span() if found is not None else (0, 0)
    view = memoryview(body)
    digest = blake2b(form.encode(), digest_size=16)
    digest.update(view[:start])
    digest.update(view[end:])
    return digest.digest()
