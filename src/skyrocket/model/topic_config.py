"""What a broker knows about a topic: its queues, who may read and write, and its attributes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from skyrocket.fastjson.bean import SINCE_5, one_of
from skyrocket.model.permission import PERM_INHERIT, PERM_READ, PERM_WRITE

SINGLE_TAG = "SINGLE_TAG"
MULTI_TAG = "MULTI_TAG"
MOST_QUEUES: Final = 65_536  # of one broker

SYS_FLAG_UNIT = 1
SYS_FLAG_UNIT_SUBSCRIPTION = 2


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
