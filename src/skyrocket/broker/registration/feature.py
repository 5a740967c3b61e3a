"""The broker at its name servers: registered while it serves, gone before it stops."""

import asyncio
from collections.abc import Mapping
from typing import Final

from skyrocket.broker.core.feature import Feature, Follow
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.registration.registration import Heartbeats, Registration
from skyrocket.config.sections import BrokerConfig
from skyrocket.observability.health import Check as Trouble
from skyrocket.remoting.services import Work

_FIRST_REGISTRATION_SECONDS: Final = 3.0


class RegistrationFeature(Feature):
    """Without name servers it does nothing."""

    def __init__(self, parts: Parts) -> None:
        self._settings = parts.settings
        self._name_servers = parts.config.name_servers
        self._set = parts.broker_set
        self.registration = Registration(
            parts.client,
            parts.name_servers,
            parts.identity,
            parts.tables.topics,
            parts.broker_set,
            period_seconds=parts.config.register_period_ms / 1000,
            heartbeats=_heartbeats(parts.config),
        )
        self.registration.permission = parts.config.broker_permission
        self.registration.tells_single_topics = parts.config.registers_single_topics
        if self._name_servers:
            parts.tables.topics.telling = self.registration.telling

    def services(self) -> tuple[Work, ...]:
        if not self._name_servers:
            return ()
        loops: list[Work] = [self.registration.run]
        if self._settings.broker.acting_master:
            loops.append(self.registration.run_heartbeats)
        return tuple(self._set.when_online(loop) for loop in loops)

    def follows(self) -> tuple[Follow, ...]:
        return (
            Follow(self._permission_changed, ("brokerPermission",)),
            Follow(self._manner_changed, ("registerNameServerPeriod", "enableSingleTopicRegister")),
        )

    def _permission_changed(self) -> None:
        self.registration.permission_changed(self._settings.broker.broker_permission)

    def _manner_changed(self) -> None:
        self.registration.period_seconds = self._settings.broker.register_period_ms / 1000
        self.registration.tells_single_topics = self._settings.broker.registers_single_topics

    def troubles(self) -> Mapping[str, Trouble]:
        return {"registration": self._trouble}

    def _trouble(self) -> str | None:
        if not self._name_servers or self.registration.heard_by:
            return None
        return f"registered at none of the name servers {self._name_servers}"

    async def started(self) -> None:
        if self._name_servers and not self._set.is_isolated:
            first = asyncio.ensure_future(self.registration.register())
            await asyncio.wait((first,), timeout=_FIRST_REGISTRATION_SECONDS)

    async def stopping(self) -> None:
        if self._name_servers and not self._set.is_isolated:
            await self.registration.unregister()


def _heartbeats(config: BrokerConfig) -> Heartbeats | None:
    if not config.acting_master:
        return None
    return Heartbeats(config.heartbeat_interval_ms / 1000, config.heartbeat_expiry_ms)
