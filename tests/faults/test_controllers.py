"""Engines and controllers that are killed and paused while decisions are made: none is lost, none is made twice."""

import asyncio
import random
from pathlib import Path

import pytest

from tests.faults.controllers import ControllerProgram, beating_set, three_controllers
from tests.integration.controller.real_engines import place_of, running_engine, why_not

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MOVES = 30
KINDS = [
    pytest.param(kind, marks=pytest.mark.skipif(why_not(kind) is not None, reason=why_not(kind) or ""))
    for kind in ("zookeeper", "etcd")
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("D033")
async def test_decisions_go_on_while_engines_and_controllers_are_killed(kind: str, tmp_path: Path) -> None:
    chance = random.Random(7)
    with (
        running_engine(kind, tmp_path, size=3) as engine,
        three_controllers(tmp_path, place_of(engine)) as controllers,
    ):
        by_address = {each.address: each for each in controllers}
        async with beating_set(list(by_address)) as alive:
            epoch = 0
            for _ in range(MOVES):
                fault = chance.choice(["engine", "controller", "paused controller", "paused engine", "none"])
                # In threads, whatever waits: heartbeats go on, or the brokers would be taken for dead.
                server = await asyncio.to_thread(engine.leader)
                controller = by_address[await alive.leader()]
                if fault == "engine":
                    server.kill()
                elif fault == "paused engine":
                    server.pause()
                elif fault == "controller":
                    controller.kill()
                elif fault == "paused controller":
                    controller.pause()
                after = await alive.move()
                assert after > epoch, f"after {fault}"
                epoch = after
                if fault == "engine":
                    server.start()
                    await asyncio.to_thread(server.await_answer)
                elif fault == "paused engine":
                    server.go_on()
                elif fault == "controller":
                    await asyncio.to_thread(controller.start)
                elif fault == "paused controller":
                    controller.go_on()
                header, _ = await alive.info()
                assert header.master_epoch == epoch
                alive.check_answer(header.master_epoch, header.master_broker_id)
            alive.check_notices()
            assert len(alive.masters) >= MOVES


async def test_a_controller_that_stood_still_takes_no_broker_for_dead(tmp_path: Path) -> None:
    """A file: nobody else can lead meanwhile, and when it goes on it finds closed connections and old heartbeats."""
    controller = ControllerProgram(tmp_path, 0, f"file:{tmp_path / 'replica-sets'}")
    controller.start()
    try:
        async with beating_set([controller.address]) as alive:
            await alive.all_in_sync()
            before, _ = await alive.info()
            controller.pause()
            await asyncio.sleep(8.0)  # longer than the five seconds after which a silent broker is lost
            controller.go_on()
            for _ in range(100):
                after, known = await alive.info()
                assert after == before
                assert len(known.broker_ids) == len(alive.brokers)
                await asyncio.sleep(0.05)
    finally:
        controller.kill()


@pytest.mark.parametrize("kind", KINDS)
async def test_without_a_majority_of_the_engine_nothing_is_decided_and_with_it_all_goes_on(
    kind: str, tmp_path: Path
) -> None:
    with (
        running_engine(kind, tmp_path, size=3) as engine,
        three_controllers(tmp_path, place_of(engine)) as controllers,
    ):
        async with beating_set([each.address for each in controllers]) as alive:
            epoch = await alive.move()
            for server in engine.servers[:2]:
                server.kill()
            for controller in controllers:
                await alive.until_follows(controller.address)
            for server in engine.servers[:2]:
                server.start()
            header, _ = await alive.info()
            assert header.master_epoch == epoch
            assert await alive.move() == epoch + 1
