"""What subscriptions want of a message."""

import pytest

from skyrocket.broker.rules.subscriptions import EVERYTHING, SQL92, Subscriptions
from skyrocket.format.java_hash import java_hash
from skyrocket.format.properties import encode_properties
from skyrocket.protocol.bodies.subscription import SubscriptionData
from skyrocket.protocol.errors import FilterDataNotExist, SubscriptionParseFailed, SystemBusy, SystemFailure
from skyrocket.testing.clock import FakeClock

TAGS_ONLY, BY_PROPERTY = Subscriptions(), Subscriptions(by_property=True)


def by_property() -> Subscriptions:
    """One that has read nothing yet."""
    return Subscriptions(by_property=True)


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


def test_a_condition_that_costs_too_much_is_refused_even_where_a_broken_one_is_let_pass() -> None:
    costly = SubscriptionData("T", " OR ".join(["a = 1"] * 5000), "SQL92")
    for lenient in (False, True):
        with pytest.raises(SubscriptionParseFailed, match="more than 2048 operands"):
            by_property().filter_of(costly, lenient=lenient)
    with pytest.raises(SubscriptionParseFailed, match="more than 2048 operands"):
        by_property().check(costly)


def test_the_costlier_a_condition_the_fewer_records_one_read_tries() -> None:
    cheap, costly = (SubscriptionData("T", " OR ".join(["a = 1"] * terms), "SQL92") for terms in (3, 1000))
    assert by_property().filter_of(cheap).look_at == 800
    assert by_property().filter_of(costly).look_at == 10


def test_tags_have_a_bound_too() -> None:
    with pytest.raises(SubscriptionParseFailed, match=r"8000000 signs, 65536 are allowed"):
        by_property().of_request("T", "a||" * 2_666_666 + "ab", None)
    many = SubscriptionData("T", "a||b", tags=(), tag_codes=tuple(range(5000)))
    with pytest.raises(SubscriptionParseFailed, match=r"5000 tags, 4096 are allowed"):
        by_property().filter_of(many)


def test_new_and_long_expressions_are_read_at_a_bounded_rate() -> None:
    clock = FakeClock()
    filters = Subscriptions(by_property=True, clock=clock)

    def read(number: int, terms: int) -> None:
        filters.filter_of(SubscriptionData("T", f"n{number} = 1" + f" OR n{number} = 1" * (terms - 1), "SQL92"))

    read(0, 900)  # nothing was read before: as long as it may be
    with pytest.raises(SystemBusy, match="too many new and long SQL92 expressions"):
        read(11, 900)
    read(0, 900)  # known
    read(99, 3)  # short
    clock.advance(seconds=4)
    read(100, 900)
