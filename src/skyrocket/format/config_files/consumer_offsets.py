"""`consumerOffset.json`: how far each group has consumed each queue; `lmqConsumerOffset.json` with light queues too."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from skyrocket.fastjson import Dialect
from skyrocket.fastjson.bean import SINCE_5
from skyrocket.format.config_files.json_file import JsonFile
from skyrocket.model.data_version import DataVersion

_SEPARATOR = "@"


@dataclass(frozen=True, slots=True)
class ConsumerOffsets:
    """Content of the file: `topic@group` → queue id → next queue offset to consume.

    `topics_of_group` only repeats the keys; it is kept for the order of its names and made anew when written.
    `light_offsets`, `topic@group` → offset, is None in the ordinary file.
    """

    data_version: Annotated[DataVersion, SINCE_5] = field(default_factory=DataVersion)
    offsets: Annotated[dict[str, dict[int, int]], "offsetTable"] = field(default_factory=dict)
    topics_of_group: Annotated[dict[str, list[str]], "groupTopicMap", SINCE_5] = field(default_factory=dict)
    light_offsets: Annotated[dict[str, int] | None, "lmqOffsetTable"] = None
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)


_FILE = JsonFile(ConsumerOffsets)
decode = _FILE.decode


def offset_key(topic: str, group: str) -> str:
    """The outer key of the table."""
    return f"{topic}{_SEPARATOR}{group}"


def split_offset_key(key: str) -> tuple[str, str] | None:
    """Topic and group of a key; None when it is no such key."""
    parts = key.split(_SEPARATOR)
    return (parts[0], parts[1]) if len(parts) == 2 else None


def topics_by_group(keys: Iterable[str], like: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Which topics each group has offsets of; names that are in `like` keep its order and lead."""
    found: dict[str, dict[str, None]] = {}
    for topic, group in filter(None, map(split_offset_key, keys)):
        found.setdefault(group, {})[topic] = None
    ordered: dict[str, list[str]] = {}
    for group in [*(group for group in like if group in found), *found]:
        if group not in ordered:
            known = [topic for topic in like.get(group, ()) if topic in found[group]]
            ordered[group] = list(dict.fromkeys([*known, *found[group]]))
    return ordered


def encode(offsets: ConsumerOffsets, dialect: Dialect) -> bytes:
    """The bytes of the file."""
    repeated = {} if dialect is Dialect.V4_9 else topics_by_group(offsets.offsets, offsets.topics_of_group)
    return _FILE.encode(replace(offsets, topics_of_group=repeated), dialect)
