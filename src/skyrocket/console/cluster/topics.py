"""Topics as the cluster has them: what kind each is, and what its queues hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from skyrocket.client.admin.places import BrokerPlace
from skyrocket.model.topic import DLQ_PREFIX, RETRY_PREFIX, is_system_topic
from skyrocket.model.topic_config import TopicConfig
from skyrocket.protocol.bodies.statistics import TopicStats

KINDS = ("NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "PRIORITY", "LITE", "RETRY", "DLQ", "SYSTEM")


@dataclass(frozen=True, slots=True)
class TopicShape:
    """One topic over all its brokers."""

    name: str
    kind: str
    brokers: tuple[str, ...]
    read_queues: int
    write_queues: int
    permission: int  # what all its brokers together allow


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """What its queues hold."""

    messages: int  # that can still be read
    total: int  # that were ever written
    newest_ms: int | None
    in_per_second: float | None


NO_FIGURES: Final = TopicFigures(0, 0, None, None)


def kind_of(name: str, config: TopicConfig | None = None) -> str:
    """The type of its messages, or what the system uses it for."""
    if name.startswith(DLQ_PREFIX):
        return "DLQ"
    if name.startswith(RETRY_PREFIX):
        return "RETRY"
    if is_system_topic(name):
        return "SYSTEM"
    kind = "NORMAL" if config is None else config.message_type
    return kind if kind in KINDS else "NORMAL"


def shapes(
    tables: Mapping[BrokerPlace, Mapping[str, TopicConfig]], names_of_system: Iterable[str] = ()
) -> dict[str, TopicShape]:
    """All topics of all masters; those that brokers name after themselves and their cluster belong to the system."""
    system = set(names_of_system)
    found: dict[str, list[tuple[str, TopicConfig]]] = {}
    for place, table in tables.items():
        for name, config in table.items():
            found.setdefault(name, []).append((place.broker_name, config))
    return {
        name: TopicShape(
            name,
            "SYSTEM" if name in system else kind_of(name, configs[0][1]),
            tuple(broker for broker, _ in configs),
            sum(config.read_queues for _, config in configs),
            sum(config.write_queues for _, config in configs),
            _allowed(config for _, config in configs),
        )
        for name, configs in sorted(found.items())
    }


def _allowed(configs: Iterable[TopicConfig]) -> int:
    allowed = 0
    for config in configs:
        allowed |= config.permission
    return allowed


def total_of(stats: Iterable[TopicStats]) -> int:
    """Messages that were ever written."""
    return sum(offset.max_offset for each in stats for offset in each.offsets.values())


def figures(stats: Iterable[TopicStats], in_per_second: float | None) -> TopicFigures:
    """The sum over brokers; the rate is the brokers' own where nothing better is known."""
    known = list(stats)
    offsets = [offset for each in known for offset in each.offsets.values()]
    told = [each.put_tps for each in known if each.put_tps is not None]
    return TopicFigures(
        sum(max(offset.max_offset - max(offset.min_offset, 0), 0) for offset in offsets),
        total_of(known),
        max((offset.last_update_timestamp for offset in offsets), default=0) or None,
        in_per_second if in_per_second is not None else (sum(told) if told else None),
    )
