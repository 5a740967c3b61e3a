"""Messages as consumers get them, without a broker."""

from skyrocket.client.core.message import Message, ReceivedMessage, decode_messages, property_text
from skyrocket.format.record import encode_record
from skyrocket.model.message import Host, StoredMessage


def received(message: Message, unique_key: str = "C0A8000100002A") -> ReceivedMessage:
    """As it comes out of a pull."""
    host = Host(bytes([127, 0, 0, 1]), 10911)
    record = StoredMessage(
        topic=message.topic,
        queue_id=3,
        queue_offset=17,
        physical_offset=4711,
        record_size=0,
        flag=0,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        born_host=host,
        store_timestamp=1_700_000_000_123,
        store_host=host,
        reconsume_times=0,
        prepared_transaction_offset=0,
        body_crc=0,
        body=message.body,
    )
    (made,) = decode_messages(encode_record(record, property_text(message, unique_key).encode()), "broker-a")
    return made
