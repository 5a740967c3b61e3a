"""A message of the log on its way into the log again: delivered after its delay, or sent back by a consumer."""

from typing import NamedTuple

from skyrocket.errors import DataError
from skyrocket.format.crc import CRC_PROPERTY
from skyrocket.format.properties import find_property, whole_number, without_property
from skyrocket.format.property_bytes import REAL_QUEUE_ID, REAL_TOPIC
from skyrocket.format.record import PHYSICAL_OFFSET_AT, read_fixed, read_head
from skyrocket.store.commit_log import PutMessage


class StoredCopy(NamedTuple):
    """A message to be changed and put, and which broker stored it at first."""

    message: PutMessage
    store_host: bytes  # packed


def stored_copy(record: memoryview) -> StoredCopy:
    """The message of a whole record; raises CorruptRecord, also for a body that is not what was stored.

    Without that check the copy would get a fresh checksum, and nobody could tell any more that it is damaged.
    """
    physical_offset = int.from_bytes(record[PHYSICAL_OFFSET_AT : PHYSICAL_OFFSET_AT + 8], "big")
    head = read_head(record, 0, physical_offset, check_crc=True)
    assert head is not None, "the store hands out records, never the blank behind them"
    fixed, body_at = read_fixed(record)
    properties = head.properties
    if CRC_PROPERTY in properties:  # of the old record; the store seals the new one if that is wished
        properties = without_property(properties, CRC_PROPERTY)
    message = PutMessage(
        head.topic.decode("utf-8", "replace"),
        head.queue_id,
        bytes(record[body_at : body_at + fixed.body_length]),
        properties,
        flag=fixed.flag,
        sys_flag=head.sys_flag,
        born_timestamp=fixed.born_timestamp,
        born_host=fixed.born_host,
        reconsume_times=fixed.reconsume_times,
    )
    return StoredCopy(message, fixed.store_host)


def real_queue(properties: bytes) -> tuple[str, int]:
    """Topic and queue id that a message which waited belongs to; raises DataError.

    RocketMQ: the properties that say so are delivered with it, and so is DELAY.
    """
    topic, text = find_property(properties, REAL_TOPIC), find_property(properties, REAL_QUEUE_ID)
    queue_id = whole_number(text)
    if topic is None or queue_id is None:
        raise DataError(f"its properties REAL_TOPIC and REAL_QID are {topic!r} and {text!r}")
    return topic.decode("utf-8", "replace"), queue_id
