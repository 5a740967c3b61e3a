"""The same store recovered in both ways, by columns and record by record: nothing that can be seen may differ."""

import json
import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

from skyrocket.errors import CorruptFile
from skyrocket.format.crc import checked_text
from skyrocket.store import log_columns, log_scan
from skyrocket.store.log_scan import LogScan
from skyrocket.store.message_store import MessageStore
from tests.faults.damaged_store import Damaged
from tests.faults.harness import NEVER_MS
from tests.waiting import wait_until

# What threads do by the clock would be done in one way and not yet in the other.
_NO_TICKS: Any = dict.fromkeys(
    (
        "flush_interval_ms",
        "flush_thorough_interval_ms",
        "queue_flush_interval_ms",
        "queue_flush_thorough_interval_ms",
        "checkpoint_interval_ms",
        "clean_first_delay_ms",
    ),
    NEVER_MS,
)


@dataclass(frozen=True)
class Outcome:
    """All that a recovery left behind and said."""

    report: Any  # or why it was refused
    queues: list[tuple[Any, ...]]
    dispatched: tuple[int, ...]
    lines: list[str]
    files: dict[str, bytes]


def check_both_ways(subject: Damaged, directory: Path, batch_records: int) -> Damaged:
    """Recover two copies, one in each way, and compare; returns what the walk from record to record has left.

    Batches of a few records make both ways take turns often.
    """
    outcomes = []
    config = replace(subject.config, **_NO_TICKS)
    for by_columns in (True, False):
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(subject.root, directory)
        with (
            mock.patch.object(LogScan, "by_columns", by_columns),
            mock.patch.object(log_columns, "BATCH_RECORDS", batch_records),
            mock.patch.object(log_scan, "_BATCH", batch_records if by_columns else 4096),
        ):
            outcomes.append(recovered(replace(subject, root=directory, config=config)))
    ours, authority = outcomes
    for name in ("report", "lines", "queues", "dispatched"):
        assert getattr(ours, name) == getattr(authority, name), name
    assert ours.files.keys() == authority.files.keys()
    different = [name for name, content in ours.files.items() if content != authority.files[name]]
    assert not different, different
    return replace(subject, root=directory)


def recovered(subject: Damaged) -> Outcome:
    """Open a store, and let go of it as a killed process would."""
    with heard() as lines:
        try:
            with subject.opened(killed=True) as store:
                report: Any = replace(store.recovery, seconds=0.0) if store.recovery is not None else None
                queues, dispatched = queue_states(store), dispatched_to(store)
                wait_until(_index_is_on_disk)
        except CorruptFile as refusal:
            report, queues, dispatched = str(refusal), [], ()
    # Queues that still doubt a number speak in the order of their making, and light queues are made between batches.
    return Outcome(report, queues, dispatched, sorted(lines), _files(subject, is_refused=isinstance(report, str)))


def _index_is_on_disk() -> bool:
    """Full files of the index are forced to disk in threads, and the checkpoint says so then."""
    return not any(thread.name == "store-index-sync" for thread in threading.enumerate())


def _files(subject: Damaged, *, is_refused: bool) -> dict[str, bytes]:
    """All that does not depend on how many records are dispatched at once."""
    files = subject.files()
    for name, content in list(files.items()):
        if name == "skyrocket.manifest" and (text := checked_text(content)) is not None:
            files[name] = json.dumps(json.loads(text), sort_keys=True).encode()  # queues come as they were made
        elif is_refused and name.startswith(("consumequeue/", "batchconsumequeue/", "index/")):
            del files[name]  # it had begun to build them
        elif name.startswith("commitlog/") and not any(content):
            del files[name]  # perhaps the next one, which is made in a thread
    return files


def queue_states(store: MessageStore) -> list[tuple[Any, ...]]:
    """The state of every queue."""
    names = ("min_offset", "max_offset", "next_offset", "max_physical_offset", "damaged", "has_gap", "mended")
    return sorted(
        (key, type(queue).__name__, queue.confirmed_offset, *(getattr(queue, name) for name in names))
        for key, queue in store.queues.by_key.items()
    )


def dispatched_to(store: MessageStore) -> tuple[int, ...]:
    feeder = store.dispatcher
    return feeder.dispatched_offset, feeder.dispatched_timestamp, feeder.dispatched_record


@contextmanager
def heard() -> Iterator[list[str]]:
    """What is logged as a warning or worse."""
    lines: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.levelname} {record.getMessage()}")

    listener = Listener(logging.WARNING)
    logger = logging.getLogger("skyrocket.store")  # not what others in this process say
    logger.addHandler(listener)
    try:
        yield lines
    finally:
        logger.removeHandler(listener)
