"""Checkpoint, configuration files and timers."""

from collections.abc import Iterator

from skyrocket.errors import DataError
from skyrocket.format.checkpoint import decode_checkpoint
from skyrocket.format.config_files import CONFIG_FILES
from skyrocket.format.timer_checkpoint import decode_timer_checkpoint
from skyrocket.inspector.views.view import Column, Row, View, as_time
from skyrocket.offline.config_files import decode_config
from skyrocket.offline.offset_files import read_at
from skyrocket.offline.store_files import StoreFiles
from skyrocket.offline.timer_files import read_timer_log, read_wheel

_VALUES = (Column("what", "what"), Column("value", "value", "number"), Column("meaning", "meaning"))
_CONFIG = (
    Column("file", "file"),
    Column("size", "bytes", "number"),
    Column("content", "content"),
    Column("problem", "problem"),
)
_UNITS = (
    Column("position", "position", "number"),
    Column("dueMs", "due", "time"),
    Column("writeTimeMs", "parked", "time"),
    Column("physicalOffset", "physical offset", "number"),
    Column("size", "size", "number"),
    Column("previous", "previous", "number"),
    Column("marks", "marks"),
)
_SLOTS = (
    Column("slot", "slot", "number"),
    Column("timeMs", "time", "time"),
    Column("messages", "messages", "number"),
    Column("first", "first unit", "number"),
    Column("last", "last unit", "number"),
)


def checkpoint(store: StoreFiles) -> View:
    """The stored values, and what recovery derives from them."""
    rows: list[Row] = []
    if store.checkpoint.exists():
        values, trusted = decode_checkpoint(read_at(store.checkpoint, 0, 4096))
        times = {
            "physicMsgTimestamp": values.physic_timestamp,
            "logicsMsgTimestamp": values.logics_timestamp,
            "indexMsgTimestamp": values.index_timestamp,
            "minTimestamp (derived)": values.min_timestamp,
            "minTimestampIndex (derived)": values.min_timestamp_index,
        }
        rows = [_value(name, value, as_time(value)) for name, value in times.items()]
        rows.append(_value("masterFlushedOffset", values.master_flushed_offset, "physical offset"))
        rows.append(_value("confirmPhyOffset", values.confirm_offset, "physical offset"))
        rows.append(_value("logicsPhysicalOffset", values.logics_physical_offset, "physical offset"))
        if values.flushed_offset:
            rows.append(_value("flushedOffset (seal)", values.flushed_offset, "physical offset"))
        if not trusted:
            rows.append(_value("trusted", 0, "a value is negative, or the seal does not fit"))
    return View("checkpoint", "Checkpoint", _VALUES, rows, when_empty="missing")


def config_files(store: StoreFiles) -> View:
    """Every configuration file that is known, and whether it can be read."""
    return View("config-file", "Configuration files", _CONFIG, list(_config_rows(store)), when_empty="none")


def timer(store: StoreFiles, limit: int) -> Iterator[View]:
    """Timer checkpoint, units of the timer log and used slots of the wheel; a limit of 0 means all."""
    yield View("timer-checkpoint", "Timer checkpoint", _VALUES, _timer_checkpoint_rows(store), when_empty="missing")
    units = read_timer_log(store).units
    marks = ((1 << 1, "roll"), (1 << 2, "cancel"))
    rows: list[Row] = [
        {
            "position": placed.position,
            "dueMs": placed.unit.slot_time_ms,
            "writeTimeMs": placed.unit.write_time_ms,
            "delayMs": placed.unit.delay_ms,
            "physicalOffset": placed.unit.physical_offset,
            "size": placed.unit.record_size,
            "previous": placed.unit.previous,
            "magic": placed.unit.magic,
            "topicHash": placed.unit.topic_hash,
            "marks": [mark for bit, mark in marks if placed.unit.magic & bit],
        }
        for placed in (units[:limit] if limit else units)
    ]
    yield View("timer-unit", f"Timer log: {len(units)} units", _UNITS, rows, when_empty="empty")
    slots = read_wheel(store)
    rows = [
        {
            "slot": index,
            "timeMs": slot.time_ms,
            "messages": slot.messages,
            "first": slot.first_position,
            "last": slot.last_position,
        }
        for index, slot in (slots[:limit] if limit else slots)
    ]
    yield View("timer-slot", f"Timer wheel: {len(slots)} used slots", _SLOTS, rows, when_empty="empty")


def _value(what: str, value: int, meaning: str) -> Row:
    return {"what": what, "value": value, "meaning": meaning}


def _timer_checkpoint_rows(store: StoreFiles) -> list[Row]:
    if not store.timer_checkpoint.exists():
        return []
    try:
        values = decode_timer_checkpoint(read_at(store.timer_checkpoint, 0, 4096))
    except DataError as error:
        return [_value("unreadable", 0, str(error))]
    return [
        _value("lastReadTimeMs", values.last_read_time_ms, as_time(values.last_read_time_ms)),
        _value("lastTimerLogFlushPos", values.log_flushed_position, "position in the timer log"),
        _value("lastTimerQueueOffset", values.queue_offset, "queue offset of rmq_sys_wheel_timer"),
        _value("masterTimerQueueOffset", values.master_queue_offset, "the same, of the master"),
    ]


def _config_rows(store: StoreFiles) -> Iterator[Row]:
    for name in CONFIG_FILES:
        for path in (store.config / name, store.config / f"{name}.bak"):
            if not path.exists():
                continue
            content, problem = decode_config(path, name)
            yield {
                "file": path.name,
                "size": path.stat().st_size,
                "content": _described(content) if problem is None else None,
                "problem": problem,
            }


def _described(content: object) -> str:
    """How many things each table of a file holds."""
    slots: tuple[str, ...] = getattr(type(content), "__slots__", ())
    tables = {name: getattr(content, name) for name in slots}
    counts = [f"{len(table)} {name}" for name, table in tables.items() if isinstance(table, dict | list)]
    return ", ".join(count for count in counts if not count.endswith("unknown"))
