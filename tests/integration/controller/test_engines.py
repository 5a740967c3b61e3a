"""One contract for real engines: ZooKeeper and etcd as Debian packs them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyrocket.cli.controller import build_controller
from skyrocket.config.sections import ControllerConfig
from skyrocket.controller.engines.engine import Document, EngineError, Overtaken
from skyrocket.protocol.errors import NotControllerLeader
from skyrocket.protocol.requests.controller import GetReplicaInfo
from skyrocket.remoting.client import RemotingClient
from tests.cluster.controller.controller_fixture import NAME, replica_set, running
from tests.integration.controller.joined import joined
from tests.integration.controller.real_engines import RealEngine, place_of, running_engine, why_not
from tests.waiting import until

pytestmark = pytest.mark.requirement("D033")


@pytest.fixture(scope="module", params=["zookeeper", "etcd"])
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealEngine]:
    """One server for all tests of this file; each has a folder of its own in it."""
    reason = why_not(request.param)
    if reason is not None:
        pytest.skip(reason)
    with running_engine(request.param, tmp_path_factory.mktemp(request.param)) as started:
        yield started


async def test_documents_are_written_on_their_version_and_read_back(engine: RealEngine) -> None:
    async with joined(engine, "documents", 0) as one:
        await until(lambda: one.leads)
        number = one.standing.leadership
        assert number is not None
        assert await one.engine.documents() == {}
        first = await one.engine.write(number, "broker-a", b"one", None)
        second = await one.engine.write(number, "broker-a", b"two", first)
        other = await one.engine.write(number, "wörld/ 1%", b"x", None)
        assert second is not None
        assert other is not None
        assert await one.engine.documents() == {
            "broker-a": Document(b"two", second),
            "wörld/ 1%": Document(b"x", other),
        }
        for version in (None, first, second + 1):
            with pytest.raises(Overtaken):
                await one.engine.write(number, "broker-a", b"three", version)
        with pytest.raises(Overtaken):
            await one.engine.write(number + 1, "broker-a", b"three", second)
        dot = await one.engine.write(number, "..", b"x", None)
        assert await one.engine.write(number, "..", None, dot) is None
        assert await one.engine.write(number, "wörld/ 1%", None, other) is None
        assert (await one.engine.documents()).keys() == {"broker-a"}


async def test_one_leads_and_the_next_follows_under_a_larger_number(engine: RealEngine) -> None:
    async with joined(engine, "line", 1) as second, joined(engine, "line", 0) as first:
        await until(lambda: len(first.standing.members) == len(second.standing.members) == 2)
        leading, following = (first, second) if first.leads else (second, first)
        assert following.standing.leader == leading.me
        number = leading.standing.leadership
        assert number is not None
        version = await leading.engine.write(number, "broker-a", b"one", None)
        await leading.engine.close()
        await until(lambda: following.leads)
        after = following.standing.leadership
        assert after is not None
        assert after > number
        assert await following.engine.documents() == {"broker-a": Document(b"one", version or 0)}
        with pytest.raises(EngineError):
            await leading.engine.write(number, "broker-a", b"two", version)
        await following.engine.write(after, "broker-a", b"two", version)


async def test_controllers_share_what_they_decided(engine: RealEngine, tmp_path: Path) -> None:
    config = ControllerConfig(store=place_of(engine, "shared"), session_ms=2000)
    async with running(tmp_path, config, number=1) as (second, second_address):
        await until(lambda: second.decider.leads)
        async with running(tmp_path, config) as (first, first_address), RemotingClient() as client:
            await until(lambda: first.decider.standing.leader is not None)
            async with replica_set(second_address, first_address) as (_, replica):
                with pytest.raises(NotControllerLeader):
                    await client.call(first_address, GetReplicaInfo(broker_name=NAME))
                await second.stop()
                await until(lambda: first.decider.leads)
                info = await client.call(first_address, GetReplicaInfo(broker_name=NAME))
                assert info.header.master_epoch == 1
                assert replica.epoch == 1


async def test_a_controller_waits_for_an_engine_that_is_not_there_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in ("zookeeper", "etcd"):
        config = ControllerConfig(
            store=f"{kind}://127.0.0.1:1/skyrocket",
            peers="n0-127.0.0.1:0",
            bind_address="127.0.0.1",
            config_store_path=str(tmp_path / "x"),
        )
        async with build_controller(config) as controller, RemotingClient() as client:
            address = str(await controller.start())
            await until(lambda: "cannot be used" in str(controller.observation.why_not_ready()))
            why = str(controller.observation.why_not_ready())
            assert "127.0.0.1:1: nothing listens there; start it, open its port, or correct controllerStore" in why
            (said,) = {line for line in caplog.messages if line.startswith("no leader is known")}
            assert why in said
            caplog.clear()
            with pytest.raises(NotControllerLeader):
                await client.call(address, GetReplicaInfo(broker_name=NAME))
    await asyncio.sleep(0)
