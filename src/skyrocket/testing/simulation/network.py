"""Connections that deliver late, in pieces, or not at all; bytes of one direction never overtake each other."""

from collections import deque
from typing import Protocol

from skyrocket.testing.simulation.world import World


class Endpoint(Protocol):
    """One side of a connection."""

    def received(self, connection: "Connection", data: bytes) -> None: ...

    def closed(self, connection: "Connection") -> None: ...


class Network:
    """The way between the nodes; while it is cut everything waits, as with TCP, and new connections fail."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_cut = False
        self._connections: list[Connection] = []

    def blocks(self, one: Endpoint, other: Endpoint) -> bool:
        """Whether nothing comes from one to the other now."""
        return self.is_cut

    def connect(self, client: Endpoint, server: Endpoint) -> "Connection | None":
        if self.blocks(client, server):
            return None
        connection = Connection(self, client, server)
        self._connections.append(connection)
        return connection

    def cut(self) -> None:
        self.is_cut = True
        self.world.note("network is cut")

    def heal(self) -> None:
        self.is_cut = False
        self.world.note("network is whole")
        for connection in self._connections:
            connection.deliver_later()

    def reset_connections(self) -> None:
        """What is under way is lost, both sides notice."""
        self.world.note("connections are reset")
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()


class Connection:
    """Two directions; `send` names the side that sends."""

    def __init__(self, network: Network, client: Endpoint, server: Endpoint) -> None:
        self._network = network
        self._world = network.world
        self._other: dict[int, Endpoint] = {id(client): server, id(server): client}
        self._waiting: dict[int, deque[bytes]] = {id(client): deque(), id(server): deque()}
        self._sides = (client, server)
        self.is_open = True

    def send(self, sender: Endpoint, data: bytes) -> None:
        if self.is_open and data:
            self._waiting[id(sender)].append(data)
            self.deliver_later()

    def deliver_later(self) -> None:
        self._world.after(self._world.random.uniform(0.0002, 0.02), self._deliver)

    def _deliver(self) -> None:
        """Hand over some of what waits: pieces are cut anywhere."""
        for sender, waiting in self._waiting.items():
            if not self.is_open or self._network.blocks(*self._sides) or not waiting:
                continue
            data = b"".join(waiting)
            waiting.clear()
            size = self._world.random.randint(1, len(data)) if self._world.random.random() < 0.3 else len(data)
            if size < len(data):
                waiting.append(data[size:])
                self.deliver_later()
            self._other[sender].received(self, data[:size])

    def joins(self, one: Endpoint, other: Endpoint) -> bool:
        """Whether it is between these two."""
        return {id(one), id(other)} == self._other.keys()

    def close(self) -> None:
        """Both sides notice; what is under way is lost."""
        if self.is_open:
            self.is_open = False
            for side in self._sides:
                side.closed(self)
