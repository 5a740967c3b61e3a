"""`skyrocket msg copy --resume FILE`: what was stopped goes on where it stood."""

import json
from pathlib import Path
from typing import Any

import pytest

from skyrocket.client import ClientError, Message, Producer
from skyrocket.testing import LocalCluster
from tests.cluster.command_line import Done, skyrocket, well
from tests.integration.program import Program
from tests.waiting import wait_until

pytestmark = pytest.mark.rocketmq(brokers=2)
MESSAGES = 12


@pytest.fixture
def orders(rocketmq: LocalCluster) -> list[bytes]:
    """The bodies of a topic with queues at two brokers."""
    rocketmq.create_topic("Orders", queues=2)
    rocketmq.create_topic("Copies", queues=1)
    with rocketmq.producer() as producer:
        for number in range(MESSAGES):
            producer.send(Message("Orders", b"%d" % number, "odd" if number % 2 else "even"))
    return [b"%d" % number for number in range(MESSAGES)]


class Stop:
    """Lets a copy fail after some messages; None: not at all."""

    def __init__(self) -> None:
        self.after: int | None = None


@pytest.fixture
def stop(monkeypatch: pytest.MonkeyPatch) -> Stop:
    found, send = Stop(), Producer.send

    async def send_or_fail(self: Producer, message: Message, **given: Any) -> Any:
        if found.after == 0:
            raise ClientError("it is full")
        found.after = None if found.after is None else found.after - 1
        return await send(self, message, **given)

    monkeypatch.setattr(Producer, "send", send_or_fail)
    return found


def copy(rocketmq: LocalCluster, *words: str) -> Done:
    return skyrocket(rocketmq, "msg", "copy", "Orders", "Copies", *words)


def copies(rocketmq: LocalCluster) -> list[bytes]:
    return sorted((message.body for message in rocketmq.messages("Copies")), key=int)


def test_what_was_stopped_goes_on_with_nothing_lost_and_nothing_twice(
    rocketmq: LocalCluster, orders: list[bytes], stop: Stop, tmp_path: Path
) -> None:
    place = tmp_path / "place.json"
    for copied in (5, 9):
        stop.after = copied - len(copies(rocketmq))
        failed = copy(rocketmq, "--resume", str(place), *(() if place.exists() else ("--since", "1h")))
        assert failed.code == 1, failed.errors
        assert f"{place} has the place: the same command goes on there" in failed.errors
        assert "the last one that is confirmed was stored at" in failed.errors
        assert len(copies(rocketmq)) == copied
    stop.after = None
    done = copy(rocketmq, "--resume", str(place), "--since", "1h")
    assert done.code == 0, done.errors
    assert "9 messages were copied before" in done.output
    assert "3 messages sent to Copies" in done.output
    assert copies(rocketmq) == orders
    again = copy(rocketmq, "--resume", str(place))
    assert again.code == 0
    assert "nothing is to be changed" in again.output
    assert copies(rocketmq) == orders


def test_after_a_kill_what_came_behind_the_last_writing_is_copied_twice_and_nothing_is_lost(
    rocketmq: LocalCluster, orders: list[bytes], stop: Stop, tmp_path: Path
) -> None:
    place = tmp_path / "place.json"
    stop.after = 3
    assert copy(rocketmq, "--resume", str(place), "--since", "1h").code == 1
    kept = place.read_text()
    stop.after = 4
    assert copy(rocketmq, "--resume", str(place)).code == 1
    place.write_text(kept)  # as if nothing had been written since
    stop.after = None
    assert copy(rocketmq, "--resume", str(place)).code == 0
    found = copies(rocketmq)
    assert len(found) == MESSAGES + 4
    assert sorted(set(found), key=int) == orders


def test_tags_and_the_limit_of_all_go_on_too(
    rocketmq: LocalCluster, orders: list[bytes], stop: Stop, tmp_path: Path
) -> None:
    order = ("--resume", str(tmp_path / "place.json"), "--since", "1h", "--tags", "odd", "--limit", "5")
    assert len(orders) == MESSAGES
    stop.after = 2
    assert copy(rocketmq, *order).code == 1
    stop.after = None
    assert "3 messages sent" in copy(rocketmq, *order).output
    found = copies(rocketmq)  # of those of one millisecond nobody says which is the oldest
    assert len(found) == len(set(found)) == 5
    assert {int(body) % 2 for body in found} == {1}
    again = copy(rocketmq, *order)
    assert "nothing is to be changed" in again.output
    assert "--limit 5 leaves the newest ones out: give a higher one" in again.errors
    rest = copy(rocketmq, *order[:-1], "6")
    assert "1 message sent" in rest.output
    assert "leaves the newest ones out" not in rest.errors


def test_sigterm_ends_a_copy_as_ctrl_c_does_with_its_place_kept(
    rocketmq: LocalCluster, orders: list[bytes], tmp_path: Path
) -> None:
    place = tmp_path / "place.json"
    slow = ("msg", "copy", "Orders", "Copies", "--resume", str(place), "--since", "1h", "--rate", "10")
    with Program(*slow, "--namesrv", rocketmq.name_server_address, home=tmp_path) as program:
        wait_until(lambda: len(copies(rocketmq)) >= 4)
        program.process.terminate()
        assert program.process.wait(20) == 130, program.lines
        assert any("has the place" in line for line in program.lines), program.lines
    assert copy(rocketmq, "--resume", str(place)).code == 0
    found = copies(rocketmq)
    assert sorted(set(found), key=int) == orders
    assert len(found) <= MESSAGES + 1, "the message that was on its way"


def test_the_place_of_another_copy_is_not_taken_and_a_dry_run_keeps_none(
    rocketmq: LocalCluster, orders: list[bytes], tmp_path: Path
) -> None:
    place = tmp_path / "place.json"
    assert len(orders) == MESSAGES
    assert copy(rocketmq, "--resume", str(place)).code == 2, "nobody says since when"
    well(rocketmq, "msg", "copy", "Orders", "Copies", "--since", "1h", "--resume", str(place), "--dry-run")
    assert not place.exists()
    assert copy(rocketmq, "--since", "1h", "--resume", str(place)).code == 0
    rocketmq.create_topic("Others", queues=1)
    other = skyrocket(rocketmq, "msg", "copy", "Orders", "Others", "--resume", str(place))
    assert other.code == 2
    assert "is of a copy with another target: 'Copies', not 'Others'" in other.errors.replace("\n", " ")
    kept = json.loads(place.read_text())
    numbers = [{**kept, "copied": -7}, {**kept, "queues": [{**kept["queues"][0], "next": float("inf")}]}]
    numbers += [{**kept, "queues": [{**kept["queues"][0], "end": end}]} for end in (-1, 10**30, "5")]
    others = [{"order": {"source": "Orders"}, "queues": [], "copied": 0}, *numbers]
    for text in ("{", "[]", "[" * 100_000, *map(json.dumps, others)):
        place.write_text(text)
        garbage = copy(rocketmq, "--resume", str(place))
        assert garbage.code == 2
        assert "is not the place of a copy" in garbage.errors.replace("\n", " ")
