"""Controllers: who leads them, the replica sets under them, and choosing another master."""

from dataclasses import dataclass

from skyrocket.console.api.endpoint import Call, Done, Family
from skyrocket.console.api.values import BadInput
from skyrocket.console.cluster.controllers import ControllersView
from skyrocket.model.words import said

family = Family("Cluster")


@family.get("/api/controllers")
async def controllers(call: Call) -> ControllersView:
    """The controllers that brokers name in their settings, and each set's master, epoch, in-sync replicas and lag."""
    return await call.parts.controllers.state.get()


@dataclass(frozen=True, slots=True)
class ElectWanted:
    """The replica that shall be master of its set."""

    broker: str
    broker_id: int


@family.post("/api/controllers/elect")
async def elect(call: Call, wanted: ElectWanted) -> Done:
    """Make another replica the master of its set; controllers refuse one that is not in sync or does not live."""
    state = await call.parts.controllers.state.get(fresh=True)
    of_set = [each for each in state.sets if each.broker == wanted.broker]
    living = [row.address for row in state.controllers if row.is_up]
    if not of_set or not living:
        raise BadInput("no controller knows a set {broker}: /api/controllers lists them", broker=wanted.broker)
    (known,) = of_set
    if wanted.broker_id == known.master_id:
        raise BadInput(
            "replica {broker_id} is master of {broker} already", broker_id=wanted.broker_id, broker=wanted.broker
        )
    call.before = {"master": known.master_id, "address": known.master_address, "epoch": known.master_epoch}
    try:
        header, _ = await call.admin.elect_master(living[0], known.cluster, wanted.broker, wanted.broker_id)
    finally:
        call.parts.controllers.forget()
    return Done(
        said("replica {broker_id} is master of {broker} now", broker_id=wanted.broker_id, broker=wanted.broker),
        {"address": header.master_address or "", "epoch": str(header.master_epoch)},
    )
