"""A controller that answers brokers by the rules of the simulator's model; its state lives in the test's memory."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from skyrocket.broker.state.switching import RoleWord
from skyrocket.protocol.bodies.controller import ElectedMaster, SyncStateSet
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.broker_registration import BrokerHeartbeat
from skyrocket.protocol.requests.controller import (
    AlterSyncStateSet,
    AlterSyncStateSetAnswer,
    ApplyBrokerId,
    ApplyBrokerIdAnswer,
    ElectMaster,
    ElectMasterAnswer,
    GetControllerMetadata,
    GetControllerMetadataAnswer,
    GetNextBrokerId,
    GetNextBrokerIdAnswer,
    GetReplicaInfo,
    GetReplicaInfoAnswer,
    NotifyBrokerRoleChanged,
    RegisterAtController,
    RegisterAtControllerAnswer,
)
from skyrocket.remoting.client import RemotingClient
from skyrocket.remoting.errors import RemotingError
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.router import Router
from skyrocket.remoting.server import RemotingServer
from skyrocket.remoting.serving import Answered, Handlers, serve
from skyrocket.testing.simulation.controller_model import Alive, ControllerModel


class ModelController:
    """One set, one controller."""

    def __init__(self) -> None:
        self.model = ControllerModel()
        self.address = ""
        self.tells = True  # whether brokers are told of elections, or must ask

    def handlers(self) -> Handlers:
        yield serve(GetControllerMetadata, self.metadata)
        yield serve(GetNextBrokerId, self.next_id)
        yield serve(ApplyBrokerId, self.apply_id)
        yield serve(RegisterAtController, self.register)
        yield serve(GetReplicaInfo, self.info)
        yield serve(AlterSyncStateSet, self.alter)
        yield serve(ElectMaster, self.elect)
        yield serve(BrokerHeartbeat, self.beat)

    def metadata(self, _: Peer, __: GetControllerMetadata, ___: Body) -> GetControllerMetadataAnswer:
        return GetControllerMetadataAnswer(controller_leader_address=self.address, is_leader=True)

    def next_id(self, _: Peer, header: GetNextBrokerId, __: Body) -> GetNextBrokerIdAnswer:
        return GetNextBrokerIdAnswer(next_broker_id=self.model.next_id())

    def apply_id(self, _: Peer, header: ApplyBrokerId, __: Body) -> ApplyBrokerIdAnswer:
        self.model.apply_id(header.applied_broker_id, header.register_check_code)
        return ApplyBrokerIdAnswer()

    def register(self, _: Peer, header: RegisterAtController, __: Body) -> Answered:
        word = self.model.register(header.broker_id, header.broker_address)
        answer = RegisterAtControllerAnswer(
            master_broker_id=word.master_id,
            master_address=word.master_address,
            master_epoch=word.master_epoch,
            sync_state_set_epoch=word.members_epoch,
        )
        return Answered(answer, _body(word))

    def info(self, _: Peer, __: GetReplicaInfo, ___: Body) -> Answered:
        word = self.model.word()
        answer = GetReplicaInfoAnswer(
            master_broker_id=word.master_id, master_address=word.master_address, master_epoch=word.master_epoch
        )
        return Answered(answer, _body(word))

    def alter(self, _: Peer, header: AlterSyncStateSet, body: SyncStateSet) -> Answered:
        word = self.model.alter(
            header.master_broker_id, header.master_epoch, frozenset(body.broker_ids), body.epoch, time.monotonic()
        )
        return Answered(AlterSyncStateSetAnswer(new_sync_state_set_epoch=word.members_epoch), _body(word))

    def elect(self, _: Peer, header: ElectMaster, __: Body) -> Answered:
        word = self.model.elect(time.monotonic(), header.broker_id)
        answer = ElectMasterAnswer(
            master_broker_id=word.master_id,
            master_address=word.master_address,
            master_epoch=word.master_epoch,
            sync_state_set_epoch=word.members_epoch,
        )
        return Answered(answer, ElectedMaster(sync_state_set=tuple(word.members)))

    def beat(self, _: Peer, header: BrokerHeartbeat, __: Body) -> None:
        assert header.broker_id is not None
        expiry = (header.heartbeat_timeout_millis or 10_000) / 1000
        said = Alive(time.monotonic(), expiry, header.epoch or 0, header.max_offset or 0)
        self.model.beat(header.broker_id, said)

    async def run_scans(self, client: RemotingClient) -> None:
        while True:
            await asyncio.sleep(0.05)
            word = self.model.scan(time.monotonic())
            if word is not None and self.tells:
                await self.tell(client, word)

    async def tell(self, client: RemotingClient, word: RoleWord) -> None:
        """Tell all brokers of an election."""
        request = NotifyBrokerRoleChanged(
            master_address=word.master_address,
            master_epoch=word.master_epoch,
            sync_state_set_epoch=word.members_epoch,
            master_broker_id=word.master_id,
        )
        for address in self.model.addresses.values():
            with contextlib.suppress(RemotingError):
                await client.call_oneway(address, request, _body(word).encode())


def _body(word: RoleWord) -> SyncStateSet:
    return SyncStateSet(tuple(sorted(word.members)), word.members_epoch)


@contextlib.asynccontextmanager
async def running_controller() -> AsyncIterator[ModelController]:
    controller = ModelController()
    router = Router()
    router.add(*controller.handlers())
    async with RemotingServer(router) as server, RemotingClient() as client:
        controller.address = str(await server.listen("127.0.0.1", 0))
        scans = asyncio.ensure_future(controller.run_scans(client))
        try:
            yield controller
        finally:
            scans.cancel()
            await asyncio.wait((scans,))
