"""Turns a store with RocksDB directories into one with JSON files; its queues are built from the log at the next start.

The directories are only read, then moved to `skyrocket.converted/`: nothing is lost, and a broker of Apache's can have
them back.
"""

from dataclasses import dataclass
from pathlib import Path

from skyrocket.errors import ConfigError, DataError, StoreError
from skyrocket.format.store_names import CONVERTED
from skyrocket.repair.key_value_configs import KeyValueConfigs
from skyrocket.store.directory import StoreDirectory
from skyrocket.store.disk import Disk
from skyrocket.store.layout import StorePaths
from skyrocket.store.strangers import key_value_stores


@dataclass(frozen=True, slots=True)
class Conversion:
    """What was found and written."""

    directories: list[str]
    topics: int
    groups: int
    offsets: int
    kept: Path


def convert(root: Path) -> Conversion | None:
    """Convert a store that no broker uses; None when it has no RocksDB directory. Raises StoreLocked while in use."""
    disk = Disk()
    found = key_value_stores(disk, str(root))
    if not found:
        return None
    directory = StoreDirectory(disk, StorePaths(str(root)))
    directory.lock()
    try:
        configs = KeyValueConfigs()
        for name in found:
            if name.startswith("config/"):
                _read(root / name, name, configs)
        kept = root / CONVERTED
        _refuse_to_overwrite(root, found, kept)
        if any(name.startswith("config/") for name in found):
            for file, content in configs.json_files().items():
                disk.replace_file(str(root / "config" / file), content)
        for name in found:
            (kept / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).rename(kept / name)
        disk.sync_all(str(root))
    finally:
        directory.unlock()
    queues = sum(len(table) for table in configs.offsets.values())
    return Conversion(found, len(configs.topics), len(configs.groups), queues, kept)


def read_configs(path: Path, name: str) -> KeyValueConfigs:
    """What one RocksDB directory holds; `name` is its place in a store, as config/topics. Raises StoreError."""
    configs = KeyValueConfigs()
    _read(path, name, configs)
    return configs


def _refuse_to_overwrite(root: Path, found: list[str], kept: Path) -> None:
    there = [kept / name for name in found if (kept / name).exists()]
    files = ("topics.json", "subscriptionGroup.json", "consumerOffset.json")
    if any(name.startswith("config/") for name in found):
        there += [root / "config" / name for name in files if (root / "config" / name).exists()]
    if there:
        names = ", ".join(str(path) for path in there)
        raise StoreError(f"already there: {names}. Move them out of the store and run the conversion again")


def _read(path: Path, name: str, configs: KeyValueConfigs) -> None:
    try:
        from rocksdict import AccessType, Options, Rdict
    except ImportError as error:
        raise ConfigError("reading RocksDB needs the package rocksdict: pip install 'skyrocket[rocksdb]'") from error
    families = Rdict.list_cf(str(path), Options(raw_mode=True))
    options = {family: Options(raw_mode=True) for family in families}
    try:
        database = Rdict(
            str(path), options=Options(raw_mode=True), column_families=options, access_type=AccessType.read_only()
        )
        try:
            for family in families:
                part = database if family == "default" else database.get_column_family(family)
                configs.add(name, family, ((key, value) for key, value in part.items() if isinstance(key, bytes)))
        finally:
            database.close()
    except (DataError, UnicodeDecodeError) as error:
        raise StoreError(f"{path}: {error}. Export it with mqadmin rocksDBConfigToJson instead") from error
