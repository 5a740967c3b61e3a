"""Topics, groups and offsets as RocketMQ keeps them in RocksDB; pure functions over keys and values.

config/topics, config/subscriptionGroups    name                                            → JSON
config/consumerOffsets                      topic@group                                     → {"offsetTable":{…}}
config/metadata                             the three of them as families of one store
config/rdb, topics 3 and groups 4           0x01 table:2 0x02 length:2 name                 → 0x01 JSON
config/rdb, offsets 1                       0x01 0x0001 0x02 length:2 group 0x01 length:2 topic 0x01 queue:4 → offset:8
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct
from typing import Any

from skyrocket.errors import DataError
from skyrocket.fastjson import Dialect, dumps, loads
from skyrocket.format.config_files import CONSUMER_OFFSETS, SUBSCRIPTION_GROUPS, TOPICS

Items = Iterable[tuple[bytes, bytes]]

_OFFSETS, _TOPICS, _GROUPS = 1, 3, 4
_TABLE = Struct(">bhb")  # 0x01, table, 0x02
_LENGTH = Struct(">h")
_OFFSET = Struct(">q")
_QUEUE = Struct(">bi")  # 0x01, queue id


@dataclass(slots=True)
class KeyValueConfigs:
    """What was found, as the JSON files have it."""

    topics: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)
    offsets: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, directory: str, family: str, items: Items) -> None:
        """Take what one family of a RocksDB directory holds; others than those above hold nothing for a broker."""
        match (directory, family):
            case ("config/topics", "default") | ("config/metadata", "topic"):
                self.topics |= {key.decode(): loads(value) for key, value in items}
            case ("config/subscriptionGroups", "default") | ("config/metadata", "subscriptionGroup"):
                self.groups |= {key.decode(): loads(value) for key, value in items}
            case ("config/consumerOffsets", "default") | ("config/metadata", "consumerOffset"):
                self.offsets |= {key.decode(): _offset_table(key, value) for key, value in items}
            case ("config/rdb", "default"):
                for key, value in items:
                    self._add_v2(key, value)

    def _add_v2(self, key: bytes, value: bytes) -> None:
        if len(key) < _TABLE.size + _LENGTH.size or key[0] != 1 or key[3] != 2:
            return  # data versions and the list of tables
        _, table, _ = _TABLE.unpack_from(key)
        name, at = _text(key, _TABLE.size)
        if table in (_TOPICS, _GROUPS):
            (self.topics if table == _TOPICS else self.groups)[name] = loads(value[1:])
        elif table == _OFFSETS:
            topic, at = _text(key, at + 1)
            _, queue_id = _QUEUE.unpack_from(key, at)
            self.offsets.setdefault(f"{topic}@{name}", {})[str(queue_id)] = _OFFSET.unpack(value)[0]

    def json_files(self) -> dict[str, bytes]:
        """Name → content of the files that a broker reads; raises DataError where a value is not what it should be."""
        topic_file = TOPICS.decode(_text_of({"topicConfigTable": self.topics}))
        group_file = SUBSCRIPTION_GROUPS.decode(_text_of({"subscriptionGroupTable": self.groups}))
        offset_file = CONSUMER_OFFSETS.decode(_text_of({"offsetTable": self.offsets}))
        return {
            "topics.json": TOPICS.encode(topic_file, Dialect.V5_4),
            "subscriptionGroup.json": SUBSCRIPTION_GROUPS.encode(group_file, Dialect.V5_4),
            "consumerOffset.json": CONSUMER_OFFSETS.encode(offset_file, Dialect.V5_4),
        }


def _text(key: bytes, at: int) -> tuple[str, int]:
    """A text behind its length, and where it ends."""
    (length,) = _LENGTH.unpack_from(key, at)
    at += _LENGTH.size
    if length < 0 or at + length > len(key):
        raise DataError(f"a key with a text of {length} bytes: {key!r}")
    return key[at : at + length].decode(), at + length


def _offset_table(key: bytes, value: bytes) -> dict[str, int]:
    content = loads(value)
    table = content.get("offsetTable") if isinstance(content, dict) else None
    if not isinstance(table, dict):
        raise DataError(f"the offsets of {key.decode('utf-8', 'replace')} are not a table: {value[:80]!r}")
    return {str(queue): offset for queue, offset in table.items() if isinstance(offset, int)}


def _text_of(content: Any) -> bytes:
    return dumps(content, Dialect.V5_4)
