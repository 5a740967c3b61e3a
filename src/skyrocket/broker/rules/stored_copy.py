"""A message of the log on its way into the log again: delivered after its delay, or sent back by a consumer."""

from typing import NamedTuple

from skyrocket.format.properties import without_property
from skyrocket.format.record import CRC_PROPERTY, PHYSICAL_OFFSET_AT, head_struct, read_head
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
    layout = head_struct(head.sys_flag)
    fields = layout.unpack_from(record)
    properties = head.properties
    if CRC_PROPERTY in properties:  # of the old record; the store seals the new one if that is wished
        properties = without_property(properties, CRC_PROPERTY)
    message = PutMessage(
        head.topic.decode("utf-8", "replace"),
        head.queue_id,
        bytes(record[layout.size : layout.size + fields[14]]),
        properties,
        flag=fields[4],
        sys_flag=head.sys_flag,
        born_timestamp=fields[8],
        born_host=fields[9],
        reconsume_times=fields[12],
    )
    return StoredCopy(message, fields[11])
