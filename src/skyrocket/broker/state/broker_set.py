"""The set that a broker belongs to: brokers of one name, of which one is the master."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any


class BrokerSet:
    """Who copies from where; registration learns it from the name servers, replication lives by it."""

    def __init__(self, ha_address: str) -> None:
        self.ha_address = ha_address  # where this broker offers its own log; as name servers are told
        self.master_address: str | None = None  # of the set's master, once a slave has heard of it
        self.master_ha_address: str | None = None
        self.has_controller = False  # name servers may not know the newest master
        self.master_flush_offset = 0  # what of its log the master had on disk when a slave last heard of it
        self._is_looking = False
        self._online = asyncio.Event()
        self._online.set()
        self._listeners: list[Callable[[], None]] = []
        self._helpers: list[Callable[[], None]] = []

    # ── before the others know of this broker ────────────────────────────────────────────────────────────────────────

    @property
    def is_isolated(self) -> bool:
        """Whether this broker must hear its set first: name servers do not know of it, and it delivers nothing."""
        return not self._online.is_set()

    def isolate(self) -> None:
        """Wait until this broker was brought online."""
        self._online.clear()

    def bring_online(self) -> None:
        """Be known to the name servers, now, and do what a broker does by itself."""
        self._online.set()
        self.ask()

    def when_online(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], Coroutine[Any, Any, None]]:
        """A loop that begins when this broker is online."""

        @wraps(work)
        async def begin() -> None:
            await self._online.wait()
            await work()

        return begin

    # ── where the master is ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_looking(self) -> bool:
        """Whether a slave does not reach its master, and wants to hear of it soon."""
        return self._is_looking

    @is_looking.setter
    def is_looking(self, is_looking: bool) -> None:
        begins = is_looking and not self._is_looking
        self._is_looking = is_looking
        if begins:
            self.ask()

    def ask(self) -> None:
        """Have the name servers asked where the master is, now."""
        for helper in self._helpers:
            helper()

    def on_ask(self, helper: Callable[[], None]) -> None:
        """Have a function called that asks them."""
        self._helpers.append(helper)

    def on_master(self, listener: Callable[[], None]) -> None:
        """Have a function called when the master is known, or is another one."""
        self._listeners.append(listener)

    def master_is(self, address: str | None, ha_address: str | None) -> None:
        """What a name server says; a master that is gone stays known, for it will come back."""
        if address and ha_address and not self.has_controller:
            self.follow(address, ha_address)

    def follow(self, address: str, ha_address: str) -> None:
        """This is the master."""
        if (address, ha_address) == (self.master_address, self.master_ha_address):
            return
        self.master_address, self.master_ha_address = address, ha_address
        for listener in self._listeners:
            listener()
