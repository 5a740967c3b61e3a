"""What subscriptions want of a message."""

import pytest

from skyrocket.broker.rules.subscriptions import EVERYTHING, SQL92, Subscriptions
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import encode_properties
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import FilterDataNotExist, SubscriptionParseFailed, SystemFailure

TAGS_ONLY, BY_PROPERTY = Subscriptions(), Subscriptions(by_property=True)


@pytest.mark.parametrize("expression", [None, "", "*"])
def test_without_an_expression_everything_is_wanted(expression: str | None) -> None:
    assert TAGS_ONLY.filter_of(TAGS_ONLY.of_request("Orders", expression, None)) == EVERYTHING


def test_tags_are_split_and_trimmed() -> None:
    subscription = TAGS_ONLY.of_request("Orders", " red||blue || ||red", "TAG")
    assert subscription.tags == ("red", "blue")
    assert TAGS_ONLY.filter_of(subscription).tags_codes == {java_hash("red"), java_hash("blue")}


def test_an_expression_of_separators_is_refused() -> None:
    with pytest.raises(SubscriptionParseFailed, match="parse the consumer's subscription failed"):
        TAGS_ONLY.of_request("Orders", " || ", "TAG")


def test_filters_by_property_are_refused_where_they_are_not_enabled() -> None:
    subscription = SubscriptionData("Orders", "a > 1", SQL92)
    refusal = "The broker does not support consumer to filter message by SQL92"
    with pytest.raises(SystemFailure, match=refusal):
        TAGS_ONLY.of_request("Orders", "a > 1", SQL92)
    with pytest.raises(SystemFailure, match=refusal):
        TAGS_ONLY.filter_of(subscription)
    with pytest.raises(SystemFailure, match=refusal):
        TAGS_ONLY.check(subscription)


@pytest.mark.requirement("C145")
def test_a_class_filter_matches_everything_at_the_broker() -> None:
    assert TAGS_ONLY.filter_of(SubscriptionData("Orders", "red", tag_codes=(1,), is_class_filter=True)) == EVERYTHING


def test_properties_are_compared_at_the_record() -> None:
    wanted = BY_PROPERTY.filter_of(SubscriptionData("Orders", "a BETWEEN 1 AND 3 AND TAGS IS NOT NULL", SQL92))
    assert wanted.tags_codes is None
    assert wanted.properties is not None
    assert wanted.properties(encode_properties({"a": "2", "TAGS": "TagA"}))
    assert not wanted.properties(encode_properties({"a": "4", "TAGS": "TagA"}))
    assert not wanted.properties(encode_properties({"a": "2"}))


def test_an_expression_that_cannot_be_read_is_told_to_those_who_subscribed_by_it() -> None:
    broken = SubscriptionData("Orders", "a >", SQL92)
    with pytest.raises(FilterDataNotExist, match="Your expression may be wrong!"):
        BY_PROPERTY.filter_of(broken)
    with pytest.raises(SubscriptionParseFailed, match=r"Invalid MessageSelector\. .* at line 1, column 4"):
        BY_PROPERTY.check(broken)
    assert BY_PROPERTY.filter_of(broken, lenient=True) == EVERYTHING
