"""Brokers come and go at random: the tables against a model that keeps only what each live broker last said."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from skyrocket.namesrv.route_table import BrokerIdentity, RouteTable
from skyrocket.namesrv.route_view import route_of
from tests.unit.namesrv.samples import broker, registration

NAMES = st.sampled_from(["a", "b", "c"])
IDS = st.sampled_from([0, 1, 2])
TOPICS = st.sets(st.sampled_from(["T", "U", "V", "W"]), min_size=2)
TIMEOUT = 120.0


@dataclass
class Known:
    """The model's knowledge of one broker process."""

    identity: BrokerIdentity
    seen_at: float
    connection: int


@dataclass
class Model:
    """Masters have topics; a topic lives as long as a process of a broker name that once brought it."""

    processes: dict[str, Known] = field(default_factory=dict)  # by address
    topics: dict[str, set[str]] = field(default_factory=dict)  # by broker name

    def forget(self, address: str) -> None:
        gone = self.processes.pop(address, None)
        if gone is not None and not any(self.of_name(gone.identity.broker_name)):
            self.topics.pop(gone.identity.broker_name, None)

    def of_name(self, name: str) -> list[Known]:
        return [known for known in self.processes.values() if known.identity.broker_name == name]


class Brokers(RuleBasedStateMachine):
    """Every id of a name is one process; brokers are as old as 4.9, so only masters bring topics."""

    def __init__(self) -> None:
        super().__init__()
        self.table = RouteTable()
        self.model = Model()
        self.now = 0.0
        self.counter = 0
        self.connections = [object() for _ in range(4)]

    @rule(name=NAMES, broker_id=IDS, topics=TOPICS, connection=st.integers(0, 3))
    def register(self, name: str, broker_id: int, topics: set[str], connection: int) -> None:
        self.counter += 1
        identity = broker(name, broker_id, acting=None)
        body = registration(*sorted(topics), counter=self.counter)
        self.table.register(identity, body, self.connections[connection], self.now)
        self.model.processes[identity.address] = Known(identity, self.now, connection)
        if identity.is_master:
            self.model.topics.setdefault(name, set()).update(topics)

    @rule(name=NAMES, broker_id=IDS)
    def unregister(self, name: str, broker_id: int) -> None:
        identity = broker(name, broker_id)
        self.table.unregister([identity])
        self.model.forget(identity.address)

    @rule(name=NAMES, broker_id=IDS)
    def sign_of_life(self, name: str, broker_id: int) -> None:
        identity = broker(name, broker_id)
        self.table.touch(identity.key, self.now)
        if identity.address in self.model.processes:
            self.model.processes[identity.address].seen_at = self.now

    @rule(seconds=st.sampled_from([1.0, 50.0, 121.0]))
    def time_passes_and_silent_brokers_go(self, seconds: float) -> None:
        self.now += seconds
        self.table.remove(self.table.expired(self.now))
        for address, known in list(self.model.processes.items()):
            if known.seen_at + TIMEOUT < self.now:
                self.model.forget(address)

    @rule(connection=st.integers(0, 3))
    def connection_closes(self, connection: int) -> None:
        self.table.remove(self.table.connected_by(self.connections[connection]))
        for address, known in list(self.model.processes.items()):
            if known.connection == connection:
                self.model.forget(address)

    @rule(topic=st.sampled_from(["T", "U"]))
    def delete_topic(self, topic: str) -> None:
        self.table.delete_topic(topic)
        for topics in self.model.topics.values():
            topics.discard(topic)

    @invariant()
    def the_same_brokers_live(self) -> None:
        assert {key.address for key in self.table.live} == set(self.model.processes)
        addresses = [address for data in self.table.brokers.values() for address in data.addresses.values()]
        assert sorted(addresses) == sorted(self.model.processes)
        names = {known.identity.broker_name for known in self.model.processes.values()}
        assert set(self.table.brokers) == names == set().union(*self.table.clusters.values(), set())

    @invariant()
    def the_same_topics_are_served(self) -> None:
        for topic in ("T", "U", "V", "W"):
            expected = {name for name, topics in self.model.topics.items() if topic in topics}
            route = route_of(self.table, topic)
            assert {data.broker_name for data in route.brokers} == expected if route else not expected


Brokers.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None, derandomize=True)
TestBrokers = Brokers.TestCase
