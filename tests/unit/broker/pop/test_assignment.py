"""Who gets which queues when the broker shares them out."""

from hypothesis import given
from hypothesis import strategies as st

from skyrocket.broker.pop.assignment import STRATEGIES, Strategy, popped_queues, pulled_queues
from skyrocket.model.message_queue import MessageQueue

strategies = st.sampled_from(list(STRATEGIES.values()))
clients = st.integers(1, 12).map(lambda count: [f"c{number:02}" for number in range(count)])
queues = st.integers(1, 24).map(lambda count: [MessageQueue("T", "a", number) for number in range(count)])


@given(strategies, queues, clients)
def test_every_queue_is_pulled_by_exactly_one_client(
    strategy: Strategy, given_queues: list[MessageQueue], members: list[str]
) -> None:
    shares = [pulled_queues(strategy, given_queues, members, each) for each in members]
    assert sorted(queue for share in shares for queue in share) == given_queues
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(strategies, queues, clients, st.integers(-1, 14))
def test_every_queue_is_popped_by_somebody_and_nobody_idles(
    strategy: Strategy, given_queues: list[MessageQueue], members: list[str], shared_with: int
) -> None:
    shares = [popped_queues(strategy, given_queues, members, each, shared_with) for each in members]
    assert all(shares)
    popped = {queue for share in shares for queue in share}
    assert popped == set(given_queues) or popped == {MessageQueue("T", "a", -1)}


def test_the_shares_are_those_of_rocketmq() -> None:
    eight = [MessageQueue("T", "a", number) for number in range(8)]
    names = ["c0", "c1", "c2"]
    average = [[queue.queue_id for queue in pulled_queues(STRATEGIES["AVG"], eight, names, each)] for each in names]
    assert average == [[0, 1, 2], [3, 4, 5], [6, 7]]
    circle = STRATEGIES["AVG_BY_CIRCLE"]
    assert [queue.queue_id for queue in pulled_queues(circle, eight, names, "c1")] == [1, 4, 7]
    shared = popped_queues(STRATEGIES["AVG"], eight, names, "c2", 1)
    assert [queue.queue_id for queue in shared] == [6, 7, 0, 1, 2], "its own and those of the next"


def test_a_stranger_gets_nothing() -> None:
    queue = MessageQueue("T", "a", 0)
    assert pulled_queues(STRATEGIES["AVG"], [queue], ["c0"], "stranger") == []
