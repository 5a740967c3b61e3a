"""Consumers by group: who consumes what, and whom to tell when that changes (NOTIFY_CONSUMER_IDS_CHANGED)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic

from skyrocket.broker.state.connected_clients import EXPIRY_SECONDS, C, Client
from skyrocket.broker.state.consumer_group import ConsumerGroup
from skyrocket.clock import Clock
from skyrocket.protocol.bodies.connections import ConsumerConnections
from skyrocket.protocol.bodies.heartbeat import ConsumerData
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import FAQ, ConsumerNotOnline, SubscriptionNotExist, SystemFailure

SUBSCRIPTION_EXPIRY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Change(Generic[C]):
    """What an event did to a group: `tell` are the connections to notify, `is_gone` that nobody is left."""

    group: str
    tell: tuple[C, ...] = ()
    is_gone: bool = False


class ConnectedConsumers(Generic[C]):
    """Forgotten at a restart, filled again by heartbeats."""

    def __init__(self, clock: Clock, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self._clock = clock
        self._expiry_seconds = expiry_seconds
        self._groups: dict[str, ConsumerGroup[C]] = {}
        self._groups_of: dict[C, dict[str, None]] = {}
        self._fingerprints: dict[str, int] = {}
        self._noted: dict[tuple[str, str], tuple[SubscriptionData, float]] = {}
        self.generation = 0  # another one whenever a group came or went, or its kind or subscriptions changed

    # Heartbeats

    def register(
        self, client: Client[C], data: ConsumerData, *, notifies: bool = True, with_subscriptions: bool = True
    ) -> Change[C]:
        """A heartbeat of a member; `notifies` is the group's own setting.

        All members are told, the new one too, when one joined or topics came or went.
        """
        group = self._groups.get(data.group)
        if group is None:
            group = self._groups[data.group] = ConsumerGroup(data.group)
            self.generation += 1
        before = group.message_model, group.subscriptions
        changed = group.beat(client, data, self._clock.monotonic(), self._clock.now_ms())
        self._groups_of.setdefault(client.connection, {})[group.name] = None
        if with_subscriptions:
            changed = group.subscribe(data.subscriptions) or changed
        if before != (group.message_model, group.subscriptions):
            self.generation += 1
        return self._change(group, changed and notifies)

    def must_send_subscriptions(self, group: str, fingerprint: int, *, without_subscriptions: bool = False) -> bool:
        """Remember the fingerprint of a heartbeat; whether its sender must send its subscriptions in full.

        To be asked before `register`.
        """
        known = self._fingerprints.get(group)
        self._fingerprints[group] = fingerprint
        # RocketMQ: a broker that restarted does not notice that it has never heard the subscriptions.
        never_heard = without_subscriptions and group not in self._groups
        return fingerprint == 0 or never_heard or (known is not None and known != fingerprint)

    def unregister(self, group_name: str, connection: C, *, notifies: bool = True) -> Change[C] | None:
        """A member says goodbye; None if it was none."""
        group = self._groups.get(group_name)
        if group is None or connection not in group.members:
            return None
        return self._remove(group, [connection], notifies)

    def closed(self, connection: C) -> list[Change[C]]:
        """A connection is gone; what became of each of its groups."""
        changes = [self.unregister(name, connection) for name in tuple(self._groups_of.get(connection, ()))]
        return [change for change in changes if change is not None]

    def expire(self) -> tuple[list[Client[C]], list[Change[C]]]:
        """Drop members that were not heard of for too long: the caller closes their connections.

        Nobody is told; the groups that are gone are named.
        """
        now = self._clock.monotonic()
        expired: dict[C, Client[C]] = {}
        changes: list[Change[C]] = []
        for group in list(self._groups.values()):
            late = [member.client for member in group.members.values() if now - member.seen_at > self._expiry_seconds]
            if late:
                expired.update((client.connection, client) for client in late)
                changes.append(self._remove(group, [client.connection for client in late], notifies=False))
        self._noted = {key: noted for key, noted in self._noted.items() if self._is_fresh(noted[1], now)}
        return list(expired.values()), changes

    def _remove(self, group: ConsumerGroup[C], connections: Iterable[C], notifies: bool) -> Change[C]:
        for connection in connections:
            del group.members[connection]
            del self._groups_of[connection][group.name]
            if not self._groups_of[connection]:
                del self._groups_of[connection]
        if not group.members:
            del self._groups[group.name]
            self.generation += 1
            self._fingerprints.pop(group.name, None)
        return self._change(group, notifies)

    def _change(self, group: ConsumerGroup[C], tell: bool) -> Change[C]:
        told = tuple(group.members) if tell and not group.is_broadcasting else ()
        return Change(group.name, told, is_gone=not group.members)

    # Queries

    @property
    def group_names(self) -> tuple[str, ...]:
        return tuple(self._groups)

    def find_group(self, group: str) -> ConsumerGroup[C] | None:
        """A group with members."""
        return self._groups.get(group)

    def pulling(self, group: str) -> ConsumerGroup[C]:
        """The group of a pull that brings no subscription; raises SubscriptionNotExist, so that the client beats."""
        found = self._groups.get(group)
        if found is None:
            raise SubscriptionNotExist(f"the consumer's group info not exist{FAQ}")
        return found

    def client_ids(self, group: str) -> tuple[str, ...]:
        """GET_CONSUMER_LIST_BY_GROUP; raises SystemFailure for a group without members.

        RocketMQ: a client that came back before its old connection ended is listed twice; here once.
        """
        found = self._groups.get(group)
        if found is None:
            raise SystemFailure(f"no consumer for this group, {group}", {})
        return tuple(dict.fromkeys(client.client_id for client in found.clients))

    def connections(self, group: str, *, with_times: bool = False) -> ConsumerConnections:
        """GET_CONSUMER_CONNECTION_LIST; raises ConsumerNotOnline for a group without members."""
        found = self._groups.get(group)
        if found is None:
            raise ConsumerNotOnline(f"the consumer group[{group}] not online")
        return found.body(with_times=with_times)

    def find(self, group: str, client_id: str) -> Client[C] | None:
        """A member by its client id; of several connections the youngest."""
        found = self._groups.get(group)
        clients = found.clients if found is not None else ()
        return next((client for client in reversed(clients) if client.client_id == client_id), None)

    def groups_of(self, topic: str) -> tuple[str, ...]:
        """Groups that have subscribed to a topic."""
        return tuple(group.name for group in self._groups.values() if topic in group.subscriptions)

    # Consumers that pull without beating their heart

    def note_subscription(self, group: str, subscription: SubscriptionData) -> None:
        """Remember what a pull brought along, so that tools see groups that no heartbeat told of."""
        self._noted[group, subscription.topic] = subscription, self._clock.monotonic()

    def find_subscription(self, group: str, topic: str) -> SubscriptionData | None:
        """What a group wants of a topic, by heartbeat, else by a pull of the last ten minutes."""
        found = self._groups.get(group)
        if found is not None and topic in found.subscriptions:
            return found.subscriptions[topic]
        noted = self._noted.get((group, topic))
        fresh = noted is not None and self._is_fresh(noted[1], self._clock.monotonic())
        return noted[0] if noted is not None and fresh else None

    def _is_fresh(self, noted_at: float, now: float) -> bool:
        return now - noted_at <= SUBSCRIPTION_EXPIRY_SECONDS
