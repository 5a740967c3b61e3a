"""What RocketMQ's pop left in a store is continued: its check points, acknowledgements and retry topics."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from skyrocket.format.record import decode_records
from skyrocket.model.message import StoredMessage
from skyrocket.testing.clock import FakeClock
from tests.golden_store import GoldenStore
from tests.unit.broker.pop.pop_world import PopWorld

GOLDEN = GoldenStore("5.4.0", "clean")
GROUP = "GroupPopWithAVeryLongName_" + "g" * 60
TOPIC = "TopicPopWithAVeryLongName_" + "t" * 60
LEFT = {"popbad-0", "popbad-1", "popbad-2", "popbad-3"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    root = GOLDEN.extract(tmp_path)
    found = next(path.parent for path in [root / "commitlog", *root.glob("*/commitlog")] if path.is_dir())
    config = found / "config"
    config.mkdir(exist_ok=True)
    for file in (GOLDEN.path / "config").iterdir():
        shutil.copy(file, config / file.name)
    return found


def world_of(store: Path) -> PopWorld:
    last_ms = max(line.get("storeTimestamp", 0) for line in GOLDEN.messages())
    config = GOLDEN.config_of_broker(timer_log_file_size=1040, dispatch_thread=False)
    return PopWorld(store, FakeClock(last_ms + 60_000), store_config=config)


def _records(world: PopWorld) -> list[StoredMessage]:
    """What waits for its time."""
    return list(decode_records(world.store.get("rmq_sys_wheel_timer", 0, 0).join()))


def _body(line: dict[str, Any]) -> bytes:
    return base64.b64decode(line["body"])


def keys(world: PopWorld) -> list[str]:
    """Of all messages that the group can pop now."""
    found: list[str] = []
    while popped := world.pop(consumer_group=GROUP, topic=TOPIC, born_time=0):
        found += [each.message.properties["KEYS"] for each in popped]
    return found


def test_messages_that_rocketmq_revived_are_popped(store: Path) -> None:
    world = world_of(store)
    assert set(keys(world)) == LEFT
    world.stop()


def test_check_points_that_rocketmq_wrote_are_revived_unless_they_were_acknowledged(store: Path) -> None:
    """As if it had been killed before it could save how far it had come."""
    path = store / "config" / "consumerOffset.json"
    text = path.read_text()
    begin = text.index('"rmq_sys_REVIVE_LOG_DefaultCluster@CID_RMQ_SYS_REVIVE_GROUP"')
    end = text.index("}", begin)
    path.write_text(text[:begin] + text[text.index('"', end) :])
    world = world_of(store)
    world.pass_time(20_000)
    revived = world.popping.revive.revived
    assert revived == {(GROUP, TOPIC): 4}, "everything else was acknowledged"
    assert sorted(keys(world)) == sorted([*LEFT, *LEFT]), "those that RocketMQ had revived, and ours"
    world.stop()


def test_a_check_point_of_rocketmq_and_one_of_ours_are_the_same_bytes(tmp_path: Path) -> None:
    world = PopWorld(tmp_path / "store")
    world.put(b"one")
    world.pop()
    ours = [json.loads(record.body) for record in _records(world)]
    theirs = [
        json.loads(_body(line))
        for line in GOLDEN.messages()
        if line.get("topic") == "rmq_sys_wheel_timer" and line["properties"].get("TAGS") == "ck"
    ]
    assert list(ours[0]) == list(theirs[0])
    assert {name: type(value) for name, value in ours[0].items()} == {
        name: type(value) for name, value in theirs[0].items()
    }
    (record,) = _records(world)
    expected = next(line for line in GOLDEN.messages() if line.get("properties", {}).get("TAGS") == "ck")
    assert record.properties.keys() == expected["properties"].keys()
    world.stop()
