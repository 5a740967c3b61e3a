"""Engines and controllers that are killed and paused while decisions are made: none is lost, none is made twice."""

import random
from pathlib import Path

import pytest

from tests.faults.controllers import beating_set, three_controllers
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
                server = engine.leader()
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
                    server.await_answer()
                elif fault == "paused engine":
                    server.go_on()
                elif fault == "controller":
                    controller.start()
                elif fault == "paused controller":
                    controller.go_on()
                header, _ = await alive.info()
                assert header.master_epoch == epoch
                alive.check_answer(header.master_epoch, header.master_broker_id)
            alive.check_notices()
            assert len(alive.masters) >= MOVES


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
