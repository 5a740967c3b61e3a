"""The job `rebuild`: queues and index from the log alone, byte for byte as RocketMQ and Skyrocket build them."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from skyrocket.errors import CorruptFile, StoreLocked
from skyrocket.pipeline.jobs import rebuild
from skyrocket.pipeline.rebuild.index_file import KeyRange, ranges_of_files
from skyrocket.pipeline.rebuild.publish import STAGING, WouldOverwrite
from skyrocket.pipeline.rebuild.rules import RebuildRules
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.golden_store import WHOLE_STORES, GoldenStore
from tests.unit.pipeline.records import record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BUILT = ("consumequeue", "batchconsumequeue", "index")


class SameProcess:
    """Runs tasks one after the other, without Spark; the job asks for nothing else."""

    def __init__(self) -> None:
        self.sparkContext = self

    def parallelize(self, items: list[Any], _: int) -> "_Tasks":
        return _Tasks(items)


class _Tasks:
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def map(self, task: Any) -> "_Tasks":
        return _Tasks([task(item) for item in self.items])

    def collect(self) -> list[Any]:
        return self.items


HERE: Any = SameProcess()


def files_below(directory: Path) -> dict[str, bytes]:
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def rules_of(golden: GoldenStore) -> RebuildRules:
    config = golden.config_of_broker()
    return RebuildRules(
        consume_queue_file_size=config.consume_queue_file_size,
        batch_queue_file_size=config.batch_queue_file_size,
        index_slots=config.index_slots,
        index_entries=config.index_entries,
        index_tags=config.index_tags,
    )


SMALL = RebuildRules(consume_queue_file_size=2000, index_slots=50, index_entries=40)


def store_of(directory: Path, **changes: Any) -> MessageStore:
    settings = GoldenStore("5.4.0", "clean").config_of_broker(index_slots=50, index_entries=40, **changes)
    return MessageStore(directory, settings)


def message(number: int, topic: str = "orders", properties: str = "") -> PutMessage:
    text = f"KEYS\x01key-{number} größe-{number % 7}\x02TAGS\x01tag-{number % 3}\x02UNIQ_KEY\x01{number:032X}\x02"
    return PutMessage(
        topic=topic,
        queue_id=number % 3,
        body=b"x" * (number % 50),
        properties=(text + properties).encode(),
        born_timestamp=1_700_000_000_000 + number,
        born_host=bytes((10, 0, 0, 1, 0, 0, 0, 9)),
        store_host=bytes((10, 0, 0, 2, 0, 0, 0, 9)),
    )


def put_many(directory: Path, count: int = 400) -> None:
    with store_of(directory) as store:
        for number in range(count):
            if number % 10 == 3:
                store.put(message(number, "SCHEDULE_TOPIC_XXXX", f"DELAY\x01{number % 20}\x02"))
            else:
                store.put(message(number))


# -- the same bytes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("golden", [store for store in WHOLE_STORES if store.name != "killed"], ids=str)
def test_rocketmqs_own_queues_and_index_come_out_of_its_log(golden: GoldenStore, tmp_path: Path) -> None:
    original = golden.extract(tmp_path / "store")
    shutil.copytree(golden.path / "config", original / "config", dirs_exist_ok=True)
    report = rebuild.run(HERE, original, target=tmp_path / "new", rules=rules_of(golden), split_bytes=30_000)
    for name in BUILT[:2]:
        assert files_below(tmp_path / "new" / name) == files_below(original / name), name
    built = list(files_below(tmp_path / "new" / "index").values())
    assert built == list(files_below(original / "index").values())
    assert report.findings == 0


@pytest.mark.requirement("A017", "B025")
def test_a_store_of_ours_is_rebuilt_to_the_same_bytes_and_opens(spark: "SparkSession", tmp_path: Path) -> None:
    store = tmp_path / "store"
    put_many(store)
    before = {name: files_below(store / name) for name in BUILT}
    assert len(before["index"]) > 3
    assert len(before["consumequeue"]) > 6
    for name in BUILT:
        shutil.rmtree(store / name, ignore_errors=True)
    report = rebuild.run(spark, store, rules=SMALL, split_bytes=20_000)
    after = {name: files_below(store / name) for name in BUILT}
    assert after["consumequeue"] == before["consumequeue"]
    assert list(after["index"].values()) == list(before["index"].values())
    assert not (store / STAGING).exists()
    totals = dict(zip(*report.tables["totals"].to_pydict().values(), strict=True))
    assert (totals["records"], totals["queueEntries"], report.findings) == (400, 400, 0)
    with store_of(store) as reopened:
        assert reopened.queues.get("orders", 0) is not None
    assert files_below(store / "index").keys() == after["index"].keys()  # the broker did not build it again


def test_a_log_without_its_beginning_gives_queues_with_a_filled_head(tmp_path: Path) -> None:
    store = tmp_path / "store"
    put_many(store)
    whole = {name: files_below(store / name) for name in BUILT}
    log = sorted((store / "commitlog").iterdir())
    assert len(log) == 1
    _forget_the_first_records(log[0], 250)
    rebuild.run(HERE, store, target=tmp_path / "new", rules=SMALL, skip_damage=True, parts=("queues",))
    new = files_below(tmp_path / "new" / "consumequeue")
    filling = (0).to_bytes(8, "big") + (2147483647).to_bytes(4, "big") + bytes(8)
    for name, data in new.items():
        old = whole["consumequeue"][name]
        same = next(at for at in range(0, len(data), 20) if data[at : at + 20] == old[at : at + 20] != bytes(20))
        assert data[:same] == filling * (same // 20), name
        assert data[same:] == old[same:], name
    assert any(data.startswith(filling) for data in new.values())


def _forget_the_first_records(path: Path, count: int) -> None:
    """Leave a log as retention leaves it, but inside one file: a blank stretch that no record claims."""
    log, position = bytearray(path.read_bytes()), 0
    for _ in range(count):
        position += int.from_bytes(log[position : position + 4], "big")
    log[:position] = b"\xff" * position
    path.write_bytes(log)


def test_missing_numbers_are_filled_and_the_last_of_repeated_ones_counts(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    log = bytearray()
    for offset in (0, 1, 4, 5, 1, 6):  # 2 and 3 are missing, 1 comes twice
        log += record(len(log), topic="t", queue_id=0, queue_offset=offset)
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(log.ljust(2000, b"\0"))
    report = rebuild.run(HERE, tmp_path, rules=SMALL, split_bytes=100)
    data = (tmp_path / "consumequeue" / "t" / "0" / f"{0:020d}").read_bytes()
    size = len(record(0, topic="t"))
    places = [int.from_bytes(data[at : at + 8], "big") for at in range(0, 140, 20)]
    assert places == [0, 4 * size, 0, 0, 2 * size, 3 * size, 5 * size]
    assert data[40:60] == data[60:80] == bytes(8) + (2147483647).to_bytes(4, "big") + bytes(8)
    (queue,) = report.tables["queues"].to_pylist()
    assert (queue["entries"], queue["gaps"], queue["repeats"]) == (5, 2, 1)
    assert report.findings == 1


def test_a_queue_that_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    store = tmp_path / "store"
    put_many(store, 30)
    with store_of(store) as opened:
        opened.removal.remove_topic("SCHEDULE_TOPIC_XXXX")
    report = rebuild.run(HERE, store, rules=SMALL, force=True)
    assert {row["topic"] for row in report.tables["queues"].to_pylist()} == {"orders"}


def test_a_topic_name_cannot_lead_out_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    log = record(0, topic="../../outside", queue_id=0, queue_offset=0)
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(log.ljust(2000, b"\0"))
    report = rebuild.run(HERE, tmp_path, rules=SMALL)
    assert report.findings == 1
    assert not list(tmp_path.parent.glob("**/outside"))


# -- publishing ----------------------------------------------------------------------------------------------


def test_what_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    store = tmp_path / "store"
    put_many(store, 60)
    before = files_below(store / "consumequeue")
    names = sorted(files_below(store / "index"))
    with pytest.raises(WouldOverwrite, match="consumequeue and index already; --force"):
        rebuild.run(HERE, store, rules=SMALL)
    (store / "consumequeue" / "orders" / "0" / f"{0:020d}").write_bytes(b"damaged")
    rebuild.run(HERE, store, rules=SMALL, force=True)
    assert files_below(store / "consumequeue") == before
    assert sorted(files_below(store / "index")) == names


def test_a_running_broker_is_not_disturbed(tmp_path: Path) -> None:
    import subprocess
    import sys

    store = tmp_path / "store"
    put_many(store, 5)
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX, 1);"
        "print('locked', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(store / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(StoreLocked, match="stop it first"):
            rebuild.run(HERE, store, rules=SMALL, force=True)
        rebuild.run(HERE, store, target=tmp_path / "elsewhere", rules=SMALL)
    finally:
        holder.communicate(timeout=60)


def test_a_dry_run_leaves_no_trace(tmp_path: Path) -> None:
    store = tmp_path / "store"
    put_many(store, 60)
    before = files_below(store)
    report = rebuild.run(HERE, store, rules=SMALL, dry_run=True)
    assert files_below(store) == before
    assert "nothing was changed" in report.notes[0]


def test_an_interrupted_rebuild_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = GoldenStore("4.9.7", "clean")
    original = golden.extract(tmp_path / "store")
    options: dict[str, Any] = {"target": tmp_path / "new", "rules": rules_of(golden), "split_bytes": 60_000}

    def dies(*_: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(rebuild, "_build_index", dies)
        with pytest.raises(RuntimeError, match="killed"):
            rebuild.run(HERE, original, **options)
    done = sorted((tmp_path / "new" / STAGING / "done").iterdir())
    assert len(done) > 4
    result = json.loads(done[0].read_text())
    result["records"] += 1_000_000  # only a run that believes it reports so many
    done[0].write_text(json.dumps(result))
    report = rebuild.run(HERE, original, **options)
    totals = dict(zip(*report.tables["totals"].to_pydict().values(), strict=True))
    assert totals["records"] == 1_000_000 + 2169
    assert files_below(tmp_path / "new" / "consumequeue") == files_below(original / "consumequeue")
    assert list(files_below(tmp_path / "new" / "index").values()) == list(files_below(original / "index").values())


def test_a_damaged_log_is_not_rebuilt_from_unless_told_to(tmp_path: Path) -> None:
    store = tmp_path / "store"
    put_many(store, 60)
    (path,) = (store / "commitlog").iterdir()
    log = bytearray(path.read_bytes())
    tenth = 0
    for _ in range(10):
        tenth += int.from_bytes(log[tenth : tenth + 4], "big")
    log[tenth + 4] ^= 0xFF
    path.write_bytes(log)
    with pytest.raises(CorruptFile, match=f"physical offset {tenth}"):
        rebuild.run(HERE, store, rules=SMALL, force=True)
    report = rebuild.run(HERE, store, rules=SMALL, force=True, skip_damage=True)
    assert [row["physicalOffset"] for row in report.tables["damage"].to_pylist()] == [tenth]
    assert report.findings == 2  # the region, and the queue that lacks its entry


def test_keys_are_shared_out_to_index_files_of_one_less_than_their_capacity() -> None:
    assert ranges_of_files([("a", 3), ("b", 0), ("c", 5)], 5) == [
        [KeyRange("a", 0, 3), KeyRange("c", 0, 1)],
        [KeyRange("c", 1, 5)],
    ]
