"""Which retry topics belong to a group."""

from skyrocket.console.cluster.retries import retry_topics

KNOWN = ("%RETRY%Shop", "%RETRY%Shop_Orders", "%RETRY%Shop+Orders", "%RETRY%Shop_Payments", "%RETRY%Shopping", "Orders")


def test_a_group_has_its_own_retry_topic_and_those_of_the_topics_that_it_pops() -> None:
    found = retry_topics("Shop", ["Orders"], ["Shop"], KNOWN)
    assert found == ["%RETRY%Shop", "%RETRY%Shop+Orders", "%RETRY%Shop_Orders"]


def test_the_retry_topic_of_another_group_is_not_taken_for_one_of_pops() -> None:
    found = retry_topics("Shop", ["Payments"], ["Shop", "Shop_Payments"], KNOWN)
    assert found == ["%RETRY%Shop"]


def test_a_topic_that_is_not_there_is_not_named() -> None:
    assert retry_topics("Billing", ["Orders"], ["Billing"], KNOWN) == []
