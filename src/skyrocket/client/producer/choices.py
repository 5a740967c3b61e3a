"""What is chosen for one send beside its message: checked where it was written, not where it is used."""

from typing import Any

from skyrocket.client.core.errors import WrongUse
from skyrocket.client.core.message import Message
from skyrocket.model.message_queue import MessageQueue


def check_choices(timeout: Any, queue: Any, retries: Any) -> None:
    """Raises WrongUse for one of another kind; None is no choice."""
    if timeout is not None and (not isinstance(timeout, int | float) or isinstance(timeout, bool)):
        raise WrongUse(f"timeout={timeout!r} is of the wrong kind: give a number of seconds")
    if retries is not None and (not isinstance(retries, int) or isinstance(retries, bool) or retries < 0):
        raise WrongUse(f"retries={retries!r} is of the wrong kind: give a whole number, 0 for no retry")
    if queue is not None and not isinstance(queue, MessageQueue):
        raise WrongUse(f"queue={queue!r} is no MessageQueue: `await producer.queues(topic)` lists those of a topic")


def check_message(method: str, given: Any) -> None:
    """Raises WrongUse for what is no message: only `send` takes a topic and a value."""
    if not isinstance(given, Message):
        raise WrongUse(f"{method} takes a Message, not {type(given).__name__}: Message.of('Orders', value) makes one")


def check_messages(method: str, given: Any) -> None:
    """The same for a list of them."""
    if isinstance(given, Message) or not isinstance(given, list | tuple):
        raise WrongUse(f"{method} takes a list of messages, not {type(given).__name__}: write {method}([message, …])")
    for each in given:
        check_message(method, each)
