"""A process that writes into a store and reports every acknowledgement, to be killed at any moment.

`python -m tests.faults.writer_process <root> <mode> <first number>` prints a line for each put:
`A <number> <queue offset> <physical offset> <end offset>` as soon as it was answered, `D <number>` as soon as
everything up to this number was answered as being on disk.

Modes: `async`, `sync`, `pool` (the transient store pool), and `held`: the pool, whose
buffers are never committed; it stops before they are full, and waits to be killed.
"""

import os
import sys
import time
from typing import Any

from skyrocket.config.sections import FlushDiskType, StoreConfig
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import Durability
from skyrocket.testing.clock import FakeClock
from tests.faults.harness import Ledger, Put
from tests.unit.store.stores import wait_durable

_HOUR_MS = 3_600_000
CLOCK = FakeClock()  # for what the messages say; the store has the real one


def config_of(mode: str) -> StoreConfig:
    settings: dict[str, Any] = {
        "commit_log_file_size": 65_536,
        "consume_queue_file_size": 2000,
        "index_slots": 100,
        "index_entries": 300,
        "preallocate_bytes": 16_384,
        "flush_interval_ms": _HOUR_MS if mode == "held" else 5,
        "flush_thorough_interval_ms": _HOUR_MS if mode == "held" else 20,
        "queue_flush_interval_ms": 7,
        "queue_flush_thorough_interval_ms": 30,
        "queue_flush_least_pages": 0,
        "checkpoint_interval_ms": 5,
        "commit_interval_ms": _HOUR_MS if mode == "held" else 3,
        "commit_thorough_interval_ms": _HOUR_MS if mode == "held" else 200,
        "transient_pool": mode in ("pool", "held"),
        "flush_disk_type": FlushDiskType.SYNC_FLUSH if mode == "sync" else FlushDiskType.ASYNC_FLUSH,
    }
    return StoreConfig(**settings)


def nth_put(ledger: Ledger, number: int) -> Put:
    """The message with a number: the same in the writer and in the one who checks."""
    ledger.numbers = number - 1
    return ledger.new(("orders", "payments")[number % 2], number % 3, CLOCK, 20 + number * 37 % 600)


def main(root: str, mode: str, first: int) -> None:
    ledger = Ledger()
    with MessageStore(root, config_of(mode)) as store:
        os.write(1, b"O\n")
        number = first
        while True:
            put = nth_put(ledger, number)
            result = store.put(
                PutMessage(
                    put.topic,
                    put.queue_id,
                    put.body,
                    put.properties,
                    flag=len(put.body),
                    born_timestamp=put.born_timestamp,
                )
            )
            if not result.ok:
                sys.exit(f"{result.status}: {result.remark}")
            line = f"A {number} {result.queue_offset} {result.physical_offset} {result.end_offset}\n"
            os.write(1, line.encode())
            if mode == "held" and number - first == 50:
                time.sleep(3600)
            if mode == "sync" or (mode != "held" and number % 50 == 0):
                result = wait_durable(store, result)
                if result.durability is Durability.DISK:
                    os.write(1, f"D {number}\n".encode())
            number += 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
