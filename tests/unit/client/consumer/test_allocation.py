"""Sharing queues: RocketMQ's own examples, and what must hold for every group."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyrocket.client.consumer.allocation import AllocationStrategy, Averagely
from skyrocket.client.consumer.other_allocations import (
    AveragelyByCircle,
    ByConfig,
    ByMachineRoom,
    ConsistentHash,
    MachineRoomNearby,
    md5_hash,
)
from skyrocket.model.message_queue import MessageQueue
from tests import ROOT


def queues_of(count: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("TopicTest", broker, number) for number in range(count)]


def ids_of(count: int) -> list[str]:
    return [f"10.0.0.{number}@{number}#{number}" for number in range(1, count + 1)]


def shares(strategy: AllocationStrategy, queues: list[MessageQueue], ids: list[str]) -> list[list[int]]:
    return [[queue.queue_id for queue in strategy("G", own, queues, ids)] for own in ids]


@pytest.mark.requirement("A074", "A075", "B040")
@pytest.mark.parametrize(
    ("strategy", "queues", "members", "expected"),
    [
        (Averagely(), 8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (Averagely(), 5, 3, [[0, 1], [2, 3], [4]]),
        (Averagely(), 2, 3, [[0], [1], []]),
        (Averagely(), 9, 4, [[0, 1, 2], [3, 4], [5, 6], [7, 8]]),
        (AveragelyByCircle(), 8, 3, [[0, 3, 6], [1, 4, 7], [2, 5]]),
    ],
)
def test_shares_are_those_of_rocketmq(
    strategy: AllocationStrategy, queues: int, members: int, expected: list[list[int]]
) -> None:
    assert shares(strategy, queues_of(queues), ids_of(members)) == expected


@pytest.mark.requirement("A076")
def test_the_hash_ring_is_that_of_rocketmq() -> None:
    ids = ["10.0.0.1@1#1", "10.0.0.2@2#2", "10.0.0.3@3#3"]
    owners = {
        queue: letter
        for letter, own in zip("ABC", ids, strict=True)
        for queue in ConsistentHash()("G", own, queues_of(8), ids)
    }
    assert "".join(owners[queue] for queue in queues_of(8)) == "CACABBCB"
    assert md5_hash("MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=0]") == 1987926524
    assert ConsistentHash(virtual_nodes=0)("G", ids[0], queues_of(8), ids) == []


@pytest.mark.requirement("A077")
def test_a_machine_room_serves_itself() -> None:
    near = queues_of(8, "room1@broker")
    assert shares(ByMachineRoom({"room1"}), near + queues_of(3, "room2@b"), ids_of(3)) == [
        [0, 1, 6],
        [2, 3, 7],
        [4, 5],
    ]
    queues = sorted(near + queues_of(4, "room2@broker") + queues_of(2, "room3@broker"))
    strategy = MachineRoomNearby(
        Averagely(), lambda queue: queue.broker_name.split("@")[0], lambda own: f"room{own[-1]}"
    )
    ids = ["c-1", "d-1", "e-2"]
    owned = {own: strategy("G", own, queues, ids) for own in ids}
    assert strategy.name == "MACHINE_ROOM_NEARBY-AVG"
    assert {queue.broker_name for queue in owned["e-2"]} == {"room2@broker"}
    assert sorted(queue for mine in owned.values() for queue in mine) == queues
    with pytest.raises(ValueError, match="no machine room is known"):
        MachineRoomNearby(Averagely(), lambda queue: "", lambda own: "x")("G", "c-1", queues, ids)


def test_a_fixed_list_stays_fixed() -> None:
    fixed = ByConfig((MessageQueue("T", "b", 3),))
    assert fixed("G", "", [], []) == [MessageQueue("T", "b", 3)]


STRATEGIES = st.sampled_from([Averagely(), AveragelyByCircle(), ConsistentHash(), ConsistentHash(virtual_nodes=1)])


@given(STRATEGIES, st.integers(1, 40), st.integers(1, 12))
def test_every_queue_has_exactly_one_owner(strategy: AllocationStrategy, queues: int, members: int) -> None:
    owned = [queue for mine in shares(strategy, queues_of(queues), ids_of(members)) for queue in mine]
    assert sorted(owned) == list(range(queues))


@given(st.sampled_from([Averagely(), AveragelyByCircle()]), st.integers(1, 40), st.integers(1, 12))
def test_shares_differ_by_one_at_most(strategy: AllocationStrategy, queues: int, members: int) -> None:
    sizes = [len(mine) for mine in shares(strategy, queues_of(queues), ids_of(members))]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 30), st.integers(2, 8), st.data())
def test_on_the_ring_only_queues_of_the_one_who_left_move(queues: int, members: int, data: st.DataObject) -> None:
    ids = ids_of(members)
    left = data.draw(st.sampled_from(ids))
    rest = [own for own in ids if own != left]
    for own in rest:
        before = set(ConsistentHash()("G", own, queues_of(queues), ids))
        assert before <= set(ConsistentHash()("G", own, queues_of(queues), rest))


@pytest.mark.requirement("D029")
def test_virtual_nodes_make_shares_on_the_ring_more_even() -> None:
    def unevenness(virtual_nodes: int) -> int:
        sizes = [len(mine) for mine in shares(ConsistentHash(virtual_nodes=virtual_nodes), queues_of(400), ids_of(8))]
        return max(sizes) - min(sizes)

    assert unevenness(200) < unevenness(1) / 2
    assert ConsistentHash().virtual_nodes == 10


@pytest.mark.requirement("A108", "C131")
def test_the_averages_share_evenly_and_the_ring_moves_fewer_queues() -> None:
    """The table of docs/guides/client.md#how-queues-are-shared is this comparison, printed."""
    table = {name: comparison(strategy) for name, strategy in COMPARED.items()}
    moved = {name: moves for name, (moves, _) in table.items()}
    uneven = {name: difference for name, (_, difference) in table.items()}
    assert uneven["AVG"] == uneven["AVG_BY_CIRCLE"] == 0 < uneven["CONSISTENT_HASH"]
    assert moved["CONSISTENT_HASH"] < moved["AVG"] / 3
    assert moved["CONSISTENT_HASH"] < moved["AVG_BY_CIRCLE"] / 2
    written = (ROOT / "docs" / "guides" / "client.md").read_text(encoding="utf-8")
    for name, (moves, difference) in table.items():
        assert f"| `{name}` | {moves} of 64 | {difference} |" in written


COMPARED: dict[str, AllocationStrategy] = {
    "AVG": Averagely(),
    "AVG_BY_CIRCLE": AveragelyByCircle(),
    "CONSISTENT_HASH": ConsistentHash(),
}


def comparison(strategy: AllocationStrategy) -> tuple[int, int]:
    """When the first of eight members leaves: how many of 64 queues get another owner, and how far shares differed."""
    queues, ids = queues_of(64), ids_of(8)
    before, after = owners(strategy, queues, ids), owners(strategy, queues, ids[1:])
    sizes = Counter(before.values())
    return sum(before[queue] != after[queue] for queue in queues), max(sizes.values()) - min(sizes.values())


def owners(strategy: AllocationStrategy, queues: list[MessageQueue], ids: list[str]) -> dict[MessageQueue, str]:
    return {queue: own for own in ids for queue in strategy("G", own, queues, ids)}


@given(STRATEGIES)
def test_who_is_not_in_the_group_gets_nothing(strategy: AllocationStrategy) -> None:
    assert strategy("G", "stranger", queues_of(4), ids_of(2)) == []
    with pytest.raises(ValueError, match="are needed to share queues"):
        strategy("G", "stranger", [], ids_of(2))
