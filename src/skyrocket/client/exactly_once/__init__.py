"""Effects that happen once although messages may come twice (docs/guides/exactly-once.md).

Once          consumers: the message's business key is recorded in the same transaction as the handler's work
Outbox        producers: messages are written in the same transaction as the application's work …
OutboxRelay   … and sent after it was committed
"""

from skyrocket.client.exactly_once.business_key import NoBusinessKey, by_keys, by_message_id, by_property
from skyrocket.client.exactly_once.once import HandlerCommitted, Once
from skyrocket.client.exactly_once.outbox import Outbox
from skyrocket.client.exactly_once.relay import OutboxRelay

__all__ = [
    "HandlerCommitted",
    "NoBusinessKey",
    "Once",
    "Outbox",
    "OutboxRelay",
    "by_keys",
    "by_message_id",
    "by_property",
]
