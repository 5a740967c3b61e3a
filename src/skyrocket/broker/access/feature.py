"""Access control, both generations: checks before every handler, and the requests that manage accounts."""

from collections.abc import Iterable

from skyrocket.broker.access.control import AccessControl
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.core.plug_ins import plug_ins
from skyrocket.remoting.router import Check
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers


class AccessFeature(Feature):
    """Signs what the broker itself asks, too."""

    def __init__(self, parts: Parts) -> None:
        self._own_checks = plug_ins("accessValidators", parts.config.access_validators)
        self.control = AccessControl(parts.config, parts.store, parts.clock)
        self._address = str(parts.identity.address)
        parts.client.signer = self.control.signer

    def checks(self) -> Iterable[Check]:
        """Our own first: who is refused there does not reach what an operator added."""
        return (*self.control.checks, *self._own_checks)

    def handlers(self) -> Handlers:
        return self.control.handlers(self._address)

    def services(self) -> tuple[Work, ...]:
        return () if self.control.service is None else (self.control.service,)

    async def open(self) -> None:
        self.control.load()
