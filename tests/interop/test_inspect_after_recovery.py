"""RocketMQ recovers a killed store with a damaged record, goes on and is closed: `inspect` finds nothing wrong.

RocketMQ cuts the log before the record and leaves the bytes behind it: whole records that nobody can read any more,
entries of the index among them.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from skyrocket.inspector.findings import Severity
from tests.golden_store import GoldenStore
from tests.interop.apache import Apache
from tests.interop.rocketmq_store import Draft, append
from tests.unit.inspector.damage import DamagedStore

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("appended", [0, 3, 40])
def test_what_rocketmq_left_behind_the_end_is_no_damage(
    appended: int, tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    golden = GoldenStore("5.4.0", "killed")
    store = DamagedStore(golden.extract(tmp_path))
    newest = [file for file in store.files("commitlog") if any(store.read(file)[:4])][-1]
    records = store.log_records(newest)
    hurt = records[len(records) // 2]
    body = hurt.physical_offset - int(Path(newest).name) + 100
    store.flip(newest, body)

    drafts = [
        Draft("TopicFlood", number % 4, b"after the recovery", {"KEYS": f"k{number}"}) for number in range(appended)
    ]
    contents = append(apache_of_version(golden.version), store.root, golden.config_of_broker(), drafts)

    assert contents.recovered_end == hurt.physical_offset, "the damage is where RocketMQ ends the log"
    found = store.verify().findings
    assert [finding for finding in found if finding.severity is not Severity.NOTE] == []
