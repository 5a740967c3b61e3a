"""Offsets as a slave copies them from its master; topics and groups are copied by the requests of operators."""

from collections.abc import Callable

from skyrocket.broker.state.consumer_offsets import ConsumerOffsetTable
from skyrocket.protocol.bodies.offsets import CONSUMER_OFFSET_TABLE
from skyrocket.protocol.bodies.offsets import ConsumerOffsetTable as CopiedOffsets
from skyrocket.protocol.codes import RequestCode, ResponseCode
from skyrocket.protocol.command import RemotingCommand
from skyrocket.remoting.peer import Peer
from skyrocket.remoting.serving import Handlers, serve_raw


class TableCopyProcessor:
    """`delay_offsets` gives how far the delay levels are, as JSON."""

    def __init__(self, offsets: ConsumerOffsetTable, delay_offsets: Callable[[], bytes]) -> None:
        self._offsets = offsets
        self._delay_offsets = delay_offsets

    def handlers(self) -> Handlers:
        return (
            serve_raw(RequestCode.GET_ALL_CONSUMER_OFFSET, self.consumer_offsets),
            serve_raw(RequestCode.GET_ALL_DELAY_OFFSET, self.delay_offsets),
        )

    def consumer_offsets(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_CONSUMER_OFFSET."""
        content = self._offsets.content()
        copied = CopiedOffsets(content.offsets, content.data_version, content.topics_of_group)
        return request.answer(ResponseCode.SUCCESS, body=CONSUMER_OFFSET_TABLE.encode(copied))

    def delay_offsets(self, _: Peer, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_DELAY_OFFSET."""
        return request.answer(ResponseCode.SUCCESS, body=self._delay_offsets())
