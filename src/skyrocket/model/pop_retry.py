"""Names of the topics that popped messages come back to when nobody acknowledged them.

%RETRY%group_topic      V1, the usual one
%RETRY%group+topic      V2: the sign occurs in no other name, so group and topic can be told apart
"""

from collections.abc import Callable
from enum import Enum

from skyrocket.model.topic import RETRY_PREFIX

_V1_SIGN = "_"
_V2_SIGN = "+"


class RetryMark(Enum):
    """Which kind of topic a popped message was read from; the first word of pop's offset lists."""

    NORMAL = "0"
    V1 = "1"
    V2 = "2"


def pop_retry_topic(group: str, topic: str, *, v2: bool = False) -> str:
    """The retry topic of a group for one topic; a retry topic is its own."""
    if topic.startswith(RETRY_PREFIX):
        return topic
    return f"{RETRY_PREFIX}{group}{_V2_SIGN if v2 else _V1_SIGN}{topic}"


def is_ambiguous(group: str, topic: str, is_group: Callable[[str], bool]) -> bool:
    """Whether the V1 name is also the retry topic of a group that is there.

    RocketMQ: group Shop that pops topic Orders reads, and fills, the retry topic of group Shop_Orders.
    """
    return is_group(f"{group}{_V1_SIGN}{topic}")


def normal_topic(topic: str, group: str) -> str:
    """The topic that a pop retry topic of a group belongs to; any other topic is its own."""
    prefix = RETRY_PREFIX + group
    rest = topic[len(prefix) :]
    return rest[1:] if topic.startswith(prefix) and rest[:1] in (_V1_SIGN, _V2_SIGN) and len(rest) > 1 else topic


def retry_mark(topic: str) -> RetryMark:
    """How a topic is marked in offset lists and receipts."""
    if not topic.startswith(RETRY_PREFIX):
        return RetryMark.NORMAL
    return RetryMark.V2 if _V2_SIGN in topic else RetryMark.V1


def real_topic(topic: str, group: str, mark: str) -> str:
    """The topic that a message was read from, by the mark of its receipt."""
    if mark == RetryMark.NORMAL.value:
        return topic
    return pop_retry_topic(group, topic, v2=mark == RetryMark.V2.value)
