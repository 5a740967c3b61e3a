"""How many queues a topic may be given.

RocketMQ sets no limit, and one question about all queues of a monstrous topic takes all of its memory.
"""

from skyrocket.protocol.errors import InvalidParameter

DEFAULT_MAX_QUEUES = 4096


class QueueLimit:
    """Shared by the tables of topics and groups: a group says how many queues its retry topic gets."""

    def __init__(self, most: int = DEFAULT_MAX_QUEUES) -> None:
        self.most = most

    def check(self, who: str, wanted: int, has: int = 0) -> None:
        """Raises InvalidParameter; what is there already may stay, whoever made it so wide."""
        if wanted > max(self.most, has):
            raise InvalidParameter(
                f"{who} would have {wanted} queues, and {self.most} are allowed; maxTopicQueueNums sets the number."
            )
