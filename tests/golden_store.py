"""Stores written by Apache RocketMQ 5.4.0 and 4.9.7, and what its own classes read from them (tests/golden)."""

import json
import lzma
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from skyrocket.config.sections import StoreConfig

GOLDEN = Path(__file__).parent / "golden"
Line = dict[str, Any]


@dataclass(frozen=True)
class GoldenStore:
    """One directory of tests/golden, such as 5.4.0/clean."""

    version: str
    name: str

    def __str__(self) -> str:
        return f"{self.version}/{self.name}"

    @property
    def path(self) -> Path:
        return GOLDEN / self.version / self.name

    def extract(self, target: Path) -> Path:
        """Unpack the store directory, with the modification times that it had."""
        with tarfile.open(self.path / "store.tar.xz") as archive:
            # As an attribute: the argument of this name is younger than Python 3.11.2, that of Debian 12.
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)
            archive.extractall(target)
        return target

    @cache  # noqa: B019  there are seventeen of them
    def messages(self) -> list[Line]:
        """Every record in physical order, blanks among them."""
        whole = self.path / "messages.jsonl.xz"
        if whole.exists():
            return _lines(lzma.decompress(whole.read_bytes()))
        rest = _lines((self.path / "messages-not-in-killed.jsonl").read_bytes())
        first = rest[0]["physicalOffset"] if rest else 1 << 62
        killed = GoldenStore(self.version, "killed").messages()
        return [line for line in killed if line["physicalOffset"] < first] + rest

    def lines(self, name: str) -> list[Line]:
        """The lines of queues, index, timestamps or timer."""
        return _lines((self.path / f"{name}.jsonl").read_bytes())

    def json(self, name: str) -> Line:
        """store or checkpoint."""
        loaded: Line = json.loads((self.path / f"{name}.json").read_text())
        return loaded

    def config_of_broker(self, **changes: Any) -> StoreConfig:
        """The settings that the brokers ran with (tests/golden/README.md)."""
        settings: dict[str, Any] = {
            "commit_log_file_size": 262_144,
            "consume_queue_file_size": 2000,
            "batch_queue_file_size": 460,
            "index_slots": 500,
            "index_entries": 400,
            "index_tags": self.version == "5.4.0",
            "multi_dispatch": self.name == "lmq",
        }
        return StoreConfig(**(settings | changes))


def _lines(data: bytes) -> list[Line]:
    return [json.loads(line) for line in data.splitlines()]


GOLDEN_STORES = [GoldenStore(p.parent.name, p.name) for p in sorted(GOLDEN.glob("*/*")) if p.is_dir()]

# Stores whose log holds their whole history: nothing expired, nothing cut off, nothing rebuilt at another seam.
WHOLE_STORES = [
    GoldenStore(version, name)
    for version, names in {
        "5.4.0": ("clean", "ipv6", "crc", "lmq", "timer-roll", "killed"),
        "4.9.7": ("clean", "ipv6", "killed"),
    }.items()
    for name in names
]
