"""Requests and heartbeats that the tests of controllers share."""

from skyrocket.controller.decisions import Outcome
from skyrocket.controller.machine import ControllerMachine, SetRequest
from skyrocket.protocol.bodies.controller import SyncStateSet
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import AlterSyncStateSet, ApplyBrokerId, ElectMaster

CLUSTER = "DefaultCluster"
NAME = "broker-a"


def address_of(broker_id: int) -> str:
    return f"10.0.0.{broker_id}:10911"


def apply_id(broker_id: int, *, name: str = NAME, time: int = 0) -> ApplyBrokerId:
    return ApplyBrokerId(
        cluster_name=CLUSTER,
        broker_name=name,
        applied_broker_id=broker_id,
        register_check_code=f"{address_of(broker_id)};{time}",
    )


def heartbeat(broker_id: int | None, *, name: str = NAME, **said: int) -> BrokerHeartbeat:
    """`said`: epoch, max_offset, heartbeat_timeout_millis, election_priority."""
    at = address_of(broker_id or 0)
    return BrokerHeartbeat(cluster_name=CLUSTER, broker_addr=at, broker_name=name, broker_id=broker_id, **said)


def listen(machine: ControllerMachine, now: float, seconds: float) -> float:
    """Time passes for a controller that does not stand still; what time it is then."""
    for _ in range(int(seconds * 2)):
        now += 0.5
        machine.attend(now)
    return now


class Given:
    """A machine whose decisions are applied at once, and a time that is moved by hand."""

    def __init__(self, machine: ControllerMachine | None = None) -> None:
        self.machine = machine or ControllerMachine(0.0)
        self.now = 100.0
        if machine is None:
            listen(self.machine, 0.0, self.now)

    def listens(self, seconds: float) -> None:
        self.now = listen(self.machine, self.now, seconds)

    def stands_still(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, request: SetRequest, body: object = None) -> Outcome:
        outcome = self.machine.decide(request, body, self.now)
        if outcome.change is not None:
            self.machine.apply(outcome.change)
        return outcome

    def lives(self, broker_id: int, **said: int) -> object:
        """A heartbeat over a connection of its own, which is returned."""
        connection = object()
        self.machine.heard(heartbeat(broker_id, name=NAME, **said), connection, self.now)
        return connection

    def elect(self, broker_id: int = -1, *, designated: bool = False) -> Outcome:
        return self.ask(
            ElectMaster(cluster_name=CLUSTER, broker_name=NAME, broker_id=broker_id, designate_elect=designated)
        )

    def alter(self, *broker_ids: int, master: int = 1, master_epoch: int = 1, epoch: int = 1) -> Outcome:
        request = AlterSyncStateSet(broker_name=NAME, master_broker_id=master, master_epoch=master_epoch)
        return self.ask(request, SyncStateSet(broker_ids, epoch))


def set_of(*broker_ids: int) -> Given:
    """A set whose brokers have their ids and live; it never had a master."""
    given = Given()
    for broker_id in broker_ids:
        given.ask(apply_id(broker_id))
        given.lives(broker_id)
    return given


def replicating(*broker_ids: int) -> Given:
    """A set that the first of them leads, and all are in sync: master epoch 1, sync epoch 2."""
    given = set_of(*broker_ids)
    given.elect(broker_ids[0])
    if len(broker_ids) > 1:
        assert given.alter(*broker_ids, master=broker_ids[0]).code == 0
    return given
