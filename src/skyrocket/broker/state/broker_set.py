"""The set that a broker belongs to: brokers of one name, of which one is the master."""

from collections.abc import Callable


class BrokerSet:
    """Who copies from where; registration learns it from the name servers, replication lives by it."""

    def __init__(self, ha_address: str) -> None:
        self.ha_address = ha_address  # where this broker offers its own log; as name servers are told
        self.master_address: str | None = None  # of the set's master, once a slave has heard of it
        self.master_ha_address: str | None = None
        self.is_looking = False  # a slave does not reach its master: it wants to hear of it soon
        self._listeners: list[Callable[[], None]] = []

    def on_master(self, listener: Callable[[], None]) -> None:
        """Have a function called when the master is known, or is another one."""
        self._listeners.append(listener)

    def master_is(self, address: str | None, ha_address: str | None) -> None:
        """What a name server says; a master that is gone stays known, for it will come back."""
        if not address or not ha_address or (address, ha_address) == (self.master_address, self.master_ha_address):
            return
        self.master_address, self.master_ha_address = address, ha_address
        for listener in self._listeners:
            listener()
