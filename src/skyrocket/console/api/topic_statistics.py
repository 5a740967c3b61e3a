"""What the newest messages of a topic are like: asked for, not kept."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from skyrocket.client.core.message import ReceivedMessage
from skyrocket.console.api.endpoint import Call, Family
from skyrocket.console.cluster.message_search import MessageFilter, newest
from skyrocket.errors import DataError

family = Family("Statistics")

_SAMPLE: Final = 1000
_MOST_TAGS: Final = 50


@dataclass(frozen=True, slots=True)
class TopicStatistics:
    """Sizes are those of records in the log; `not_text` counts bodies that are no text."""

    messages: int
    smallest_bytes: int
    median_bytes: int
    p99_bytes: int
    largest_bytes: int
    with_key: int
    not_text: int
    tags: dict[str, int]  # most first


@family.get("/api/topics/{topic}/statistics")
async def topic_statistics(call: Call) -> TopicStatistics:
    """Sizes and tags of the newest thousand messages."""
    topic = call.path["topic"]
    found = await newest(call.admin, topic, MessageFilter(), from_ms=None, to_ms=None, queue=None, most=_SAMPLE)
    return _of(found.messages)


def _of(messages: list[ReceivedMessage]) -> TopicStatistics:
    sizes = sorted(message.size for message in messages) or [0]
    tags = Counter(message.tags or "" for message in messages)
    return TopicStatistics(
        len(messages),
        sizes[0],
        sizes[len(sizes) // 2],
        sizes[min(len(sizes) * 99 // 100, len(sizes) - 1)],
        sizes[-1],
        sum(bool(message.keys) for message in messages),
        sum(not _is_text(message) for message in messages),
        dict(tags.most_common(_MOST_TAGS)),
    )


def _is_text(message: ReceivedMessage) -> bool:
    try:
        message.body.decode()
    except (DataError, UnicodeDecodeError):
        return False
    return True
