"""What lies in a store directory that this store does not use: named at the start, and key-value stores refused.

RocketMQ can keep queues, topics, groups and offsets in RocksDB. To begin without them would look like an empty broker.
"""

import logging
import os

from skyrocket.errors import CorruptFile
from skyrocket.format import store_names as names
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths

log = logging.getLogger(__name__)

# Directories of RocksDB, and the setting of RocketMQ that makes them.
KEY_VALUE_STORES = {
    "consumequeue": "storeType=defaultRocksDB",
    "config/rdb": "configManagerVersion=v2",
    "config/topics": "storeType=defaultRocksDB",
    "config/subscriptionGroups": "storeType=defaultRocksDB",
    "config/consumerOffsets": "storeType=defaultRocksDB",
    "config/metadata": "useSingleRocksDBForAllConfigs=true",
}

_ROCKSDB_STORE = "rocksdbstore"  # 5.4.0 makes it always and leaves it empty

_OURS = {names.MANIFEST, names.CUT_LOG, names.CONVERTED, names.REPAIRED, f"{names.MANIFEST}.tmp"}
_KNOWN = _OURS | {
    names.COMMIT_LOG,
    names.QUEUES,
    names.BATCH_QUEUES,
    names.QUEUE_EXTENSIONS,
    names.INDEX,
    names.CONFIG,
    names.ABORT,
    f"{names.ABORT}.bak",
    names.CHECKPOINT,
    names.LOCK,
    names.TIMER_LOG,
    names.TIMER_WHEEL,
    f"{names.TIMER_WHEEL}.bak",
    "compaction",
    _ROCKSDB_STORE,
    *(f"{name}{end}" for name in (names.EPOCHS, names.IDENTITY) for end in ("", ".bak", ".tmp", "-temp", ".damaged")),
}
_TIMER_WHEEL_COPY = f"{names.TIMER_WHEEL}."


def key_value_stores(disk: Disk, root: str) -> list[str]:
    """The directories below a store that are RocksDB's."""
    return [name for name in KEY_VALUE_STORES if disk.exists(os.path.join(root, name, "CURRENT"))]


def look_at_strangers(disk: Disk, paths: StorePaths) -> None:
    """Name files and folders that are not known here; raises CorruptFile for a store of RocksDB."""
    found = key_value_stores(disk, paths.root)
    if found:
        settings = ", ".join(dict.fromkeys(KEY_VALUE_STORES[name] for name in found))
        raise CorruptFile(
            os.path.join(paths.root, found[0]),
            f"is a RocksDB store, which RocketMQ writes with {settings}; all of them: {', '.join(found)}",
            "Run `skyrocket convert` on the store: it writes the JSON files, and the queues are built from the log",
        )
    if _holds_records(disk, os.path.join(paths.root, _ROCKSDB_STORE)):
        log.warning(
            "timers, transactions or keys that RocketMQ keeps in RocksDB (timerRocksDBEnable, transRocksDBEnable, "
            "indexRocksDBEnable) are not read path=%s",
            os.path.join(paths.root, _ROCKSDB_STORE),
        )
    unknown = [name for name in disk.names(paths.root) if name not in _KNOWN and not name.startswith(_TIMER_WHEEL_COPY)]
    if unknown:
        log.warning("unknown files in the store, left alone path=%s names=%s", paths.root, ", ".join(unknown[:20]))


def _holds_records(disk: Disk, directory: str) -> bool:
    """Whether a RocksDB store has more than its own papers: a table, or something in its journal."""
    return any(
        name.endswith(".sst") or (name.endswith(".log") and disk.size(os.path.join(directory, name)) > 0)
        for name in disk.names(directory)
    )
