"""How a worker logs: lines for people, or one JSON object per line; both say which message is being handled."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

from skyrocket.client import MessageContext

_CONTEXT: Final = ("topic", "group", "message_id", "queue", "reconsume_times")
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", *_CONTEXT}


class JsonLines(logging.Formatter):
    """One object per record: time, level, logger, message, what it is about, what was given as `extra`, traceback."""

    def format(self, record: logging.LogRecord) -> str:
        known: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        given = vars(record)
        known |= {name: given[name] for name in _CONTEXT if given.get(name) not in (None, "")}
        known |= {name: value for name, value in given.items() if name not in _OWN}
        if record.exc_info:
            known["traceback"] = self.formatException(record.exc_info)
        return json.dumps(known, default=str, ensure_ascii=False)


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
