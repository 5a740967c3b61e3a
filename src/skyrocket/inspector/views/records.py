"""Records of the commit log, in physical order."""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from skyrocket.errors import DataError
from skyrocket.format.compression import plain_body
from skyrocket.format.message_id import host_text, offset_message_id
from skyrocket.format.record import decode_record
from skyrocket.inspector.views.view import Column, Row, View
from skyrocket.model.message import StoredMessage
from skyrocket.offline.log_walk import LogWalk
from skyrocket.offline.offset_files import OffsetFiles

_COLUMNS = (
    Column("physicalOffset", "physical offset", "number"),
    Column("size", "size", "number"),
    Column("topic", "topic"),
    Column("queueId", "queue", "number"),
    Column("queueOffset", "offset", "number"),
    Column("storeTimestamp", "stored", "time"),
    Column("tags", "tags"),
    Column("keys", "keys"),
)
_BODY_SHOWN = 200


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Which records are wanted; None means any."""

    topic: str | None = None
    queue_id: int | None = None
    from_offset: int = 0  # a queue offset when a queue is given, else a physical offset
    key: str | None = None
    tag: str | None = None

    def wants(self, message: StoredMessage) -> bool:
        """Whether a record passes."""
        offset = message.queue_offset if self.queue_id is not None else message.physical_offset
        return (
            offset >= self.from_offset
            and self.topic in (None, message.topic)
            and self.queue_id in (None, message.queue_id)
            and self.tag in (None, message.tags)
            and (self.key is None or self.key == message.unique_key or self.key in message.keys)
        )

    @property
    def may_skip_before(self) -> int:
        """The physical offset before which no record can pass."""
        return self.from_offset if self.queue_id is None else 0


def records(
    log: OffsetFiles, wanted: RecordFilter, limit: int, *, body: bool, advance: Callable[[int], None] = lambda _: None
) -> View:
    """The records that pass a filter; a limit of 0 means all."""
    found = (message for message in _messages(log, wanted, advance) if wanted.wants(message))
    rows = (_row(message, body) for message in (islice(found, limit) if limit else found))
    columns = (*_COLUMNS, Column("shownBody", "body")) if body else _COLUMNS
    return View("record", "Records", columns, rows, when_empty="none that fits")


def _messages(
    log: OffsetFiles, wanted: RecordFilter, advance: Callable[[int], None] = lambda _: None
) -> Iterator[StoredMessage]:
    for run in LogWalk(log, advance):
        for start, end in zip(run.parts.positions.tolist(), run.parts.ends.tolist(), strict=True):
            if run.physical_offset + end > wanted.may_skip_before:
                yield decode_record(memoryview(run.window)[start:end])


def _row(message: StoredMessage, with_body: bool) -> Row:
    row = {
        "physicalOffset": message.physical_offset,
        "size": message.record_size,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "storeTimestamp": message.store_timestamp,
        "storeHost": host_text(message.store_host),
        "bornTimestamp": message.born_timestamp,
        "bornHost": host_text(message.born_host),
        "msgId": offset_message_id(message.store_host, message.physical_offset),
        "uniqueKey": message.unique_key,
        "tags": message.tags,
        "keys": message.keys,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCRC": message.body_crc,
        "bodyLength": len(message.body),
        "properties": message.properties,
    }
    return row | _body(message) if with_body else row


def _body(message: StoredMessage) -> dict[str, str]:
    """The inflated body as text, or in base64 when it is not text."""
    try:
        plain = plain_body(message.body, message.sys_flag)
    except DataError as error:
        return {"bodyProblem": str(error), "shownBody": f"({error})"}
    try:
        text = plain.decode("utf-8")
    except UnicodeDecodeError:
        return {"bodyBase64": base64.b64encode(plain).decode(), "shownBody": f"({len(plain)} bytes, not text)"}
    shown = text if len(text) <= _BODY_SHOWN else f"{text[:_BODY_SHOWN]}… ({len(text)} characters)"
    return {"body": text, "shownBody": shown}
