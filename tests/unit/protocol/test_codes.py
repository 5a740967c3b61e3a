"""The numbers of versions, and Java's order of keys."""

import pytest

from skyrocket.protocol.codes import OUR_VERSION, Version, version_name
from skyrocket.protocol.java_order import FROM_SINGLE_FIELD, java_map_order


@pytest.mark.parametrize(
    ("release", "ordinal"),
    [((4, 0, 0), 213), ((4, 9, 4), 401), ((4, 9, 7), 407), ((5, 0, 0), 413), ((5, 3, 3), 479), ((5, 4, 0), 493)],
)
def test_names_of_releases(release: tuple[int, int, int], ordinal: int) -> None:
    assert version_name(ordinal) == "V{}_{}_{}".format(*release)


def test_names_of_ordinals() -> None:
    assert OUR_VERSION == 493
    assert version_name(492) == "V5_4_0_SNAPSHOT"
    assert version_name(121) == "V3_4_9"
    assert version_name(120) == "120"
    assert version_name(Version.HIGHER_VERSION) == version_name(9999) == "HIGHER_VERSION"


def test_java_s_order_of_keys() -> None:
    register = "brokerName brokerAddr clusterName haServerAddr brokerId enableActingMaster compressed bodyCrc32".split()
    assert " ".join(java_map_order(register)) == (
        "brokerId bodyCrc32 clusterName brokerAddr enableActingMaster haServerAddr compressed brokerName"
    )
    send = "MSG_REGION TRACE_ON msgId queueId queueOffset transactionId".split()
    assert " ".join(java_map_order(send, FROM_SINGLE_FIELD)) == (
        "queueId transactionId msgId TRACE_ON MSG_REGION queueOffset"
    )


def test_the_map_grows_when_it_is_three_quarters_full() -> None:
    keys = [chr(code) for code in range(ord("a"), ord("a") + 13)]
    assert java_map_order(reversed(keys)) == keys
    # At 16 p and q share buckets with 0 and 1 of the row; at 32 they do not.
    assert java_map_order(["q", "a"]) == ["q", "a"]
    assert java_map_order(["q", *keys])[0] == "a"
