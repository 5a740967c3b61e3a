"""How a worker logs: lines for people, or one JSON object per line; both say which message is being handled."""

import logging
import sys

from skyrocket.client import MessageContext
from skyrocket.observability.logs import JsonLines


class ContextLines(logging.Formatter):
    """For people: the message's id and topic in brackets, inside of handlers only."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        given = vars(record)
        if not given.get("message_id"):
            return text
        head, *rest = text.split("\n")
        return "\n".join([f"{head} [{given['topic']} {given['group']} {given['message_id']}]", *rest])


def set_up(*, as_json: bool, level: int) -> None:
    """For the whole process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(MessageContext())
    handler.setFormatter(
        JsonLines() if as_json else ContextLines("%(asctime)s %(levelname)s %(process)d %(name)s %(message)s")
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)
