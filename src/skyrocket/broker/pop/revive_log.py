"""Writes check points and acknowledgements into the revive log, each to arrive there when its time has come.

    check point          one second before its messages may be handed out again
    acknowledgement      at that time, so that it always follows its check point

They travel as timer messages: what pop has in hand survives a kill, and RocketMQ goes on with it. Where a slave acts as
master they go to the revive log of another broker, whose timer keeps them.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, Final, TypeVar

from skyrocket.broker.rules.put_rules import PutRules
from skyrocket.broker.rules.special_services import Puts, SpecialServices, put_elsewhere, put_here
from skyrocket.clock import Clock
from skyrocket.format.properties import encode_properties
from skyrocket.format.revive_log import CHECK_POINT_TAG, Acknowledgement, CheckPoint
from skyrocket.model import property_names as names
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from skyrocket.store.results import PutResult

T = TypeVar("T")

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
        special: SpecialServices | None = None,
    ) -> None:
        self.topic = topic
        self.is_ahead_of_disk = False  # something was put since the log was last forced to disk
        self._store = store
        self._rules = rules
        self._broker_host = broker_host  # packed
        self._clock = clock
        self.special = special or SpecialServices()

    def do(self, work: Puts[T]) -> T | Coroutine[Any, Any, T]:
        """Do what puts check points and acknowledgements; a coroutine where they go to another broker."""
        if self.special.acts and self.special.others is not None:
            return put_elsewhere(work, self.special.others)
        return self.do_here(work)

    def do_here(self, work: Puts[T]) -> T:
        """The same with this broker's own log; raises the refusals of the timer, for example of too long a time."""
        return put_here(work, self.put)

    def check_point(self, point: CheckPoint, revive_queue: int) -> PutMessage:
        """The message that puts a check point."""
        deliver_ms = point.revive_time - AHEAD_MS
        return self._message(revive_queue, point.encode(), CHECK_POINT_TAG, point.unique_key(), deliver_ms)

    def acknowledgement(self, ack: Acknowledgement, revive_queue: int, revive_time: int) -> PutMessage:
        """The message that puts an acknowledgement."""
        return self._message(revive_queue, ack.encode(), ack.tag, ack.unique_key(), revive_time)

    def put(self, messages: Sequence[PutMessage]) -> Sequence[PutResult]:
        """Put these messages here; raises the refusals of the timer."""
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
