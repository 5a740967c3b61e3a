"""What moving a group to another offset would do, before it is done."""

from dataclasses import dataclass

from skyrocket.model.message_queue import MessageQueue
from skyrocket.model.words import counted


@dataclass(frozen=True, slots=True)
class QueueMove:
    """One queue of a reset. Counts are of all its messages, also of those that the group's filter leaves out."""

    queue: MessageQueue
    committed: int | None  # None: the group has never consumed the queue
    target: int
    first: int  # what is still there
    end: int

    @property
    def skipped(self) -> int:
        """Messages that the group has not consumed, and never would."""
        return max(self.target - self._position, 0)

    @property
    def repeated(self) -> int:
        """Messages that the group has consumed, and would consume again."""
        return 0 if self.committed is None else max(self._position - max(self.target, self.first), 0)

    @property
    def left(self) -> int:
        """Messages that would wait for the group then."""
        return max(self.end - max(self.target, self.first), 0)

    @property
    def _position(self) -> int:
        """Where the group is among the messages that are there."""
        return self.first if self.committed is None else min(max(self.committed, self.first), self.end)


@dataclass(frozen=True, slots=True)
class ResetPreview:
    """A reset that has not happened."""

    group: str
    topic: str
    moves: tuple[QueueMove, ...]

    @property
    def skipped(self) -> int:
        return sum(move.skipped for move in self.moves)

    @property
    def repeated(self) -> int:
        return sum(move.repeated for move in self.moves)

    def __str__(self) -> str:
        return (
            f"group {self.group} in topic {self.topic}: {counted(self.skipped, 'message')} would be skipped, "
            f"{self.repeated} consumed again"
        )
