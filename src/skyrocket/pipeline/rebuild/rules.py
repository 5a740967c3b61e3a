"""The settings by which a broker builds queues and index, and so a rebuild: file sizes and dispatch rules.

They are settings of the broker and not part of its store. The defaults are RocketMQ's.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from skyrocket.config.sections import StoreConfig
from skyrocket.config.sections.setting import section_from
from skyrocket.config.sources import read_conf
from skyrocket.errors import ConfigError
from skyrocket.format.config_files import TOPICS
from skyrocket.format.queue_entry import BATCH_ENTRY_SIZE, ENTRY_SIZE
from skyrocket.model.delay_level import DEFAULT_DELAY_LEVELS, parse_delay_levels
from skyrocket.offline.config_files import removed_queues


@dataclass(frozen=True)
class RebuildRules:
    """Sizes in bytes, as the broker's settings of the same names."""

    consume_queue_file_size: int = 300_000 * ENTRY_SIZE
    batch_queue_file_size: int = 300_000 * BATCH_ENTRY_SIZE
    index_slots: int = 5_000_000
    index_entries: int = 20_000_000
    index_tags: bool = True  # 5.4.0 and Skyrocket; false writes as 4.9 and 5.3 do
    light_queues: bool = True  # records have the properties for it only where the broker's enableMultiDispatch is on
    delay_levels: str = DEFAULT_DELAY_LEVELS
    batch_topics: frozenset[str] = field(default_factory=frozenset)
    removed_queues: dict[str, int] = field(default_factory=dict)  # "topic/queue id" → records before are not its own

    def __post_init__(self) -> None:
        if self.consume_queue_file_size < ENTRY_SIZE or self.batch_queue_file_size < BATCH_ENTRY_SIZE:
            raise ConfigError("a queue file must hold one entry at least: 20 bytes, or 46 in a batch queue")
        if self.index_slots < 1 or self.index_entries < 2:
            raise ConfigError("an index file needs one slot and two entries at least")
        try:
            parse_delay_levels(self.delay_levels)
        except ValueError as error:
            raise ConfigError(f"messageDelayLevel: {error}") from error

    @property
    def entries_per_file(self) -> int:
        """RocketMQ: sizes are rounded up to whole entries."""
        return -(-self.consume_queue_file_size // ENTRY_SIZE)

    @property
    def batch_entries_per_file(self) -> int:
        return -(-self.batch_queue_file_size // BATCH_ENTRY_SIZE)


def rules_of_broker(conf: Path) -> RebuildRules:
    """The rules that a broker with this .conf file follows."""
    config = section_from(StoreConfig, read_conf(conf), allow_unknown=True)
    return RebuildRules(
        consume_queue_file_size=config.consume_queue_file_size,
        batch_queue_file_size=config.batch_queue_file_size,
        index_slots=config.index_slots,
        index_entries=config.index_entries,
        index_tags=config.index_tags,
        light_queues=config.multi_dispatch,
        delay_levels=config.message_delay_levels,
    )


def rules_for(store: Path, rules: RebuildRules) -> RebuildRules:
    """What was given, and what the store itself says: its batch topics, and queues that were deleted."""
    path = store / "config" / "topics.json"
    topics = TOPICS.decode(path.read_bytes()).topics if path.exists() else {}
    return replace(
        rules,
        batch_topics=rules.batch_topics | {name for name, topic in topics.items() if topic.has_batch_queues},
        removed_queues=removed_queues(store) | rules.removed_queues,
    )
