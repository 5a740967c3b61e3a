"""Which entry of a policy decides."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.access.policies import (
    CUSTOM,
    DEFAULT,
    Acl,
    Entry,
    Policy,
    deciding_entry,
    is_address_or_network,
    is_in_range,
    resource_of,
)
from skyrocket.broker.access.required_permissions import CLUSTER, GET, GROUP, PUB, SUB, TOPIC, Permission

ORDERS = Permission(TOPIC, "orders", PUB)
DENIED, NOTHING = "the decision is deny.", "no matched policies."


def entry(resource: str, decision: str = "Allow", actions: str = "Pub", sources: str = "") -> Entry:
    meant = resource_of(resource)
    assert meant is not None
    names = tuple(actions.split(","))
    return Entry(meant, frozenset(names), decision, tuple(filter(None, sources.split(","))), names)


def acl(*custom: Entry, default: tuple[Entry, ...] = ()) -> Acl:
    return Acl("User:alice", (Policy(CUSTOM, custom), Policy(DEFAULT, default)))


@pytest.mark.parametrize(
    ("entries", "refusal"),
    [
        pytest.param([], NOTHING, id="nothing-is-allowed-by-itself"),
        pytest.param([entry("Topic:orders")], None, id="literal"),
        pytest.param([entry("Topic:ord*")], None, id="prefix"),
        pytest.param([entry("Topic:orders*")], None, id="prefix-of-the-same-length"),
        pytest.param([entry("Topic:*")], None, id="all-topics"),
        pytest.param([entry("*")], None, id="everything"),
        pytest.param([entry("Topic:order")], NOTHING, id="another-literal"),
        pytest.param([entry("Topic:bills*")], NOTHING, id="another-prefix"),
        pytest.param([entry("Group:orders")], NOTHING, id="another-kind"),
        pytest.param([entry("Topic:orders", actions="Sub")], NOTHING, id="another-action"),
        pytest.param([entry("Topic:orders", actions="All")], None, id="all-actions"),
        pytest.param([entry("Topic:orders", "Deny")], DENIED, id="denied"),
        pytest.param([entry("Topic:*"), entry("Topic:orders", "Deny")], DENIED, id="literal-before-any"),
        pytest.param([entry("Topic:*", "Deny"), entry("Topic:orders")], None, id="literal-before-any-allows-too"),
        pytest.param([entry("Topic:ord*", "Deny"), entry("Topic:orders")], None, id="literal-before-prefix"),
        pytest.param([entry("Topic:o*"), entry("Topic:ord*", "Deny")], DENIED, id="longer-prefix-first"),
        pytest.param([entry("Topic:o*", "Deny"), entry("Topic:ord*")], None, id="longer-prefix-first-allows-too"),
        pytest.param([entry("*", "Deny"), entry("Topic:*")], None, id="a-kind-before-any-kind"),
        pytest.param([entry("Topic:*", "Deny"), entry("*")], DENIED, id="a-kind-before-any-kind-denies-too"),
        pytest.param([entry("Topic:orders"), entry("Topic:orders", "Deny")], DENIED, id="deny-before-allow"),
        pytest.param([entry("Topic:orders", sources="10.0.0.1")], NOTHING, id="from-elsewhere"),
        pytest.param([entry("Topic:orders", sources="10.0.0.1,127.0.0.1")], None, id="from-here"),
        pytest.param([entry("Topic:orders", sources="127.0.0.0/8")], None, id="from-a-network"),
        pytest.param([entry("Topic:orders", "Deny", sources="10.0.0.1"), entry("*")], None, id="denied-elsewhere"),
    ],
)
def test_the_most_special_entry_decides(entries: list[Entry], refusal: str | None) -> None:
    for given_order in (entries, entries[::-1]):
        assert acl(*given_order).refusal_of(ORDERS, "127.0.0.1") == refusal


def test_defaults_are_asked_only_when_no_custom_entry_matches() -> None:
    default = (entry("Topic:orders", "Deny"),)
    assert acl(entry("*"), default=default).refusal_of(ORDERS, "127.0.0.1") is None
    assert acl(entry("Topic:bills"), default=default).refusal_of(ORDERS, "127.0.0.1") == DENIED
    assert acl(default=(entry("Topic:*"),)).refusal_of(ORDERS, "127.0.0.1") is None


def test_one_of_several_actions_is_enough() -> None:
    need = Permission(GROUP, "shop", SUB | GET)
    assert acl(entry("Group:shop", actions="Get")).refusal_of(need, "127.0.0.1") is None
    assert acl(entry("Group:shop", actions="Update,Sub")).refusal_of(need, "127.0.0.1") is None
    assert acl(entry("Group:shop", actions="Update")).refusal_of(need, "127.0.0.1") == NOTHING


@pytest.mark.parametrize("text", ["Topic:a", "Topic:a*", "Topic:*", "Group:g", "Cluster:c", "Namespace:n*", "*"])
def test_a_resource_is_shown_as_it_was_written(text: str) -> None:
    assert str(resource_of(text)) == text


@pytest.mark.parametrize("text", [None, "", " ", "Topic", "Topic:", ":a", "Any:a", "Queue:a", "Topica:b", "a*"])
def test_a_resource_that_means_nothing_is_none(text: str | None) -> None:
    assert resource_of(text) is None


def test_the_letter_case_of_a_kind_does_not_matter() -> None:
    assert str(resource_of("topic:A")) == "Topic:A"


def test_entries_for_the_same_resource_are_replaced_others_kept() -> None:
    before = acl(entry("Topic:a"), entry("Topic:b"))
    after = before.merged_with([Policy(CUSTOM, (entry("Topic:b", "Deny"), entry("Topic:c")))])
    assert [(str(e.resource), e.decision) for e in after.entries(CUSTOM)] == [
        ("Topic:a", "Allow"),
        ("Topic:b", "Deny"),
        ("Topic:c", "Allow"),
    ]


def test_a_policy_without_entries_is_dropped() -> None:
    resource = resource_of("Topic:a")
    assert resource is not None
    only = Acl("User:alice", (Policy(CUSTOM, (entry("Topic:a"),)),))
    assert only.without(DEFAULT, resource) == only
    assert only.without(CUSTOM, resource).policies == ()


@pytest.mark.parametrize(
    ("source", "span", "answer"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("10.0.3.4", "10.0.0.0/16", True),
        ("10.0.3.4", "10.0.9.9/16", True),  # bits behind the prefix do not count
        ("10.1.3.4", "10.0.0.0/16", False),
        ("fe80::1", "fe80::/16", True),
        ("fe80::1", "10.0.0.0/8", False),
        ("unknown", "10.0.0.0/8", False),
    ],
)
def test_sources_are_addresses_or_networks(source: str, span: str, answer: bool) -> None:
    assert is_in_range(source, span) is answer
    assert is_address_or_network(span)


@pytest.mark.parametrize("text", ["", "x", "10.0.0", "10.0.0.1/33", "10.0.0.*", "localhost"])
def test_other_texts_are_no_sources(text: str) -> None:
    assert not is_address_or_network(text)


# ── against a simple model ───────────────────────────────────────────────────────────────────────────────────────────

NAMES = st.text("ab", max_size=3)
RESOURCES = st.one_of(
    st.just("*"),
    st.builds("{}:{}".format, st.sampled_from(["Topic", "Group", "Cluster"]), NAMES.filter(bool)),
    st.builds("{}:{}*".format, st.sampled_from(["Topic", "Group", "Cluster"]), NAMES),
)
ENTRIES = st.builds(
    entry, RESOURCES, st.sampled_from(["Allow", "Deny"]), st.sampled_from(["Pub", "Sub", "Pub,Sub", "All"])
)
NEEDS = st.builds(Permission, st.sampled_from([TOPIC, GROUP, CLUSTER]), NAMES.filter(bool), st.sampled_from([PUB, SUB]))


def model(entries: list[Entry], need: Permission) -> str:
    """Said differently: go from the most special way to name the need to the least; the first that is there decides."""
    names = [str(need), *(f"{need.kind}:{need.name[:size]}*" for size in range(len(need.name), -1, -1)), "*"]
    for name in names:
        decisions = {
            e.decision for e in entries if str(e.resource) == name and (e.actions & need.actions or "All" in e.actions)
        }
        if decisions:
            return "Deny" if "Deny" in decisions else "Allow"
    return "nothing"


@given(st.lists(ENTRIES, max_size=6), NEEDS)
def test_the_deciding_entry_is_that_of_the_model(entries: list[Entry], need: Permission) -> None:
    found = deciding_entry(entries, need, "127.0.0.1")
    assert ("nothing" if found is None else found.decision) == model(entries, need)
