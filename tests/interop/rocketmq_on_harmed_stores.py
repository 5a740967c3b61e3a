"""What Apache RocketMQ still reads from many damaged stores, in one Java process (java/HarmedStores.java)."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.damaged_store import Damaged, Places, QueueKey, number_in
from tests.interop.apache import Apache
from tests.interop.rocketmq_store import settings_for

SECONDS_PER_STORE = 20.0


@dataclass(frozen=True)
class TheirReading:
    """The records that a consumer gets from RocketMQ: queue offset → physical offset for each queue."""

    opened: bool
    why: str
    queues: dict[QueueKey, Places]


def read_all(apache: Apache, stores: list[Damaged]) -> dict[Path, TheirReading]:
    """Let RocketMQ start on each directory, which it may change, and read all of its queues."""
    jobs = "".join(json.dumps(_job(apache, store)) + "\n" for store in stores)
    timeout_s = 60 + SECONDS_PER_STORE * len(stores)
    done = apache.run("HarmedStores", stdin=jobs, timeout_s=timeout_s, log_level="OFF")
    answers = {Path(line["store"]): _reading(line) for line in map(json.loads, done.stdout.splitlines())}
    assert done.exit_code == 0, done.stderr[-2000:]
    assert answers.keys() == {store.root for store in stores}, done.stderr[-2000:]
    return answers


def _job(apache: Apache, store: Damaged) -> dict[str, Any]:
    settings: dict[str, Any] = dict(settings_for(apache, store.config))
    if store.config.multi_dispatch:
        settings |= {"enableMultiDispatch": "true", "enableLmq": "true"}
    texts = [f"{name}={value}" for name, value in settings.items()]
    return {"store": str(store.root), "settings": texts, "batchTopics": sorted(store.batch_topics)}


def _reading(line: dict[str, Any]) -> TheirReading:
    queues: dict[QueueKey, Places] = {}
    for queue in line["queues"]:
        key = (queue["topic"], queue["queueId"])
        queues[key] = {number_in(key, number, place): place for number, place in queue["records"]}
    return TheirReading(line["opened"], line.get("why") or "", queues)
