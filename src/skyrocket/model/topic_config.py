"""What a broker knows about a topic: its queues, who may read and write, and its attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from skyrocket.fastjson.bean import SINCE_5, one_of

PERM_PRIORITY = 8  # RocketMQ: reserved, never valid in a topic
PERM_READ = 4
PERM_WRITE = 2
PERM_INHERIT = 1  # a template: topics created on first use copy it

SINGLE_TAG = "SINGLE_TAG"
MULTI_TAG = "MULTI_TAG"

SYS_FLAG_UNIT = 1
SYS_FLAG_UNIT_SUBSCRIPTION = 2

_LETTERS = ((PERM_READ, "R"), (PERM_WRITE, "W"), (PERM_INHERIT, "X"))


def is_valid_permission(permission: int) -> bool:
    """Whether a topic may have this permission."""
    return 0 <= permission < PERM_PRIORITY


def permission_text(permission: int) -> str:
    """As operators see it: 6 → `RW-`."""
    return "".join(letter if permission & bit else "-" for bit, letter in _LETTERS)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One topic on one broker."""

    name: Annotated[str, "topicName"]
    read_queues: Annotated[int, "readQueueNums"] = 16
    write_queues: Annotated[int, "writeQueueNums"] = 16
    permission: Annotated[int, "perm"] = PERM_READ | PERM_WRITE
    filter_type: Annotated[str, "topicFilterType", one_of(SINGLE_TAG, MULTI_TAG)] = SINGLE_TAG
    sys_flag: Annotated[int, "topicSysFlag"] = 0
    ordered: Annotated[bool, "order"] = False
    attributes: Annotated[Mapping[str, str], SINCE_5] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_readable(self) -> bool:
        return self.permission & PERM_READ != 0

    @property
    def is_writable(self) -> bool:
        return self.permission & PERM_WRITE != 0

    @property
    def is_template(self) -> bool:
        return self.permission & PERM_INHERIT != 0

    @property
    def message_type(self) -> str:
        return self.attributes.get("message.type", "NORMAL")

    @property
    def has_batch_queues(self) -> bool:
        """Whether a batch is kept as one record, and entries of queues stand for several messages."""
        return self.attributes.get("queue.type") == "BatchCQ"

    @property
    def cleanup_policy(self) -> str:
        return self.attributes.get("cleanup.policy", "DELETE")
