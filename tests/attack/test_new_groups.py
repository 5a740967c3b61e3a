"""Heartbeats that name ever new consumer groups: each would be saved and get a retry topic."""

from itertools import count
from pathlib import Path

import pytest

from skyrocket.protocol.requests.clients import HeartBeat
from tests.attack.attackers import Flood, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.cluster.broker.broker_fixture import heartbeat


@pytest.mark.parametrize("seconds", [4.0, pytest.param(25.0, marks=pytest.mark.slow)])
def test_ever_new_groups_hold_nobody_up(tmp_path: Path, seconds: float) -> None:
    numbers = count()

    def beats() -> bytes:
        return b"".join(frame(HeartBeat(), heartbeat("one", f"Group{next(numbers)}")) for _ in range(20))

    with Target(tmp_path) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, 20) as sockets, Flood(sockets, beats):
            attacked = honest.during(seconds)
        groups = target.metric("rocketmq_consumer_group_number")
    what = f"{next(numbers)} heartbeats with new groups: {groups:.0f} groups"
    attacked.must_be_served(quiet, what, strict=seconds > 10)
    assert groups < 200 + 50 * (seconds + 60)
