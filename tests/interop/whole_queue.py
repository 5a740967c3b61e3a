"""All that a broker gives to consumers of one queue, whoever made the broker."""

from skyrocket.format.record import decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.protocol.requests.pulling import PullMessage
from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import PULL_CODES


async def messages_at(client: RemotingClient, broker: str, topic: str, queue_id: int) -> list[StoredMessage]:
    """From the first to the last; none of a queue that the broker does not have, or has not heard of yet."""
    found: list[StoredMessage] = []
    offset = 0
    while True:
        request = PullMessage(
            consumer_group="Readers",
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=256,
            sys_flag=0x4,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            expression_type="TAG",
        )
        try:
            reply = await client.call(broker, request, accepted=PULL_CODES, timeout_seconds=20)
        except RequestError:
            return found
        if reply.code != ResponseCode.SUCCESS:
            return found
        found += decode_records(reply.body)
        offset = reply.header.next_begin_offset
