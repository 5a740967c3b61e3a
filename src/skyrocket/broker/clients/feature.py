"""Clients: who is connected, who holds which queue, and what only they can answer."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Final

from skyrocket.broker.clients.client_relay import ClientRelay
from skyrocket.broker.clients.connections import ConnectionProcessor
from skyrocket.broker.clients.heartbeats import ClientProcessor
from skyrocket.broker.core.feature import Feature
from skyrocket.broker.core.parts import Parts
from skyrocket.broker.state.subscription_groups import is_system_group
from skyrocket.observability.exposition import Kind, Metric, label
from skyrocket.protocol.bodies.locks import LockedQueues
from skyrocket.protocol.bodies.locks import QueueLocks as NamedQueues
from skyrocket.protocol.requests.consumers import LockBatchMq, UnlockBatchMq
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.services import Work
from skyrocket.remoting.serving import Handlers, serve

_HOUSEKEEPING_SECONDS: Final = 10.0


class ClientsFeature(Feature):
    """Keeps the tables of clients, and forgets those that are silent for too long."""

    def __init__(self, parts: Parts) -> None:
        self._tables = tables = parts.tables
        self.clients = ClientProcessor(tables, parts.peer_clock, parts.config.new_groups_per_second)
        self._connections = ConnectionProcessor(tables, parts.identity, parts.subscriptions)
        self.relay = ClientRelay(parts.store, tables, parts.identity)
        parts.server.on_close(self.clients.closed)

    def handlers(self) -> Handlers:
        yield serve(LockBatchMq, self.lock)
        yield serve(UnlockBatchMq, self.unlock)
        for processor in (self.clients, self._connections, self.relay):
            yield from processor.handlers()

    def lock(self, _: Peer, __: LockBatchMq, wanted: NamedQueues) -> LockedQueues:
        """Lock queues for consumption in order; the answer names the queues that the client now holds."""
        return LockedQueues(self._tables.locks.lock(wanted.group or "", wanted.client_id or "", wanted.queues))

    def unlock(self, _: Peer, __: UnlockBatchMq, given: NamedQueues) -> None:
        """Give queues back."""
        self._tables.locks.unlock(given.group or "", given.client_id or "", given.queues)

    def services(self) -> tuple[Work, ...]:
        return (self._housekeeping,)

    async def _housekeeping(self) -> None:
        while True:
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            self.clients.expire()
            self._tables.locks.forget_lapsed()

    def metrics(self) -> Iterator[Metric]:
        producers: Counter[tuple[str, str]] = Counter()
        for clients in self._tables.producers.table().groups.values():
            producers.update((_language(client.language), str(client.version)) for client in clients)
        metric = Metric("rocketmq_producer_connections", Kind.GAUGE, "Producers that send heartbeats")
        for (language, version), count in producers.items():
            metric.add(count, language=language, version=version)
        yield metric
        consumers: Counter[tuple[str, str, str, str]] = Counter()
        for name in self._tables.consumers.group_names:
            group = self._tables.consumers.find_group(name)
            if group is not None:
                mode = "pull" if group.consume_type == "CONSUME_ACTIVELY" else "push"
                consumers.update((name, _language(c.language), str(c.version), mode) for c in group.clients)
        metric = Metric("rocketmq_consumer_connections", Kind.GAUGE, "Consumers that send heartbeats")
        for (name, language, version, mode), count in consumers.items():
            metric.add(
                count,
                consumer_group=name,
                language=language,
                version=version,
                consume_mode=mode,
                is_system=label(is_system_group(name)),
            )
        yield metric


def _language(language: str | None) -> str:
    return (language or "unknown").lower()
