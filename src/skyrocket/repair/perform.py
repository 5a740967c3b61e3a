"""Carries out a repair: the old bytes are kept in `skyrocket.repaired/<number>/` before anything is changed."""

import os
from pathlib import Path

from skyrocket.format.store_names import ABORT, MANIFEST, REPAIRED, offset_name
from skyrocket.repair.damaged_ranges import DamagedRange, filler
from skyrocket.repair.plan import Action, RepairPlan, Step
from skyrocket.store.directory import StoreDirectory
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths
from skyrocket.store.message_store import MessageStore
from skyrocket.store.recovery import RecoveryReport


def perform(plan: RepairPlan) -> tuple[Path, RecoveryReport]:
    """Do all steps, then let the store recover; returns where the old bytes are. Raises StoreLocked while in use."""
    disk = Disk()
    directory = StoreDirectory(disk, StorePaths(str(plan.root)))
    directory.lock()
    try:
        kept = _new_directory(plan.root)
        for step in plan.steps:
            _do(disk, plan, step, kept)
        # What follows compares the whole log: a stop in between must not look like a clean one.
        disk.write_file(str(plan.root / ABORT), str(os.getpid()).encode())
        disk.sync_all(str(plan.root))
    finally:
        directory.unlock()
    store = MessageStore(plan.root, plan.config, is_batch_topic=plan.batch_topics.__contains__)
    report = store.open()
    store.close()
    return kept, report


def _new_directory(root: Path) -> Path:
    number = 1
    while (root / REPAIRED / str(number)).exists():
        number += 1
    kept = root / REPAIRED / str(number)
    kept.mkdir(parents=True)
    return kept


def _do(disk: Disk, plan: RepairPlan, step: Step, kept: Path) -> None:
    if step.action is Action.FILL:
        assert step.damaged is not None
        _fill(disk, plan, step.damaged, plan.root / step.target, kept)
        return
    _move(plan.root / step.target, kept / step.target)
    if step.action is Action.REBUILD_INDEX:
        # The manifest vouches for index files by name; without it the whole log is compared.
        _move(plan.root / MANIFEST, kept / MANIFEST)


def _move(path: Path, target: Path) -> None:
    if path.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)


def _fill(disk: Disk, plan: RepairPlan, damaged: DamagedRange, path: Path, kept: Path) -> None:
    file_size = plan.config.commit_log_file_size
    head = filler(damaged, file_size)
    if head is None:
        return  # too few bytes for anything: the verification behind it will say so
    position = damaged.start % file_size
    fd = disk.open(str(path))
    try:
        disk.write_file(str(kept / offset_name(damaged.start)), disk.read_at(fd, damaged.size, position))
        disk.write_at(fd, head, position)
        disk.sync(fd)
    finally:
        disk.close(fd)
