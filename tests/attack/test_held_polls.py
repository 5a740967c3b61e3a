"""Thousands of pulls that wait: they take neither the places of others nor, when they are woken, their time."""

from pathlib import Path

import pytest

from tests.attack.attackers import Flood, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.cluster.broker.broker_fixture import message, pull_request
from tests.waiting import wait_until


@pytest.mark.parametrize(
    ("number", "each", "capacity"), [(12, 500, 4000), pytest.param(12, 10_000, 100_000, marks=pytest.mark.slow)]
)
def test_held_pulls_lock_nobody_out(tmp_path: Path, number: int, each: int, capacity: int) -> None:
    waits = b"".join(frame(pull_request(0, 0, 60_000, topic="Awaited")) for _ in range(each))
    setting = f"pullThreadPoolQueueCapacity={capacity}"
    strict = each == 10_000
    once = iter([waits] * number)
    with (
        Target(tmp_path, setting) as target,
        HonestClient(target.broker) as honest,
        connections(target.broker, 1) as (producer,),
        connections(target.broker, number) as sockets,
    ):
        producer.sendall(frame(message("Awaited", 1), b"makes the topic"))
        quiet = honest.during(2.0)
        with Flood(sockets, lambda: next(once, b"")):
            wait_until(lambda: target.metric("skyrocket_requests_refused_total", processor="pull") > 0)
            held = honest.during(2.0)
            producer.sendall(frame(message("Awaited", 0), b"for all of them"))
            woken = honest.during(2.0)
    held.must_be_served(quiet, f"{number} × {each} held pulls", strict=strict)
    woken.must_be_served(quiet, f"{number} × {each} pulls woken at once", strict=strict)
