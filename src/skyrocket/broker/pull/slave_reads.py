"""What a slave answers to pulls: consumers that read old messages stay, all others go back to the master.

A slave may be behind its master, so it corrects no offsets (unless offsetCheckInSlave says that it may): what it does
not have yet is not wrong. RocketMQ: a consumer whose offset a slave does not have asks again and again at once, even
when the master is gone. Here it waits for messages as at a master.
"""

from typing import Final

from skyrocket.broker.state.broker_set import BrokerSet
from skyrocket.protocol.codes import ResponseCode
from skyrocket.store.results import GetResult, GetStatus

_CORRECTED: Final = frozenset(
    {
        GetStatus.NO_MATCHED_LOGIC_QUEUE,
        GetStatus.NO_MESSAGE_IN_QUEUE,
        GetStatus.OFFSET_TOO_SMALL,
        GetStatus.OFFSET_OVERFLOW_ONE,
        GetStatus.OFFSET_OVERFLOW_BADLY,
        GetStatus.OFFSET_FOUND_NULL,
    }
)
MASTER_ID: Final = 0


class SlaveReads:
    """The rules of one slave."""

    def __init__(self, broker_set: BrokerSet, *, corrects_offsets: bool) -> None:
        self._set = broker_set
        self._corrects_offsets = corrects_offsets

    @property
    def _has_master(self) -> bool:
        return not self._set.is_looking

    def code(self, result: GetResult, code: ResponseCode, queue_offset: int) -> ResponseCode:
        """The code of the answer; an offset that this slave does not have stays as the consumer asked for it."""
        if not self._corrects_offsets and result.status in _CORRECTED:
            result.next_offset = queue_offset
            if code is ResponseCode.PULL_OFFSET_MOVED:
                is_ahead = queue_offset > result.max_offset
                code = ResponseCode.PULL_NOT_FOUND if is_ahead else ResponseCode.PULL_RETRY_IMMEDIATELY
        if code is not ResponseCode.SUCCESS and not result.suggest_slave and self._has_master:
            return ResponseCode.PULL_RETRY_IMMEDIATELY  # there, at the master
        return code

    def suggested(self, result: GetResult, broker_id: int) -> int:
        """Where the consumer shall ask next."""
        return MASTER_ID if self._has_master and not result.suggest_slave else broker_id
