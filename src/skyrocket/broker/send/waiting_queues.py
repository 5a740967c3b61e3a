"""The queue in which a message waits that asks for a time, found with what is known of all that look like it.

The usual timer asks once, and for nothing else that has to do with time: its properties are put together from known
pieces. All others, delay levels among them, go by `put_rules`. Either way leads to the same bytes.
"""

import re
from typing import Final, NamedTuple

from skyrocket.broker.rules.put_rules import PutRules, is_special, real_properties
from skyrocket.format.recall_handle import handle_from, handle_head, recall_handle
from skyrocket.model.topic import TIMER_TOPIC
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.queue_table import QueueKey

_TIMER: Final = re.compile(rb"(?:\A|(?<=\x02))(TIMER_DELAY_SEC|TIMER_DELAY_MS|TIMER_DELIVER_MS)\x01([0-9]{1,18})\x02")
_TIMER_QUEUE: Final = (TIMER_TOPIC, 0)


class Destination(NamedTuple):
    """Topic and queue for which messages are sent."""

    key: QueueKey
    properties: bytes  # that say so while they wait elsewhere
    handle_head: bytes  # of their recall handles


class Postponed(NamedTuple):
    """What the sender of a message hears that waits for its time."""

    queue_id: int  # for which it was sent; not that in which it waits
    recall_handle: str  # of a timer


class WaitingQueues:
    """Finds them for one broker; `added` are the properties that it adds to every message."""

    def __init__(self, rules: PutRules, broker_name: str, added: bytes) -> None:
        self._rules = rules
        self._broker_name = broker_name
        self._added = added

    def destination(self, topic: str, queue_id: int) -> Destination:
        """What is known of all messages for a queue; not for retry topics and those in which messages wait."""
        return Destination((topic, queue_id), real_properties(topic, queue_id), handle_head(topic, self._broker_name))

    def find(
        self, destination: Destination, text: bytes, unique_key: bytes
    ) -> tuple[QueueKey, bytes, Postponed | None]:
        """The queue into which a message goes, and its properties; raises the refusals of its kind."""
        topic, queue_id = destination.key
        asked = _TIMER.search(text)
        if asked is not None and _is_only_a_timer(text):
            out_ms = self._rules.timers.step_for(asked[1], asked[2])
            if out_ms is None:
                return destination.key, text + self._added, None
            properties = b"%b%bTIMER_OUT_MS\x01%d\x02%b" % (text, self._added, out_ms, destination.properties)
            return (
                _TIMER_QUEUE,
                properties,
                Postponed(queue_id, handle_from(destination.handle_head, out_ms, unique_key)),
            )
        message = PutMessage(topic, queue_id, b"", text + self._added)
        if is_special(text):
            self._rules.apply(message)
        if message.topic == topic:  # in the past, or no word of time after all
            return destination.key, message.properties, None
        handle = ""
        if message.topic == TIMER_TOPIC:
            handle = recall_handle(message.properties, self._broker_name, unique_key.decode())
        return (message.topic, message.queue_id), message.properties, Postponed(queue_id, handle)


def _is_only_a_timer(text: bytes) -> bool:
    return text.count(b"TIMER_") == 1 and b"DELAY\x01" not in text and b"REAL_" not in text
