"""A network whose ways are cut one by one, with requests beside connections, and nodes that stand still for a while."""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Generic, TypeVar

from skyrocket.testing.simulation.network import Endpoint, Network
from skyrocket.testing.simulation.world import World

R = TypeVar("R")

CALL_SECONDS = 3.0


class Machine:
    """A process that can die, stand still, and have a clock that runs ahead."""

    def __init__(self, name: str, world: World) -> None:
        self.name = name
        self.world = world
        self.is_up = False
        self.life = 0  # how often it died
        self.still_until = 0.0
        self.ahead_seconds = 0.0
        self._held: list[Callable[[], None]] = []  # what it would have done while it stood still

    @property
    def now(self) -> float:
        """By its own clock."""
        return self.world.now + self.ahead_seconds

    @property
    def stands_still(self) -> bool:
        return self.world.now < self.still_until

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something unless this machine dies before; not while it stands still."""
        life = self.life

        def act() -> None:
            if not self.is_up or self.life != life:
                return
            if self.stands_still:
                self._held.append(act)
            else:
                action()

        self.world.after(seconds, act)

    def wake(self) -> None:
        """It stands still no longer, unless it was told to for longer: what was held up is done soon."""
        if not self.stands_still:
            held, self._held = self._held, []
            for act in held:
                self.world.after(self.world.random.uniform(0, 0.05), act)

    def start(self) -> None:
        """Begin to live, again if need be."""
        self.is_up = True

    def received(self, connection: object, data: bytes) -> None: ...

    def closed(self, connection: object) -> None: ...


class PartedNetwork(Network):
    """Between machines by their names."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.machines: list[Machine] = []
        self._cuts: dict[frozenset[str], float] = {}  # until when

    def blocks(self, one: Endpoint, other: Endpoint) -> bool:
        assert isinstance(one, Machine)
        assert isinstance(other, Machine)
        return self.blocked_until(one, other) > self.world.now

    def blocked_until(self, one: Machine, other: Machine) -> float:
        """When something can come from one to the other again, as far as is known."""
        cut = self._cuts.get(frozenset({one.name, other.name}), 0.0)
        return max(cut, one.still_until, other.still_until)

    def cut_between(self, one: Machine, other: Machine, seconds: float) -> None:
        """Everything waits, as with TCP."""
        key = frozenset({one.name, other.name})
        self._cuts[key] = max(self._cuts.get(key, 0.0), self.world.now + seconds)
        self.world.note(f"{one.name} and {other.name} are cut off from each other for {seconds:.1f} s")
        self.world.after(seconds + 0.001, self.deliver_again)

    def stand_still(self, machine: Machine, seconds: float) -> None:
        """A pause of the process."""
        machine.still_until = max(machine.still_until, self.world.now + seconds)
        self.world.note(f"{machine.name} stands still for {seconds:.1f} s")
        self.world.after(seconds + 0.001, machine.wake)
        self.world.after(seconds + 0.001, self.deliver_again)

    def deliver_again(self) -> None:
        """What waited may come now."""
        for connection in self._connections:
            connection.deliver_later()

    def mend(self) -> None:
        """Everything is whole, and nobody stands still."""
        self._cuts.clear()
        for machine in self.machines:
            machine.still_until = 0.0
            machine.wake()
        self.deliver_again()

    def pairs(self) -> list[tuple[Machine, Machine]]:
        return list(combinations(self.machines, 2))

    def reset_between(self, one: Machine, other: Machine) -> None:
        """Connections between two break."""
        for connection in [each for each in self._connections if each.joins(one, other)]:
            self._connections.remove(connection)
            connection.close()

    def reset_of(self, machine: Machine) -> None:
        """All connections of a process that has died break."""
        for other in self.machines:
            if other is not machine:
                self.reset_between(machine, other)


class Tell:
    """A word from one machine to another; it may be late, or never come."""

    def __init__(self, network: PartedNetwork, telling: Machine, told: Machine, arrive: Callable[[], object]) -> None:
        self._network = network
        self._telling, self._told = telling, told
        self._lives = (telling.life, told.life)
        self._travel(arrive)

    def _travel(self, arrive: Callable[[], object]) -> None:
        world = self._network.world
        wait = max(self._network.blocked_until(self._telling, self._told) - world.now, 0.0)
        world.after(wait + world.random.uniform(0.0005, 0.02), partial(self._reach, arrive))

    def _reach(self, arrive: Callable[[], object]) -> None:
        if (self._telling.life, self._told.life) != self._lives or not (self._telling.is_up and self._told.is_up):
            return  # the connection is broken
        if self._network.blocks(self._telling, self._told):
            self._travel(arrive)
        else:
            arrive()


class Call(Tell, Generic[R]):
    """A request, and its answer."""

    def __init__(
        self,
        network: PartedNetwork,
        asking: Machine,
        asked: Machine,
        serve: Callable[[], R],
        answered: Callable[[R | None], None],
    ) -> None:
        """`answered` hears None when no answer came in time."""
        self._serve, self._answered = serve, answered
        self._is_over = False
        super().__init__(network, asking, asked, self._arrive)
        asking.later(CALL_SECONDS, partial(self._finish, None))

    def _arrive(self) -> None:
        self._travel(partial(self._finish, self._serve()))

    def _finish(self, answer: R | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._answered(answer)
