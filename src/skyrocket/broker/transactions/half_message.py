"""The half of a transaction: a message that is stored but waits for its producer's word.

    RMQ_SYS_TRANS_HALF_TOPIC      REAL_TOPIC and REAL_QID say where it belongs, PGROUP whom to ask
        ▼ checked                 a copy behind all others, TRANSACTION_CHECK_TIMES one higher; the older one is passed
        ▼ committed               the real topic; its prepared transaction offset is where the half is in the log
        ▼ checked too often       TRANS_CHECK_MAX_TIME_TOPIC, as it is
        ▼ its master is lost      another broker, as it was sent

Copies are what RocketMQ writes, but for the application's flag: RocketMQ's copies lose it, ours do not.
"""

from dataclasses import dataclass, replace
from typing import Final

from skyrocket.broker.rules.put_rules import with_replaced
from skyrocket.broker.rules.stored_copy import stored_copy
from skyrocket.errors import DataError
from skyrocket.format import sys_flag as flags
from skyrocket.format.message_id import offset_message_id
from skyrocket.format.properties import find_property, whole_number, without_property
from skyrocket.format.property_bytes import (
    CHECK_IMMUNITY_SECONDS,
    HALF_QUEUE_OFFSET,
    KEYS,
    PRODUCER_GROUP,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_PREPARED,
    UNIQUE_KEY,
    WAIT_STORE_OK,
)
from skyrocket.format.record import PHYSICAL_OFFSET_AT, QUEUE_OFFSET_AT, encode_record, store_timestamp_at, unpack_host
from skyrocket.model.message import Host, StoredMessage
from skyrocket.model.topic import GIVEN_UP_TOPIC, HALF_TOPIC
from skyrocket.protocol.requests.server_to_client import CheckTransactionState
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.results import PutResult

HALF_QUEUE: Final = 0


@dataclass(frozen=True, slots=True)
class HalfMessage:
    """A half as it stands in the log; `message` is shared, so whoever changes it takes a copy."""

    message: PutMessage
    queue_offset: int
    physical_offset: int
    store_timestamp: int
    real_topic: str
    real_queue_id: int

    @property
    def unique_key(self) -> bytes:
        """What all copies of a half share: the transaction's id."""
        return find_property(self.message.properties, UNIQUE_KEY) or b""

    @property
    def producer_group(self) -> str:
        return _text(find_property(self.message.properties, PRODUCER_GROUP))

    @property
    def keys(self) -> str:
        return _text(find_property(self.message.properties, KEYS))

    @property
    def checks(self) -> int:
        """How often it was passed over, with or without a question; RocketMQ counts both."""
        return whole_number(find_property(self.message.properties, TRANSACTION_CHECK_TIMES)) or 0

    @property
    def first_queue_offset(self) -> int | None:
        """Where its first copy was; known of those with an immunity time that were passed over within it."""
        return whole_number(find_property(self.message.properties, HALF_QUEUE_OFFSET))

    def immunity_ms(self, timeout_ms: int) -> int | None:
        """The time of its own in which nobody asks about it; None without one."""
        text = find_property(self.message.properties, CHECK_IMMUNITY_SECONDS)
        if text is None:
            return None
        seconds = whole_number(text)
        return timeout_ms if seconds is None else seconds * 1000

    # ── where it goes ────────────────────────────────────────────────────────────────────────────────────────────────

    def checked(self) -> PutMessage:
        """The copy about which the producer is asked."""
        return self._changed(with_replaced(self.message.properties, TRANSACTION_CHECK_TIMES, b"%d" % (self.checks + 1)))

    def passed_over(self) -> PutMessage:
        """The copy that waits on, because the immunity time is not over."""
        first = self.queue_offset if self.first_queue_offset is None else self.first_queue_offset
        properties = with_replaced(self.message.properties, TRANSACTION_CHECK_TIMES, b"%d" % (self.checks + 1))
        properties = with_replaced(properties, WAIT_STORE_OK, b"false")
        return self._changed(with_replaced(properties, HALF_QUEUE_OFFSET, b"%d" % first))

    def resumed(self) -> PutMessage:
        """The copy that is checked from the beginning again."""
        return self._changed(with_replaced(self.message.properties, TRANSACTION_CHECK_TIMES, b"0"))

    def sent_again(self) -> PutMessage:
        """The half as its producer sent it, for another broker; that one asks the producer."""
        properties = self.message.properties
        for name in (REAL_TOPIC, REAL_QUEUE_ID, HALF_QUEUE_OFFSET):
            properties = without_property(properties, name)
        return replace(
            self.message,
            topic=self.real_topic,
            queue_id=self.real_queue_id,
            properties=with_replaced(properties, TRANSACTION_PREPARED, b"true"),
            sys_flag=self.message.sys_flag & ~flags.TRANSACTION_MASK | flags.TRANSACTION_PREPARED,
        )

    def given_up(self) -> PutMessage:
        """The copy for operators."""
        return replace(self.message, topic=GIVEN_UP_TOPIC, queue_id=0)

    def committed(self) -> PutMessage:
        """The message that consumers get."""
        properties = without_property(self.message.properties, REAL_TOPIC)
        return replace(
            self.message,
            topic=self.real_topic,
            queue_id=self.real_queue_id,
            properties=without_property(properties, REAL_QUEUE_ID),
            sys_flag=self.message.sys_flag & ~flags.TRANSACTION_MASK | flags.TRANSACTION_COMMIT,
            prepared_transaction_offset=self.physical_offset,
        )

    def _changed(self, properties: bytes) -> PutMessage:
        return replace(self.message, topic=HALF_TOPIC, queue_id=HALF_QUEUE, properties=properties)


