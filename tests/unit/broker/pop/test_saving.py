"""Offsets are saved after the log that they rest on: a power cut must not leave an offset without its check point."""

from pathlib import Path

import pytest

from skyrocket.broker.state.persistence import Persistence
from tests.unit.broker.pop.pop_world import GROUP, TOPIC, PopWorld


def saved_text(world: PopWorld) -> str:
    path = world.root / "config" / "consumerOffset.json"
    return path.read_text() if path.exists() else ""


def persistence(world: PopWorld) -> Persistence:
    made = Persistence((), world.offsets, 5.0, world.clock)
    made.before_offsets = world.popping.revive_log.force_to_disk
    made.also_save(world.popping.modes)
    made.also_save(world.popping.orders)
    return made


async def test_the_log_is_on_disk_before_offsets_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = PopWorld(tmp_path / "store")
    world.put(b"one")
    world.pop()
    flushed: list[str] = []
    flush = world.store.flush

    def noted() -> bool:
        flushed.append(saved_text(world))
        return flush()

    monkeypatch.setattr(world.store, "flush", noted)
    await persistence(world).save_now(world.offsets)
    assert flushed == [""], "forced to disk once, while the file said nothing of the pop yet"
    assert f"{TOPIC}@{GROUP}" in saved_text(world)
    world.offsets.commit(GROUP, TOPIC, 1, 0)
    persistence(world).save_all()
    assert len(flushed) == 1, "nothing was put since"
    world.stop()


async def test_offsets_stay_unsaved_while_the_disk_refuses_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = PopWorld(tmp_path / "store")
    world.put(b"one")
    world.pop()
    with monkeypatch.context() as patched:
        patched.setattr(world.store, "flush", lambda: False)
        with pytest.raises(OSError, match="could not be forced to disk"):
            await persistence(world).save_now(world.offsets)
    assert saved_text(world) == ""
    assert world.offsets.dirty
    await persistence(world).save_now(world.offsets)
    assert f"{TOPIC}@{GROUP}" in saved_text(world)
    world.stop()


def test_ordered_batches_are_saved_when_the_broker_stops(tmp_path: Path) -> None:
    world = PopWorld(tmp_path / "store")
    world.put(b"one")
    world.pop(order=True)
    persistence(world).save_all()
    assert f"{TOPIC}@{GROUP}" in (world.root / "config" / "consumerOrderInfo.json").read_text()
    world.stop()
