"""Rates by a clock that the test moves: never more than was allowed, and nobody is remembered for ever."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyrocket.broker.quotas.quota_table import MOST_QUOTAS, QUOTAS, QuotaTable
from skyrocket.broker.quotas.spenders import Spenders
from skyrocket.broker.quotas.token_bucket import TokenBucket
from skyrocket.model.quota import ACCOUNT, NAMESPACE, SEND_BYTES, SEND_MESSAGES, namespace_of
from skyrocket.protocol.errors import InvalidParameter, SystemBusy
from skyrocket.store.config_file import ConfigFile
from skyrocket.store.disk import Disk
from skyrocket.testing.clock import FakeClock


def table_in(folder: Path, clock: FakeClock) -> QuotaTable:
    return QuotaTable(ConfigFile(Disk(), str(folder / "quotas.json"), QUOTAS.decode, QUOTAS.encode), clock)


@settings(max_examples=200, deadline=None)
@given(
    rate=st.integers(1, 5000),
    steps=st.lists(st.tuples(st.integers(0, 700), st.integers(1, 300)), max_size=80),
)
def test_never_more_is_let_through_than_rate_times_time_and_one_burst(rate: int, steps: list[tuple[int, int]]) -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock, rate)
    let_through = 0
    for pause_ms, wanted in steps:
        clock.advance(ms=pause_ms)
        amount = min(wanted, rate)  # what fits into the bucket
        if bucket.wait_for(amount) == 0.0:
            bucket.take(amount)
            let_through += amount
        assert let_through <= rate * clock.monotonic() + bucket.burst + 1e-6


@settings(max_examples=100, deadline=None)
@given(rate=st.integers(1, 100), amounts=st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_whoever_waits_as_long_as_he_was_told_is_let_through(rate: int, amounts: list[int]) -> None:
    clock = FakeClock()
    bucket = TokenBucket(clock, rate)
    for amount in amounts:
        clock.advance(seconds=bucket.wait_for(amount) + 1e-6)
        assert bucket.wait_for(amount) == 0.0
        bucket.take(amount)
    assert sum(amounts) <= rate * clock.monotonic() + bucket.burst + max(amounts)  # a debt of one at most


def test_one_account_at_its_limit_takes_nothing_from_another(tmp_path: Path) -> None:
    clock = FakeClock()
    table = table_in(tmp_path, clock)
    table.set(ACCOUNT, "*", {SEND_MESSAGES: 10})
    accounts = Spenders(table, ACCOUNT, clock)
    alice, bob = accounts.find("alice"), accounts.find("bob")
    assert alice is not None
    assert bob is not None
    alice.take(SEND_MESSAGES, 10)
    clock.advance(ms=50)
    with pytest.raises(SystemBusy) as refused:
        alice.check_rate(SEND_MESSAGES, 1)
    bob.check_rate(SEND_MESSAGES, 10)
    assert refused.value.remark == (
        "[QUOTA] account alice: 10 messages/s (sendMessagesPerSecond) exceeded, retry in 50 ms"
    )
    assert (alice.exceeded[SEND_MESSAGES], bob.exceeded[SEND_MESSAGES]) == (1, 0)


def test_idle_accounts_are_forgotten_and_those_who_owe_something_are_not(tmp_path: Path) -> None:
    clock = FakeClock()
    table = table_in(tmp_path, clock)
    table.set(ACCOUNT, "*", {SEND_MESSAGES: 10})
    table.set(ACCOUNT, "carol", {SEND_MESSAGES: 10})
    accounts = Spenders(table, ACCOUNT, clock)
    for name in ("alice", "bob", "carol", "dora"):
        spender = accounts.find(name)
        assert spender is not None
        spender.take(SEND_MESSAGES, 30 if name == "bob" else 1)
        spender.connections = int(name == "dora")
    clock.advance(seconds=1)
    accounts.forget_idle()
    assert sorted(each.name for each in accounts) == ["bob", "carol", "dora"]


def test_however_many_names_are_tried_no_more_than_so_many_are_known(tmp_path: Path) -> None:
    clock = FakeClock()
    table = table_in(tmp_path, clock)
    table.set(NAMESPACE, "*", {SEND_MESSAGES: 10})
    namespaces = Spenders(table, NAMESPACE, clock, most=100)
    for number in range(1000):
        spender = namespaces.find(f"ns{number}")
        assert spender is not None
        spender.take(SEND_MESSAGES, 1)
    assert len(namespaces) == 100
    late = namespaces.find("ns999")
    assert late is not None
    with pytest.raises(SystemBusy, match="all others"):  # who comes too late shares one place with his like
        late.check_rate(SEND_MESSAGES, 1)
    clock.advance(seconds=100)
    assert namespaces.find("ns999") is not late


def test_another_limit_counts_at_once_and_what_was_used_of_a_limit_that_stays_is_kept(tmp_path: Path) -> None:
    clock = FakeClock()
    table = table_in(tmp_path, clock)
    table.set(ACCOUNT, "alice", {SEND_MESSAGES: 10, SEND_BYTES: 100})
    accounts = Spenders(table, ACCOUNT, clock)
    alice = accounts.find("alice")
    assert alice is not None
    alice.take(SEND_MESSAGES, 10)
    alice.take(SEND_BYTES, 100)
    table.set(ACCOUNT, "alice", {SEND_BYTES: 1000})
    accounts.limits_changed()
    alice.check_rate(SEND_BYTES, 1000)
    with pytest.raises(SystemBusy):
        alice.check_rate(SEND_MESSAGES, 1)
    table.remove(ACCOUNT, "alice")
    accounts.limits_changed()
    assert accounts.find("alice") is None


@pytest.mark.parametrize(
    ("subject", "name", "limits", "words"),
    [
        ("user", "alice", {SEND_MESSAGES: 1}, "subjectType is 'user': it must be one of account, namespace"),
        (ACCOUNT, "alice", {"sendMessages": 1}, "sendMessages is no quota: there are sendMessagesPerSecond,"),
        (ACCOUNT, "", {"topics": 1}, "topics is counted for who created topics"),
        (ACCOUNT, "", {"storedBytes": 1}, "storedBytes is counted for who created topics: whoever"),
        (NAMESPACE, "shop", {"connections": 1}, "connections is counted for each account, not for each namespace"),
        (ACCOUNT, "alice", {SEND_MESSAGES: 0}, "sendMessagesPerSecond is 0: it must be 1 or more, or -1 for no limit"),
        (ACCOUNT, "a\nb", {SEND_MESSAGES: 1}, "the name of the account must have at most 255 visible characters"),
    ],
)
def test_what_is_not_enforced_is_not_taken(
    tmp_path: Path, subject: str, name: str, limits: dict[str, int], words: str
) -> None:
    table = table_in(tmp_path, FakeClock())
    with pytest.raises(InvalidParameter) as refused:
        table.set(subject, name, limits)
    assert (refused.value.remark or "").startswith(words)
    assert len(table) == 0


def test_the_table_is_bounded_and_comes_back_from_its_file(tmp_path: Path) -> None:
    table = table_in(tmp_path, FakeClock())
    for number in range(MOST_QUOTAS):
        table.set(ACCOUNT, f"account{number}", {SEND_MESSAGES: number + 1})
    with pytest.raises(InvalidParameter, match="there are 1000 quotas already"):
        table.set(NAMESPACE, "one more", {SEND_MESSAGES: 1})
    table.set(ACCOUNT, "account7", {SEND_MESSAGES: -1})
    table.set(NAMESPACE, "shop", {"storedBytes": 1 << 40})
    table.save()
    again = table_in(tmp_path, FakeClock())
    again.load()
    assert again.content() == table.content()
    assert again.counting_for(ACCOUNT, "account7") is None


def test_a_kind_of_a_newer_release_in_the_file_is_left_alone_and_not_enforced(tmp_path: Path) -> None:
    (tmp_path / "quotas.json").write_text(
        '{"accounts":{"alice":{"sendMessagesPerSecond":5,"cpuSeconds":1},"bob":{"cpuSeconds":1}},"namespaces":{}}'
    )
    table = table_in(tmp_path, FakeClock())
    table.load()
    assert dict(table.of(ACCOUNT)) == {"alice": {"sendMessagesPerSecond": 5}}


def test_the_namespace_of_a_topic_is_what_stands_before_the_sign() -> None:
    for topic, namespace in (
        ("Orders", ""),
        ("shop%Orders", "shop"),
        ("%RETRY%shop%Group", "shop"),
        ("%DLQ%shop%Group", "shop"),
        ("%RETRY%Group", ""),
    ):
        assert namespace_of(topic) == namespace
