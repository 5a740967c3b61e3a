"""A method per request. Whoever does not lead refuses all but heartbeats, metadata and its own settings."""

from skyrocket.clock import Clock
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.decider import Decider
from skyrocket.controller.decisions import Outcome
from skyrocket.controller.machine import ControllerMachine, SetRequest
from skyrocket.controller.peers import peers_text
from skyrocket.protocol.bodies.settings_text import decode_settings
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    ApplyBrokerId,
    CleanBrokerData,
    ElectMaster,
    GetControllerConfig,
    GetControllerMetadata,
    GetControllerMetadataAnswer,
    GetNextBrokerId,
    GetReplicaInfo,
    GetSyncStateData,
    ListReplicaSets,
    RegisterAtController,
    UpdateControllerConfig,
)
from skyrocket.remoting.live_settings import LiveSettings
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Answered, Handlers, serve


class ReplicaSetProcessor:
    """What the leader is asked about replica sets."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    def handlers(self) -> Handlers:
        return (
            serve(AlterSyncStateSet, self.decide),
            serve(ApplyBrokerId, self.decide),
            serve(CleanBrokerData, self.decide),
            serve(ElectMaster, self.decide),
            serve(GetNextBrokerId, self.decide),
            serve(GetReplicaInfo, self.decide),
            serve(RegisterAtController, self.decide),
            serve(GetSyncStateData, self.sync_state_data),
            serve(ListReplicaSets, self.names),
        )

    async def decide(self, _: Peer, request: SetRequest, body: object) -> Answered:
        """One set: ids, registration, elections, who is in sync."""
        return _answered(await self._decider.decide(request, body))

    async def sync_state_data(self, _: Peer, request: GetSyncStateData, names: tuple[str, ...] | None) -> Answered:
        """Several sets, as operators see them."""
        return _answered(await self._decider.sync_state_data(request, names))

    async def names(self, _: Peer, __: ListReplicaSets, ___: Body) -> tuple[str, ...]:
        """All sets, for operators who do not know what there is."""
        return await self._decider.names()


class ControllerProcessor:
    """What every controller answers."""

    def __init__(
        self,
        machine: ControllerMachine,
        decider: Decider,
        settings: LiveSettings[ControllerConfig],
        clock: Clock,
    ) -> None:
        self._machine = machine
        self._decider = decider
        self._settings = settings
        self._clock = clock

    def handlers(self) -> Handlers:
        return (
            serve(BrokerHeartbeat, self.heartbeat),
            serve(GetControllerMetadata, self.metadata),
            serve(UpdateControllerConfig, self.update_settings),
            serve(GetControllerConfig, self.show_settings),
        )

    def heartbeat(self, peer: Peer, header: BrokerHeartbeat, _: Body) -> Answered:
        """A broker lives, and is gone when its connection is."""
        self._machine.heard(header, peer, self._clock.monotonic())
        return Answered(remark="Heart beat success")

    def metadata(self, _: Peer, __: GetControllerMetadata, ___: Body) -> GetControllerMetadataAnswer:
        """Who leads."""
        config, standing = self._settings.config, self._decider.standing
        leader = standing.leader
        return GetControllerMetadataAnswer(
            group=config.group,
            controller_leader_id=None if leader is None else leader.controller_id,
            controller_leader_address=None if leader is None else leader.address,
            is_leader=standing.leadership is not None,
            peers=peers_text(config.peers, standing.members),
        )

    def update_settings(self, _: Peer, __: UpdateControllerConfig, body: Body) -> None:
        """Change settings; without a body none."""
        if body:
            self._settings.update(decode_settings(body))

    def show_settings(self, _: Peer, __: GetControllerConfig, ___: Body) -> bytes:
        return self._settings.text().encode()


def _answered(outcome: Outcome) -> Answered:
    return Answered(outcome.header, outcome.body, outcome.remark, outcome.code)
