"""The broker's settings that the files themselves do not tell, from a `.conf` file and `--set key=value`."""

from dataclasses import dataclass
from pathlib import Path

from skyrocket.config.sections import StoreConfig
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import read_conf
from skyrocket.errors import ConfigError
from skyrocket.format.queue_entry import ENTRY_SIZE
from skyrocket.offline.index_files import IndexShape


@dataclass(frozen=True, slots=True)
class InspectionSettings:
    """What was given, and what the defaults fill in."""

    config: StoreConfig
    given: frozenset[str]

    @property
    def index_shape(self) -> IndexShape:
        return IndexShape(self.config.index_slots, self.config.index_entries)

    @property
    def file_sizes(self) -> dict[str, int]:
        """Sizes that were given; others are taken from the files."""
        sizes = {}
        if "mappedFileSizeCommitLog" in self.given:
            sizes["commitlog"] = self.config.commit_log_file_size
        if "mappedFileSizeConsumeQueue" in self.given:
            sizes["consumequeue"] = -(-self.config.consume_queue_file_size // ENTRY_SIZE) * ENTRY_SIZE
        return sizes


def inspection_settings(conf: Path | None, pairs: list[str]) -> InspectionSettings:
    """Later wins: defaults, then the file, then single settings. A `.conf` may hold keys of other parts."""
    from_file = read_conf(conf) if conf is not None else {}
    single = dict(_pair(text) for text in pairs)
    section_from(StoreConfig, single)  # a key that was typed must be known
    merged = from_file | single
    return InspectionSettings(section_from(StoreConfig, merged, allow_unknown=True), frozenset(merged))


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--set {text!r} is not of the form key=value, such as maxHashSlotNum=5000000")
    return key.strip(), value.strip()
