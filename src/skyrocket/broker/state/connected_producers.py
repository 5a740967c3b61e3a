"""Producers by group: whom to ask about a transaction, whom to give a reply."""

from typing import Generic

from skyrocket.broker.state.connected_clients import EXPIRY_SECONDS, C, Client, Member
from skyrocket.clock import Clock
from skyrocket.protocol.bodies.connections import ProducerConnections, ProducerInfo, ProducerTable
from skyrocket.protocol.errors import SystemFailure

_MORE_TRIES = 3


class ConnectedProducers(Generic[C]):
    """Forgotten at a restart, filled again by heartbeats."""

    def __init__(self, clock: Clock, expiry_seconds: float = EXPIRY_SECONDS) -> None:
        self._clock = clock
        self._expiry_seconds = expiry_seconds
        self._groups: dict[str, dict[C, Member[C]]] = {}
        self._groups_of: dict[C, set[str]] = {}
        self._by_client_id: dict[str, Client[C]] = {}
        self._turn = 0

    def register(self, group: str, client: Client[C]) -> None:
        """A heartbeat of a producer."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        members = self._groups.setdefault(group, {})
        known = members.get(client.connection)
        if known is not None and known.client.client_id == client.client_id:
            known.seen_at, known.seen_ms = now, now_ms
        else:
            if known is not None:
                self._by_client_id.pop(known.client.client_id, None)
            members[client.connection] = Member(client, now, now_ms)
            self._groups_of.setdefault(client.connection, set()).add(group)
        self._by_client_id[client.client_id] = client

    def unregister(self, group: str, connection: C) -> None:
        """A producer says goodbye."""
        members = self._groups.get(group)
        member = members.pop(connection, None) if members is not None else None
        if member is None:
            return
        if not members:
            del self._groups[group]
        self._groups_of[connection].discard(group)
        if not self._groups_of[connection]:
            del self._groups_of[connection]
            known = self._by_client_id.get(member.client.client_id)
            if known is not None and known.connection is connection:
                del self._by_client_id[member.client.client_id]

    def closed(self, connection: C) -> None:
        """A connection is gone."""
        for group in tuple(self._groups_of.get(connection, ())):
            self.unregister(group, connection)

    def expire(self) -> list[Client[C]]:
        """Drop those that were not heard of for too long; the caller closes their connections."""
        now = self._clock.monotonic()
        expired = [
            (group, member.client)
            for group, members in self._groups.items()
            for member in members.values()
            if now - member.seen_at > self._expiry_seconds
        ]
        for group, client in expired:
            self.unregister(group, client.connection)
        return list({client.connection: client for _, client in expired}.values())

    def find(self, client_id: str) -> Client[C] | None:
        """A producer by its client id; the one that was heard of last."""
        return self._by_client_id.get(client_id)

    def next_of(self, group: str) -> Client[C] | None:
        """A member to ask about a transaction, in turn: one that takes requests now, else one that is at least open."""
        members = list(self._groups.get(group, {}).values())
        if not members:
            return None
        self._turn += 1
        tried = [members[(self._turn + i) % len(members)].client for i in range(min(1 + _MORE_TRIES, len(members)))]
        ready = next((client for client in tried if client.connection.is_open and client.connection.is_writable), None)
        return ready or next((client for client in reversed(tried) if client.connection.is_open), None)

    def connections(self, group: str) -> ProducerConnections:
        """GET_PRODUCER_CONNECTION_LIST; raises SystemFailure for a group without members."""
        members = self._groups.get(group)
        if members is None:
            raise SystemFailure(f"the producer group[{group}] not exist")
        return ProducerConnections(connections=tuple(member.body() for member in members.values()))

    def table(self, *, with_times: bool = False) -> ProducerTable:
        """GET_ALL_PRODUCER_INFO."""
        return ProducerTable(
            groups={
                group: [_info(member, with_times) for member in members.values()]
                for group, members in self._groups.items()
            }
        )


def _info(member: Member[C], with_times: bool) -> ProducerInfo:
    known = member.body(with_times=with_times)
    address = "/" + known.client_address
    return ProducerInfo(
        known.client_id, address, known.language, known.version, member.seen_ms, known.connected_timestamp
    )
