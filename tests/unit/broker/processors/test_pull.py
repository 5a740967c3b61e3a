"""Which code the outcome of a pull has."""

import pytest

from skyrocket.broker.pull.pull import response_code
from skyrocket.protocol.codes import ResponseCode
from skyrocket.store.results import GetStatus


@pytest.mark.parametrize("status", list(GetStatus))
def test_every_outcome_of_a_read_has_a_code(status: GetStatus) -> None:
    assert response_code(status, 0) in (0, 19, 20, 21)


@pytest.mark.parametrize(
    ("status", "offset", "code"),
    [
        (GetStatus.FOUND, 5, ResponseCode.SUCCESS),
        (GetStatus.NO_MATCHED_MESSAGE, 5, ResponseCode.PULL_RETRY_IMMEDIATELY),
        (GetStatus.MESSAGE_WAS_REMOVING, 5, ResponseCode.PULL_RETRY_IMMEDIATELY),
        (GetStatus.NO_MESSAGE_IN_QUEUE, 0, ResponseCode.PULL_NOT_FOUND),
        (GetStatus.NO_MESSAGE_IN_QUEUE, 1, ResponseCode.PULL_OFFSET_MOVED),
        (GetStatus.OFFSET_OVERFLOW_ONE, 5, ResponseCode.PULL_NOT_FOUND),
        (GetStatus.OFFSET_OVERFLOW_BADLY, 5, ResponseCode.PULL_OFFSET_MOVED),
        (GetStatus.OFFSET_TOO_SMALL, 5, ResponseCode.PULL_OFFSET_MOVED),
    ],
)
def test_a_client_is_told_what_rocketmq_tells(status: GetStatus, offset: int, code: ResponseCode) -> None:
    assert response_code(status, offset) is code
