"""The store at a glance."""

from collections.abc import Iterator

from skyrocket.format.checkpoint import decode_checkpoint
from skyrocket.format.index_layout import IndexHeader
from skyrocket.inspector.views.view import Column, Row, View, as_bytes, as_time
from skyrocket.model.topic import LMQ_PREFIX
from skyrocket.model.words import counted
from skyrocket.offline.index_files import read_header
from skyrocket.offline.offset_files import read_at
from skyrocket.offline.queue_files import open_queues
from skyrocket.offline.store_files import StoreFiles, lock_holder

_FACTS = (Column("what", "what"), Column("value", "value"))
_TOPICS = (
    Column("topic", "topic"),
    Column("queues", "queues", "number"),
    Column("messages", "messages", "number"),
    Column("offsets", "queue: min–max"),
)


def summary(store: StoreFiles) -> Iterator[View]:
    """Facts about files, offsets and times; then a line per topic."""
    topics = list(_topics(store))
    yield View("summary", f"Store {store.root}", _FACTS, list(_facts(store, topics)))
    yield View("topic", "Topics", _TOPICS, topics, when_empty="no queues")


def _facts(store: StoreFiles, topics: list[Row]) -> Iterator[Row]:
    holder = lock_holder(store.lock)
    state = "unclean stop: `abort` is there, the next start runs recovery" if store.unclean else "closed in order"
    yield _fact("state", f"in use by process {holder}" if holder is not None else state, holder=holder)
    log = store.commit_log
    shown = f"{counted(len(log.files), 'file')} of {as_bytes(log.file_size)}, physical offsets {log.start} to {log.end}"
    yield _fact("commit log", shown, files=len(log.files), fileSize=log.file_size, start=log.start, end=log.end)
    messages = sum(int(row["messages"]) for row in topics if not str(row["topic"]).startswith(LMQ_PREFIX))
    yield _fact("messages", f"about {messages} (as the queues count)", count=messages)
    queues = len(store.queues) + len(store.batch_queues)
    yield _fact("queues", f"{queues:,} of {counted(len(topics), 'topic')}", queues=queues, topics=len(topics))
    headers = [read_header(path) for path in store.index_files]
    yield _index_fact(headers)
    checkpoint, _trusted = decode_checkpoint(read_at(store.checkpoint, 0, 4096))
    shown = f"log {as_time(checkpoint.physic_timestamp)}, queues {as_time(checkpoint.logics_timestamp)}, "
    shown += f"index {as_time(checkpoint.index_timestamp)}"
    yield _fact("checkpoint", shown if store.checkpoint.exists() else "missing", **checkpoint._asdict())
    names = sorted(path.name for path in store.config.iterdir()) if store.config.is_dir() else []
    kept = [name for name in names if not name.endswith(".bak")]
    yield _fact("config", ", ".join(kept) or "none", files=kept)
    if store.timer_log.files or store.timer_wheel.exists():
        yield _fact("timer", counted(len(store.timer_log.files), "log file"), files=len(store.timer_log.files))


def _fact(what: str, value: str, **facts: object) -> Row:
    return {"what": what, "value": value, **facts}


def _index_fact(headers: list[IndexHeader]) -> Row:
    entries = sum(header.next_number - 1 for header in headers)
    shown = f"{counted(len(headers), 'file')} with {counted(entries, 'entry', 'entries')}"
    if headers:
        shown += f", {as_time(headers[0].begin_timestamp)} to {as_time(headers[-1].end_timestamp)}"
    return _fact("index", shown, files=len(headers), entries=entries)


def _topics(store: StoreFiles) -> Iterator[Row]:
    ranges: dict[str, dict[int, tuple[int, int]]] = {}
    for (topic, queue_id), queue in open_queues(store):
        ranges.setdefault(topic, {})[queue_id] = (queue.min_offset(store.commit_log.start), queue.max_offset)
    for topic, by_queue in sorted(ranges.items()):
        shown = [f"{queue_id}: {low}–{high}" for queue_id, (low, high) in sorted(by_queue.items())]
        yield {
            "topic": topic,
            "queues": len(by_queue),
            "messages": sum(high - low for low, high in by_queue.values()),
            "offsets": "  ".join(shown[:8]) + ("  …" if len(shown) > 8 else ""),
        }
