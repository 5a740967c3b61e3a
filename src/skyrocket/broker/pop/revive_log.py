"""Writes check points and acknowledgements into the revive log, each to arrive there when its time has come.

    check point          one second before its messages may be handed out again
    acknowledgement      at that time, so that it always follows its check point

They travel as timer messages: what pop has in hand survives a kill, and RocketMQ goes on with it.
"""

from collections.abc import Sequence
from typing import Final

from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.clock import Clock
from skyrocket.format.properties import encode_properties
from skyrocket.format.revive_log import CHECK_POINT_TAG, Acknowledgement, CheckPoint
from skyrocket.model import property_names as names
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult

AHEAD_MS: Final = 1000  # by so much a check point is ahead of its acknowledgements


class ReviveLog:
    """Puts check points and acknowledgements, delivered back by the timer when they are due."""

    def __init__(
        self,
        store: MessageStore,
        rules: PutRules,
        topic: str,
        broker_host: bytes,
        clock: Clock,
    ) -> None:
        self.topic = topic
        self.is_ahead_of_disk = False  # something was put since the log was last forced to disk
        self._store = store
        self._rules = rules
        self._broker_host = broker_host  # packed
        self._clock = clock

    def put_check_points(self, points: Sequence[CheckPoint], revive_queue: int) -> list[PutResult]:
        """Raises the refusals of the timer, for example of too long a time."""
        return self._put(
            [
                self._message(
                    revive_queue, point.encode(), CHECK_POINT_TAG, point.unique_key(), point.revive_time - AHEAD_MS
                )
                for point in points
            ]
        )

    def put_acknowledgement(self, ack: Acknowledgement, revive_queue: int, revive_time: int) -> PutResult:
        """Raises the refusals of the timer."""
        return self._put([self._message(revive_queue, ack.encode(), ack.tag, ack.unique_key(), revive_time)])[0]

    def _put(self, messages: list[PutMessage]) -> list[PutResult]:
        for message in messages:
            self._rules.apply(message)
        self.is_ahead_of_disk = True
        return self._store.intake.put_group(messages)

    def _message(self, queue_id: int, body: bytes, tag: str, unique_key: str, deliver_ms: int) -> PutMessage:
        properties = {names.TIMER_DELIVER_MS: str(max(deliver_ms, 0)), names.UNIQUE_KEY: unique_key, names.TAGS: tag}
        return PutMessage(
            self.topic,
            queue_id,
            body,
            encode_properties(properties),
            born_timestamp=self._clock.now_ms(),
            born_host=self._broker_host,
        )

    def force_to_disk(self) -> None:
        """Before offsets are saved that rest on it; from any thread. Raises OSError when the disk refuses."""
        if self.is_ahead_of_disk:
            self.is_ahead_of_disk = False
            if not self._store.flush():
                self.is_ahead_of_disk = True
                raise OSError("the log could not be forced to disk")
