"""The pure parts of a pull: what it wants, and which code its outcome has."""

import pytest

from skyrocket.broker.processors.pull import response_code, subscription_of, wanted_codes
from skyrocket.format.java_hash import java_hash
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.codes import ResponseCode
from skyrocket.protocol.errors import SubscriptionParseFailed, SystemFailure
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


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_without_an_expression_everything_is_wanted(expression: str | None) -> None:
    assert wanted_codes(subscription_of("Orders", expression, None)) is None


def test_tags_are_split_and_trimmed() -> None:
    subscription = subscription_of("Orders", " red||blue || ||red", "TAG")
    assert subscription.tags == ("red", "blue")
    assert wanted_codes(subscription) == {java_hash("red"), java_hash("blue")}


def test_an_expression_of_separators_is_refused() -> None:
    with pytest.raises(SubscriptionParseFailed, match="parse the consumer's subscription failed"):
        subscription_of("Orders", " || ", "TAG")


def test_filters_by_property_are_refused() -> None:
    with pytest.raises(SystemFailure, match="does not support consumer to filter message by SQL92"):
        subscription_of("Orders", "a > 1", "SQL92")
    with pytest.raises(SystemFailure, match="SQL92"):
        wanted_codes(SubscriptionData("Orders", "a > 1", "SQL92"))


def test_a_class_filter_matches_everything_at_the_broker() -> None:
    assert wanted_codes(SubscriptionData("Orders", "red", tag_codes=(1,), is_class_filter=True)) is None
