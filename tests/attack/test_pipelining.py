"""Producers that write without waiting for answers: they wait themselves, and are refused when it takes too long."""

from pathlib import Path

import pytest

from tests.attack.attackers import Flood, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.cluster.broker.broker_fixture import message


def sends(body_size: int, count: int) -> bytes:
    """Sends of one message each to the four queues of a topic."""
    return b"".join(frame(message("Flooded", number % 4), b"x" * body_size) for number in range(count))


@pytest.mark.parametrize(("number", "body_size"), [(1, 100), (50, 100), (50, 100_000)])
def test_producers_that_never_wait_do_not_starve_others(tmp_path: Path, number: int, body_size: int) -> None:
    attack(tmp_path, number, body_size, seconds=4.0)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "body_size"), [(1, 100), (10, 100), (50, 100), (200, 100), (50, 100_000)])
def test_producers_that_never_wait_for_half_a_minute(tmp_path: Path, number: int, body_size: int) -> None:
    attack(tmp_path, number, body_size, seconds=30.0, strict=True)


def attack(folder: Path, number: int, body_size: int, *, seconds: float, strict: bool = False) -> None:
    bytes_of_sends = sends(body_size, 200 if body_size < 1000 else 4)
    with Target(folder) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, number) as sockets, Flood(sockets, lambda: bytes_of_sends) as flood:
            honest.during(1.0)  # until all have begun
            attacked = honest.during(seconds)
        stored = target.metric("rocketmq_messages_in_total", topic="Flooded")
        refused = target.metric("skyrocket_requests_refused_total", processor="send")
    what = f"{number} connections that never wait, bodies of {body_size}: {stored:.0f} stored, {refused:.0f} refused"
    attacked.must_be_served(quiet, what, strict=strict)
    assert flood.lost == 0
    assert stored > 0
