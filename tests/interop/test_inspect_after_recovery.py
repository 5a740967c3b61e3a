"""RocketMQ recovers a killed store with a damaged record, goes on and is closed: `inspect` finds no damage.

RocketMQ cuts the log before the record and leaves the bytes behind it: whole records that nobody can read any more,
and their entries in queues and index.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skyrocket.inspector.findings import FindingKind, Severity
from skyrocket.store.message_store import MessageStore
from tests.golden_store import GoldenStore
from tests.interop.apache import Apache
from tests.interop.rocketmq_store import Contents, Draft, append, read
from tests.unit.inspector.damage import DamagedStore

pytestmark = pytest.mark.interop

# Its next start would serve what lies under an entry, and finds no message by a key that it did not index.
LASTING = {FindingKind.ENTRY_STALE, FindingKind.INDEX_BEHIND}
IN_QUEUES = 2_097_152  # the last file of 5.4.0/killed of which queues know


def recovered(apache: Apache, golden: GoldenStore, store: DamagedStore, file: str, appended: int) -> Contents:
    """The store after RocketMQ recovered it from a damaged record in the middle of a file, and wrote on."""
    records = store.log_records(file)
    hurt = records[len(records) // 2]
    store.flip(file, hurt.physical_offset - int(Path(file).name) + 100)
    if apache.version.startswith("4."):
        hold_back_delayed_messages(store.root)
    drafts = [
        Draft("TopicFlood", number % 4, b"after the recovery", {"KEYS": f"k{number}"}) for number in range(appended)
    ]
    contents = append(apache, store.root, golden.config_of_broker(), drafts)
    assert contents.recovered_end == hurt.physical_offset, "the damage is where RocketMQ ends the log"
    return contents


def hold_back_delayed_messages(store: Path) -> None:
    """Nothing is due: 4.9 delivers a second after its start what had been delayed, if it lives that long.

    Then it has written on though nothing was appended here. An offset that is too high becomes the end of its queue.
    """
    offsets = {str(level): 1_000_000_000 for level in range(1, 19)}
    (store / "config" / "delayOffset.json").write_text(json.dumps({"offsetTable": offsets}))


@pytest.mark.parametrize("appended", [0, 3, 40])
@pytest.mark.parametrize(("version", "start"), [("5.4.0", None), ("5.4.0", IN_QUEUES), ("4.9.7", None)])
def test_what_rocketmq_left_behind_the_end_is_no_damage(
    version: str, start: int | None, appended: int, tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    golden = GoldenStore(version, "killed")
    store = DamagedStore(golden.extract(tmp_path))
    used = [file for file in store.files("commitlog") if any(store.read(file)[:4])]
    file = used[-1] if start is None else f"commitlog/{start:020d}"
    recovered(apache_of_version(version), golden, store, file, appended)

    found = store.verify().findings
    assert [finding for finding in found if finding.severity is Severity.ERROR] == []
    warned = {finding.kind for finding in found if finding.severity is Severity.WARNING}
    assert warned <= (LASTING if appended else set())

    ours = MessageStore(tmp_path, golden.config_of_broker(dispatch_thread=False))
    ours.open()
    ours.close()
    assert not store.verify().has_problems()


def test_an_entry_that_is_warned_of_is_one_that_rocketmq_would_serve(
    tmp_path: Path, apache_of_version: Callable[[str], Apache]
) -> None:
    golden, apache = GoldenStore("4.9.7", "killed"), apache_of_version("4.9.7")
    store = DamagedStore(golden.extract(tmp_path))
    file = [file for file in store.files("commitlog") if any(store.read(file)[:4])][-1]
    before = recovered(apache, golden, store, file, 3).queues["TopicFlood", 3]["max"]

    (warning,) = [finding for finding in store.verify().findings if finding.kind is FindingKind.ENTRY_STALE][:1]
    assert warning.severity is Severity.WARNING
    assert warning.what.startswith(f"entry {before} of TopicFlood/3 ")
    again = read(apache, store.root, golden.config_of_broker())
    assert again.queues["TopicFlood", 3]["max"] == before + 1, "RocketMQ takes the entry for one of this queue"
