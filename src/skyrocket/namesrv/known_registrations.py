"""Registrations that came before. A broker repeats its whole table every 30 s; reading 10,000 topics takes a quarter of
a second, finding out that they are the same takes a millisecond or two. What is new and may be long is read in a
thread, one registration at a time: whoever registers a monster must not keep clients from their routes.
"""

import asyncio
import re
from collections.abc import Callable, Collection
from functools import partial
from hashlib import blake2b
from typing import Final

from skyrocket.namesrv.route_table import BrokerKey
from skyrocket.protocol.bodies.registration import BrokerRegistration, decode_registration, is_packed
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemBusy

_WORTH_IT: Final = 16 << 10  # smaller bodies are read as fast as they are compared
_MAX_WAITING: Final = 64
# RocketMQ: brokers write the present time into this version of theirs, which we do not use.
_NEVER_THE_SAME: Final = re.compile(rb'"mappingDataVersion":\{[^{}]*\}')


class KnownRegistrations:
    """The last registration of every broker, by the hash of its bytes."""

    def __init__(self, live: Collection[BrokerKey]) -> None:
        self._live = live
        self._known: dict[BrokerKey, tuple[bytes, BrokerRegistration]] = {}
        self._reading = asyncio.Lock()
        self._waiting = 0

    async def decode(
        self, key: BrokerKey, body: Body, *, compressed: bool, requester_version: int, max_topics: int
    ) -> BrokerRegistration:
        """The registration; raises MalformedBody or SystemBusy."""
        read = partial(
            decode_registration,
            bytes(body),
            compressed=compressed,
            requester_version=requester_version,
            max_topics=max_topics,
        )
        if len(body) < _WORTH_IT:
            self._known.pop(key, None)
            return await self._in_thread(read) if is_packed(body, compressed=compressed) else read()
        digest = _digest(bytes(body), f"{compressed} {requester_version}")
        known = self._known.get(key)
        if known is not None and known[0] == digest:
            return known[1]
        registration = await self._in_thread(read)
        self._known = {other: pair for other, pair in self._known.items() if other in self._live}
        self._known[key] = (digest, registration)
        return registration

    async def _in_thread(self, read: Callable[[], BrokerRegistration]) -> BrokerRegistration:
        if self._waiting >= _MAX_WAITING:
            raise SystemBusy(f"[OVERLOAD]{self._waiting} registrations wait to be read, try again later")
        self._waiting += 1
        try:
            async with self._reading:
                return await asyncio.to_thread(read)
        finally:
            self._waiting -= 1


def _digest(body: bytes, form: str) -> bytes:
    found = _NEVER_THE_SAME.search(body)
    start, end = found.span() if found is not None else (0, 0)
    view = memoryview(body)
    digest = blake2b(form.encode(), digest_size=16)
    digest.update(view[:start])
    digest.update(view[end:])
    return digest.digest()
