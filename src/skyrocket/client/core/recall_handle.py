"""Recall handles as applications give them: checked, and refused in words that help."""

from skyrocket.client.core.errors import WrongUse
from skyrocket.errors import DataError
from skyrocket.format.recall_handle import decode_handle


def topic_and_broker(recall_handle: str) -> tuple[str, str]:
    """The topic and the broker that has the message of a handle; raises WrongUse."""
    try:
        handle = decode_handle(recall_handle)
    except DataError:
        raise WrongUse(
            f"{recall_handle!r} is not a recall handle: take it from the receipt of a delayed message"
        ) from None
    return handle.topic, handle.broker_name
