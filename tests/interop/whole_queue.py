"""All that a broker gives to consumers of one queue, whoever made the broker."""

from skyrocket.format.record import decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import RequestError
from skyrocket.remoting.client import RemotingClient
from tests.faults.broker_load import PULL_CODES
from tests.pulls import pull_at


async def messages_at(client: RemotingClient, broker: str, topic: str, queue_id: int) -> list[StoredMessage]:
    """From the first to the last; none of a queue that the broker does not have, or has not heard of yet."""
    found: list[StoredMessage] = []
    offset = 0
    while True:
        request = pull_at("Readers", topic, queue_id, offset, most=256)
        try:
            reply = await client.call(broker, request, accepted=PULL_CODES, timeout_seconds=20)
        except RequestError:
            return found
        if reply.code != ResponseCode.SUCCESS:
            return found
        found += decode_records(reply.body)
        offset = reply.header.next_begin_offset
