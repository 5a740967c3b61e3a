"""Batches of 4 MB whose messages are as small as can be: nobody else is served while one is cut and stored."""

from dataclasses import fields
from pathlib import Path

import pytest

from skyrocket.format.batch import BatchElement, encode_batch
from skyrocket.protocol.requests.messaging import SendBatchMessage
from tests.attack.attackers import Flood, connections, frame
from tests.attack.honest import HonestClient
from tests.attack.target import Target
from tests.cluster.broker.broker_fixture import message

_MESSAGES = 170_000
_STRICT_MS = 800.0  # one batch takes 110 ms of a quiet machine, and none can be interrupted


def batch(*sizes: int) -> bytes:
    """A request with as many messages as fit, whose bodies have these sizes in turn."""
    elements = [BatchElement(0, b"x" * sizes[number % len(sizes)], b"") for number in range(_MESSAGES)]
    header = message("Flooded")
    copied = {field.name: getattr(header, field.name) for field in fields(header)}
    return frame(SendBatchMessage(**copied | {"batch": True}), encode_batch(elements))


@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3)])
def test_an_honest_client_is_served_beside_batches_of_tiny_messages(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    attack(tmp_path, sizes, connections_of=1, seconds=4.0)


@pytest.mark.slow
@pytest.mark.parametrize("connections_of", [1, 4])
@pytest.mark.parametrize("sizes", [(1,), (1, 2, 3)])
def test_batches_of_tiny_messages_for_half_a_minute(
    tmp_path: Path, sizes: tuple[int, ...], connections_of: int
) -> None:
    attack(tmp_path, sizes, connections_of=connections_of, seconds=30.0, strict=True)


def attack(folder: Path, sizes: tuple[int, ...], *, connections_of: int, seconds: float, strict: bool = False) -> None:
    request = batch(*sizes)
    with Target(folder) as target, HonestClient(target.broker) as honest:
        quiet = honest.during(2.0)
        with connections(target.broker, connections_of) as sockets, Flood(sockets, lambda: request) as flood:
            honest.during(1.0)  # until all have begun
            attacked = honest.during(seconds)
        stored = target.metric("rocketmq_messages_in_total", topic="Flooded")
    what = f"{connections_of} connections with batches of {_MESSAGES} messages, bodies of {sizes}: {stored:.0f} stored"
    attacked.must_be_served(quiet, what, strict=strict, strict_ms=_STRICT_MS)
    assert flood.lost == 0
    assert stored >= _MESSAGES
