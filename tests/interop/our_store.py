"""Our own store as the other side of an exchange: put drafts, read everything, in the same words as StoreReader."""

import base64
import ipaddress
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from skyrocket.clock import Clock, SystemClock
from skyrocket.config.sections import StoreConfig
from skyrocket.fastjson import Dialect
from skyrocket.format.compression import plain_body
from skyrocket.format.config_files import TOPICS, Topics
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import decode_record, decode_records, pack_host
from skyrocket.format.sys_flag import host_flags
from skyrocket.model.message import Host, StoredMessage
from skyrocket.model.topic_config import TopicConfig
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import GetStatus, PutResult
from skyrocket.store.topic_queue import TopicQueue
from tests.interop.rocketmq_store import Draft, KeyQuery, Line

STORE_PORT = 10911
BORN_PORT = 50000


@contextmanager
def opened(
    path: Path, config: StoreConfig, batch_topics: Container[str] = (), clock: Clock | None = None
) -> Iterator[MessageStore]:
    """A store that is closed cleanly at the end of the block."""
    store_host = Host(b"\x7f\x00\x00\x01", STORE_PORT)
    store = MessageStore(
        path,
        config,
        clock=clock or SystemClock(),
        store_host=store_host,
        is_batch_topic=lambda topic: topic in batch_topics,
    )
    store.open()
    try:
        yield store
    finally:
        store.close()


def put(store: MessageStore, draft: Draft) -> PutResult:
    born, stored = _host(draft.born_host, BORN_PORT), _host(draft.store_host, STORE_PORT)
    return store.put(
        PutMessage(
            topic=draft.topic,
            queue_id=draft.queue_id,
            body=draft.body,
            properties=encode_properties(draft.properties),
            flag=draft.flag,
            sys_flag=draft.sys_flag | host_flags(born, stored),
            born_timestamp=time.time_ns() // 1_000_000,
            born_host=pack_host(born),
            store_host=pack_host(stored),
        )
    )


def put_all(store: MessageStore, drafts: Iterable[Draft]) -> list[Line]:
    """Put every draft; returns them as they must be found again."""
    return [expected_line(draft, store_placement(put(store, draft))) for draft in drafts]


def store_placement(result: PutResult) -> Line:
    """Where a put went, as StoreReader's `appended` says it."""
    assert result.ok, result
    return {
        "physicalOffset": result.physical_offset,
        "queueOffset": result.queue_offset,
        "storeTimestamp": result.store_timestamp,
    }


def expected_line(draft: Draft, placement: Line) -> Line:
    """What a reader must find of a draft that was appended at a place."""
    return {
        "physicalOffset": placement["physicalOffset"],
        "queueOffset": placement["queueOffset"],
        "storeTimestamp": placement["storeTimestamp"],
        "topic": draft.topic,
        "queueId": draft.queue_id,
        "flag": draft.flag,
        "bornHost": _text(_host(draft.born_host, BORN_PORT)),
        "storeHost": _text(_host(draft.store_host, STORE_PORT)),
        "body": base64.b64encode(plain_body(draft.body, draft.sys_flag)).decode(),
        "properties": draft.properties,
    }


def found_lines(messages: Iterable[Line]) -> list[Line]:
    """Lines of a reader, in physical order, cut down to what `expected_line` knows."""
    known = expected_line(Draft("", 0, b""), {"physicalOffset": 0, "queueOffset": 0, "storeTimestamp": 0}).keys()
    lines = [{name: message[name] for name in known} for message in messages]
    return sorted(lines, key=lambda line: int(line["physicalOffset"]))


def read_everything(store: MessageStore) -> list[Line]:
    """Every message of every queue, as StoreReader's `message` lines."""
    return [message_line(message) for queue in store.queues for message in _pull(store, queue)]


def query_offsets(store: MessageStore, query: KeyQuery) -> list[int]:
    """Physical offsets of the answer to a query."""
    store.dispatch()
    tag = query.type == "T"
    found = store.query(query.topic, query.key, query.max_count, query.begin_ms, query.end_ms, tag=tag)
    return [decode_record(record).physical_offset for record in found]


def message_line(message: StoredMessage) -> Line:
    return {
        "physicalOffset": message.physical_offset,
        "size": message.record_size,
        "topic": message.topic,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp,
        "bornHost": _text(message.born_host),
        "storeTimestamp": message.store_timestamp,
        "storeHost": _text(message.store_host),
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCRC": message.body_crc,
        "body": base64.b64encode(plain_body(message.body, message.sys_flag)).decode(),
        "properties": message.properties,
    }


def _pull(store: MessageStore, queue: TopicQueue) -> Iterator[StoredMessage]:
    offset = queue.min_offset
    while offset < queue.max_offset:
        result = store.get(queue.topic, queue.queue_id, offset, 32)
        assert result.status is GetStatus.FOUND, (queue, offset, result.status)
        yield from decode_records(result.join())
        offset = result.next_offset


def _host(address: str, port: int) -> Host:
    return Host(ipaddress.ip_address(address).packed, port)


def _text(host: Host) -> str:
    """As Java writes it: no leading zeros, no `::`."""
    if len(host.address) == 4:
        return f"{ipaddress.ip_address(host.address)}:{host.port}"
    groups = [f"{int.from_bytes(host.address[at : at + 2]):x}" for at in range(0, 16, 2)]
    return f"[{':'.join(groups)}]:{host.port}"


def write_topics(store: Path, names: list[str], dialect: Dialect) -> None:
    config = store / "config"
    config.mkdir(exist_ok=True)
    topics = {name: TopicConfig(name, read_queues=4, write_queues=4) for name in names}
    (config / "topics.json").write_bytes(TOPICS.encode(Topics(topics=topics), dialect))
