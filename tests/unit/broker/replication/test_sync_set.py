"""Who counts, when a message is safe, and what the controller is asked for."""

from skyrocket.broker.replication.sync_set import SyncRules, SyncSet


class Log:
    end = 100


def sync_set(*, all_members: bool = True, least: int = 1, replicas: int = 1) -> tuple[SyncSet, Log]:
    log = Log()
    rules = SyncRules(all_members=all_members, replicas=replicas, least_members=least)
    found = SyncSet(1, log.end, lambda: log.end, rules)
    found.adopt(frozenset({1}), 1)
    return found, log


def joined(found: SyncSet, *ids: int, epoch: int = 2) -> None:
    for broker_id in ids:
        found.join(broker_id, 0)
        found.acknowledge(broker_id, 100, 0)
    found.adopt(frozenset({1, *ids}), epoch)


def test_a_master_alone_in_its_set_confirms_by_itself() -> None:
    found, log = sync_set()
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    assert (settled, found.confirm_offset) == ([150], 150)


def test_a_message_is_safe_when_all_members_have_it() -> None:
    found, log = sync_set()
    joined(found, 2, 3)
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    found.acknowledge(2, 150, 1)
    assert (settled, found.confirm_offset) == ([], 100)
    found.acknowledge(3, 150, 1)
    assert (settled, found.confirm_offset) == ([150], 150)


def test_without_all_ack_so_many_replicas_do() -> None:
    found, log = sync_set(all_members=False, replicas=2)
    joined(found, 2, 3)
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    found.acknowledge(3, 150, 1)
    assert (settled, found.confirm_offset, found.held_by(150)) == ([150], 100, 2)


def test_a_member_that_is_gone_holds_everything_up_until_the_controller_has_dropped_it() -> None:
    found, log = sync_set()
    joined(found, 2, 3)
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    found.leave(3)
    found.acknowledge(2, 150, 1)
    assert settled == []
    assert found.proposal(1) == frozenset({1, 2})
    assert found.proposal(1) is None, "one request at a time"
    found.adopt(frozenset({1, 2}), 3)
    assert settled == [150]


def test_with_too_few_members_nothing_is_safe() -> None:
    found, log = sync_set(least=2)
    assert found.is_short
    joined(found, 2)
    assert not found.is_short
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    found.leave(2)
    found.proposal(1)
    found.adopt(frozenset({1}), 3)
    assert settled == [], "this broker alone has it, and two must"


def test_a_replica_becomes_a_member_when_it_has_all_that_may_be_acknowledged() -> None:
    found, log = sync_set()
    found.join(2, 0)
    found.acknowledge(2, 99, 0)
    assert found.proposal(0) is None
    found.acknowledge(2, 100, 0)
    assert found.proposal(0) == frozenset({1, 2})
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    assert settled == [], "it may be a member already"


def test_a_learner_never_becomes_a_member() -> None:
    found, _ = sync_set()
    found.join(2, 0, is_learner=True)
    found.acknowledge(2, 100, 0)
    assert found.proposal(0) is None


def test_a_member_that_lags_for_too_long_is_dropped() -> None:
    found, log = sync_set()
    joined(found, 2)
    log.end = 150
    found.acknowledge(2, 120, 1)
    assert found.proposal(14) is None
    assert found.proposal(17) == frozenset({1})


def test_a_member_that_keeps_up_while_the_log_grows_is_not_dropped() -> None:
    found, log = sync_set()
    joined(found, 2)
    for second in range(1, 60):
        log.end += 10
        found.acknowledge(2, log.end - 10, second)  # always one step behind
    assert found.proposal(60) is None


def test_what_was_refused_does_not_count_and_what_was_not_answered_does() -> None:
    found, log = sync_set()
    found.join(2, 0)
    found.acknowledge(2, 100, 0)
    assert found.proposal(0) == frozenset({1, 2})
    found.unanswered()
    found.leave(2)
    settled: list[int] = []
    log.end = 150
    found.wait(150, lambda: settled.append(150))
    assert settled == []
    assert found.proposal(1) is None
    found.still(1)
    assert settled == [150], "the controller, asked later, has not taken it"
    found.join(3, 0)
    found.acknowledge(3, 150, 0)
    assert found.proposal(2) == frozenset({1, 3})
    found.refused()
    assert found.counted == {1}


def test_an_older_word_of_the_controller_counts_for_nothing() -> None:
    found, _ = sync_set()
    joined(found, 2, epoch=5)
    found.adopt(frozenset({1}), 4)
    assert found.members == {1, 2}
