"""What slaves ask Skyrocket's masters beyond RocketMQ; Apache's answer that they do not know the code."""

from skyrocket.protocol.codes import RequestCode
from skyrocket.protocol.requests.header import Header, Int, Long, Request, request


@request(RequestCode.COMPARE_LOG_TAIL)
class CompareLogTail(Request[Header]):
    """Whether the master's log has the same bytes where the slave's log ends; refused when it has others."""

    end_offset: Long
    size: Int
    crc: Long
