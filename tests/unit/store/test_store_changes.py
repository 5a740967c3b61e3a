"""An open store can be told some things anew; the rest waits for the next open."""

import mmap
import os
from dataclasses import fields, replace
from pathlib import Path

from skyrocket.config.sections import StoreConfig
from skyrocket.store.changeable_settings import CHANGEABLE
from skyrocket.store.disk import Disk
from skyrocket.store.mapped_file_queue import MappedFileQueue
from skyrocket.store.retention import CleanReport
from skyrocket.testing.clock import FakeClock
from tests.unit.store.stores import FILE_SIZE, TOPIC, Stores, bodies, clean_expired, put

_HOUR_MS = 3_600_000


def test_only_what_can_change_in_an_open_store_is_changed(stores: Stores) -> None:
    store = stores.open()
    assert {field.name for field in fields(StoreConfig)} >= CHANGEABLE
    before = store.config
    other = replace(before, commit_log_file_size=2 * FILE_SIZE, file_reserved_hours=1, max_transfer_count_memory=2)
    store.change_settings(other)
    assert store.config == replace(other, commit_log_file_size=FILE_SIZE)
    for _ in range(5):
        put(store, b"x")
    store.dispatch()
    assert len(bodies(store.get(TOPIC, 0, 0))) == 2


def test_a_shorter_retention_counts_from_the_next_cleaning_on(stores: Stores, clock: FakeClock) -> None:
    store = stores.open(file_reserved_hours=72, delete_pause_ms=0)
    while store.commit_log.written_offset < 2 * FILE_SIZE:
        put(store, b"x" * 1000)
    store.dispatch()
    store.flush()
    for start in store.commit_log.files.starts:
        two_hours_ago = (clock.now_ms() - 2 * _HOUR_MS) / 1000
        os.utime(store.commit_log.files.path_of(start), (two_hours_ago, two_hours_ago))
    assert clean_expired(store) == CleanReport()
    store.change_settings(replace(store.config, file_reserved_hours=1))
    assert clean_expired(store).log_files == 2


def test_queues_of_unknown_topics_go_but_not_those_of_the_system_or_light_ones(stores: Stores) -> None:
    store = stores.open()
    for topic in (TOPIC, "Gone", "TBW102", "rmq_sys_wheel_timer", "%LMQ%light"):
        put(store, b"x", topic=topic)
    store.dispatch()
    assert store.removal.remove_unused({TOPIC}) == 1
    assert {queue.topic for queue in store.queues} == {TOPIC, "TBW102", "rmq_sys_wheel_timer", "%LMQ%light"}
    assert store.removal.remove_unused({TOPIC}) == 0


def test_advice_to_the_kernel_holds_for_files_that_are_mapped_later(tmp_path: Path) -> None:
    files = MappedFileQueue(Disk(), str(tmp_path), 4096, max_mapped=4)
    files.load()
    files.append_file(0)
    files.advise(mmap.MADV_RANDOM)
    files.append_file(4096)
    assert _advised(tmp_path) == [True, True]
    files.advise(mmap.MADV_NORMAL)
    files.append_file(8192)
    assert _advised(tmp_path) == [False, False, False]
    files.close()


def _advised(folder: Path) -> list[bool]:
    """Of each file that is mapped: whether the kernel knows that it is read at random places."""
    advised: list[bool] = []
    is_ours = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.startswith("VmFlags:"):
            advised += ["rr" in line.split()] if is_ours else []
        elif "-" in line.split(" ", 1)[0]:
            is_ours = f" {folder}/" in line
    return advised
