"""The words of quotas."""

import pytest

from skyrocket.model.quota import CONNECTIONS, KINDS, NEW_CONNECTIONS, SEND_BYTES, SEND_MESSAGES, STORED_BYTES, TOPICS


@pytest.mark.parametrize(
    ("kind", "limit", "says"),
    [
        (TOPICS, 1, "1 topic"),
        (TOPICS, 2, "2 topics"),
        (CONNECTIONS, 0, "0 connections"),
        (SEND_MESSAGES, 1, "1 message/s"),
        (SEND_BYTES, 1000, "1000 bytes/s"),
        (NEW_CONNECTIONS, 3, "3 new connections/s"),
        (STORED_BYTES, 1, "1 byte stored"),
    ],
)
def test_a_limit_of_one_is_said_as_one(kind: str, limit: int, says: str) -> None:
    assert KINDS[kind].amount(limit) == says
