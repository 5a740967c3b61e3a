"""What controllers and operators ask of a broker whose role a controller decides."""

from skyrocket.broker.core.parts import Parts
from skyrocket.broker.state.switching import RoleWord, Switching
from skyrocket.protocol.bodies.controller import EpochCache, EpochEntry, SyncStateSet
from skyrocket.protocol.command import Body
from skyrocket.protocol.errors import SystemFailure
from skyrocket.protocol.requests.admin_broker import GetBrokerEpochCache
from skyrocket.protocol.requests.controller import NotifyBrokerRoleChanged
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve


def plain_handlers() -> Handlers:
    """Of a broker without a controller."""

    def refuse(_: Peer, __: GetBrokerEpochCache, ___: Body) -> None:
        raise SystemFailure("this request only for controllerMode")

    yield serve(GetBrokerEpochCache, refuse)


def switch_handlers(parts: Parts, switching: Switching) -> Handlers:
    """NOTIFY_BROKER_ROLE_CHANGED and GET_BROKER_EPOCH_CACHE."""

    def hear(_: Peer, header: NotifyBrokerRoleChanged, body: SyncStateSet) -> None:
        if header.master_epoch is None:
            return
        members, epoch = frozenset(body.broker_ids), header.sync_state_set_epoch or body.epoch
        switching.told(RoleWord(header.master_broker_id, header.master_address, header.master_epoch, members, epoch))

    def tell_epochs(_: Peer, __: GetBrokerEpochCache, ___: Body) -> EpochCache:
        epochs, identity = switching.epochs.all, parts.identity
        ends = [later.start_offset for later in epochs[1:]]
        entries = [EpochEntry(*epoch, end) for epoch, end in zip(epochs, ends, strict=False)]
        entries += [EpochEntry(*epoch) for epoch in epochs[-1:]]
        return EpochCache(
            identity.cluster_name,
            identity.broker_name,
            identity.broker_id,
            tuple(entries),
            parts.store.commit_log.written_offset,
        )

    yield serve(NotifyBrokerRoleChanged, hear)
    yield serve(GetBrokerEpochCache, tell_epochs)
