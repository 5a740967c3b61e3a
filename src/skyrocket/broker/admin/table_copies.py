"""Offsets as a slave copies them from its master; topics and groups are copied by the requests of operators."""

from collections.abc import Callable

from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable as CopiedOffsets
from skyrocket.protocol.command import Body
from skyrocket.protocol.requests.offsets import GetAllConsumerOffset, GetAllDelayOffset
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve


class TableCopyProcessor:
    """`delay_offsets` gives how far the delay levels are, as JSON."""

    def __init__(self, offsets: ConsumerOffsetTable, delay_offsets: Callable[[], bytes]) -> None:
        self._offsets = offsets
        self._delay_offsets = delay_offsets

    def handlers(self) -> Handlers:
        return (
            serve(GetAllConsumerOffset, self.consumer_offsets),
            serve(GetAllDelayOffset, self.delay_offsets),
        )

    def consumer_offsets(self, _: Peer, __: GetAllConsumerOffset, ___: Body) -> CopiedOffsets:
        """How far all groups have come."""
        content = self._offsets.content()
        return CopiedOffsets(content.offsets, content.data_version, content.topics_of_group)

    def delay_offsets(self, _: Peer, __: GetAllDelayOffset, ___: Body) -> bytes:
        """How far the delay levels have come."""
        return self._delay_offsets()
