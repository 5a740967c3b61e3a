"""Messages as a producer sends them, and stores that are quiet but for what is measured."""

import os
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from bench.store.timing import warm_file
from skyrocket.config.sections import StoreConfig
from skyrocket.format.store_names import offset_name
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore

TOPIC = "BenchTopic"
QUEUES = [(TOPIC, queue_id) for queue_id in range(8)]
TAGS = ("created", "paid", "packed", "sent", "returned")
RECORD_OVERHEAD = 256  # about what head, topic and properties add to a body

# The caller dispatches, and nothing is forced to disk meanwhile: flushing has figures of its own.
QUIET = StoreConfig(dispatch_thread=False, flush_interval_ms=3_600_000, flush_thorough_interval_ms=3_600_000)

Queue = tuple[str, int]


def many_queues(count: int) -> list[Queue]:
    """So many queues, eight to a topic."""
    return [(f"{TOPIC}-{number // 8:05d}", number % 8) for number in range(count)]


def unique_key() -> str:
    return os.urandom(16).hex().upper()


def properties(tags: str, keys: str, unique: str) -> bytes:
    """What RocketMQ's producer sends with every message, and the cluster that the broker adds."""
    return (
        f"KEYS\x01{keys}\x02UNIQ_KEY\x01{unique}\x02CLUSTER\x01DefaultCluster\x02TAGS\x01{tags}\x02WAIT\x01true\x02"
    ).encode()


def messages(count: int, body_bytes: int, queues: Sequence[Queue] = QUEUES) -> list[PutMessage]:
    """Different messages, one queue after the other."""
    now = time.time_ns() // 1_000_000
    return [
        PutMessage(
            topic,
            queue_id,
            os.urandom(body_bytes),
            properties(TAGS[number % 5], f"order-{random.randrange(10**9):09d}", unique_key()),
            born_timestamp=now,
        )
        for number, (topic, queue_id) in enumerate(islice(cycle(queues), count))
    ]


def quiet_store(root: Path, **settings: object) -> MessageStore:
    """An open store whose owner dispatches and flushes."""
    store = MessageStore(root, replace(QUIET, **settings))  # type: ignore[arg-type]
    store.open()
    return store


def fill(store: MessageStore, batch: Iterable[PutMessage]) -> None:
    """Store messages and bring queues and index up to date, untimed."""
    for message in batch:
        result = store.put(message)
        assert result.ok, result.remark
    settle(store)


def settle(store: MessageStore) -> None:
    """Dispatch everything, also what still waits for the index."""
    store.dispatch()
    if store.index is not None:
        store.index.catch_up()


def warm_log(store: MessageStore, length: int) -> None:
    """Touch the pages that the next appends will write."""
    start = store.commit_log.written_offset % store.config.commit_log_file_size
    path = os.path.join(store.paths.commit_log, offset_name(store.commit_log.written_offset - start))
    warm_file(path, start, length)


def warm_index(store: MessageStore, messages: int) -> None:
    """Touch all hash slots and the entries of so many messages."""
    assert store.index is not None
    path = os.path.join(store.paths.index, store.index.names[-1])
    warm_file(path, 0, 4 * store.config.index_slots + 60 * messages)
