"""Which message is being handled, in every log record that its handler causes.

    handler = logging.StreamHandler()
    handler.addFilter(MessageContext())
    handler.setFormatter(logging.Formatter("%(levelname)s %(topic)s %(message_id)s %(group)s %(message)s"))

It belongs to a handler of `logging`, not to a logger: loggers do not filter what comes from loggers below them.
"""

import logging

from skyrocket.client.consumer.handlers import current_group, current_message


class MessageContext(logging.Filter):
    """Adds `topic`, `message_id`, `group`, `queue` and `reconsume_times`; outside of handlers they are empty.

    What a log call gives itself (`extra={"topic": …}`) stays. In batch handlers it is the first message.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        message = current_message.get(None)
        given = vars(record)
        given.setdefault("group", current_group.get(""))
        if message is None:
            for name in ("topic", "message_id", "queue", "reconsume_times"):
                given.setdefault(name, "")
            return True
        given.setdefault("topic", message.topic)
        given.setdefault("message_id", message.message_id)
        given.setdefault("queue", f"{message.broker_name}:{message.queue_id}@{message.queue_offset}")
        given.setdefault("reconsume_times", message.reconsume_times)
        return True