def read_half(record: memoryview) -> HalfMessage:
    """The half in a record, of whatever topic; raises DataError for a message that is none, or a damaged one."""
    message, store_host = stored_copy(record)
    message.store_host = store_host
    topic = find_property(message.properties, REAL_TOPIC)
    queue_id = whole_number(find_property(message.properties, REAL_QUEUE_ID))
    if topic is None or queue_id is None:
        raise DataError("it is not a half message: REAL_TOPIC or REAL_QID is missing")
    return HalfMessage(
        message,
        int.from_bytes(record[QUEUE_OFFSET_AT : QUEUE_OFFSET_AT + 8], "big"),
        int.from_bytes(record[PHYSICAL_OFFSET_AT : PHYSICAL_OFFSET_AT + 8], "big"),
        store_timestamp_at(record, 0),
        _text(topic),
        queue_id,
    )


def question(
    half: HalfMessage, copy: PutMessage, placed: PutResult, broker: Host, name: str
) -> tuple[CheckTransactionState, bytes]:
    """What a producer is asked about a half whose copy has been put: the copy's place, the message as it will be."""
    key = _text(half.unique_key)
    assert copy.store_host is not None
    message = StoredMessage(
        topic=half.real_topic,
        queue_id=half.real_queue_id,
        queue_offset=placed.queue_offset,
        physical_offset=placed.physical_offset,
        record_size=0,
        flag=copy.flag,
        sys_flag=copy.sys_flag,
        born_timestamp=copy.born_timestamp,
        born_host=unpack_host(copy.born_host),
        store_timestamp=half.store_timestamp,  # RocketMQ: of the copy before
        store_host=unpack_host(copy.store_host),
        reconsume_times=copy.reconsume_times,
        prepared_transaction_offset=0,
        body_crc=0,
        body=copy.body,
    )
    header = CheckTransactionState(
        topic=HALF_TOPIC,
        tran_state_table_offset=placed.queue_offset,
        commit_log_offset=placed.physical_offset,
        msg_id=key,
        transaction_id=key,
        offset_msg_id=offset_message_id(broker, placed.physical_offset),
        broker_name=name,
    )
    return header, encode_record(message, with_replaced(copy.properties, WAIT_STORE_OK, b"false"))


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")
