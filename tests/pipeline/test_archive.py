"""The archive job: every message of a log is in the lake exactly once, whatever happened to run, log or lake."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skyrocket.config.sections import StoreConfig
from skyrocket.errors import ConfigError
from skyrocket.format.properties import encode_properties
from skyrocket.format.record import WalkEnd
from skyrocket.pipeline.archive.plan import Coverage, LogBehindLake, coverage, plan_archive, waves
from skyrocket.pipeline.archive.split_task import LostRange, SplitOutcome
from skyrocket.pipeline.commit_log.log_files import LogFile
from skyrocket.pipeline.jobs import archive, compact
from skyrocket.pipeline.jobs.archive import ArchiveFrom
from skyrocket.pipeline.jobs.inputs import Archive, messages
from skyrocket.pipeline.lake import Gap, Lake
from skyrocket.store.commit_log import PutMessage
from skyrocket.store.message_store import MessageStore
from tests.golden_store import GoldenStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_SIZE = 65_536
CONFIG = StoreConfig(commit_log_file_size=FILE_SIZE, consume_queue_file_size=400, index_slots=50, index_entries=300)
BROKER = "broker-a"


def put(store: Path, numbers: range) -> None:
    """Messages of three topics, the number in the body; a record has about 250 bytes."""
    with MessageStore(store, CONFIG) as ours:
        for number in numbers:
            properties = {"UNIQ_KEY": f"unique-{number}", "KEYS": f"key-{number}", "TAGS": f"Tag{number % 3}"}
            topic = ("Orders", "Payments", "%RETRY%billing group")[number % 3]
            ours.put(PutMessage(topic, number % 4, b"%d" % number + b" " * 90, encode_properties(properties)))


def archived(lake: Path) -> list[int]:
    """The numbers in the lake, by its books, in the order of the log."""
    tables = [pq.read_table(lake / path, partitioning=None) for path in Lake(lake).state().files]
    if not tables:
        return []
    table = pa.concat_tables(tables).sort_by("commitLogOffset")
    return [int(body) for body in table["body"].to_pylist()]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    put(tmp_path / "store", range(600))
    return tmp_path / "store"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def log_file(store: Path, number: int) -> Path:
    return store / "commitlog" / f"{number * FILE_SIZE:020d}"


# ── planning ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def files(*bases: int, size: int = 100) -> list[LogFile]:
    return [LogFile(f"{base:020d}", base, size, newest=base == bases[-1]) for base in bases]


def ranges(plan_files: list[LogFile], archived_to: int | None, split_bytes: int = 40) -> list[tuple[int, int, bool]]:
    plan = plan_archive(plan_files, BROKER, archived_to, split_bytes)
    return [
        (each.base_offset + each.begin, each.base_offset + each.end, each.at_record)
        for file in plan.files
        for each in file.splits
    ]


def test_a_run_is_cut_at_fixed_borders_from_where_the_lake_ends() -> None:
    assert ranges(files(0, 100), None) == [
        (0, 40, True),
        (40, 80, False),
        (80, 100, False),
        (100, 140, True),
        (140, 180, False),
        (180, 200, False),
    ]
    assert ranges(files(0, 100), 130) == [(130, 140, True), (140, 180, False), (180, 200, False)]
    assert ranges(files(0, 100), 140) == [(140, 180, True), (180, 200, False)]
    assert ranges(files(0, 100), 200) == []


def test_files_that_are_gone_are_gaps() -> None:
    assert [each.gap for each in plan_archive(files(200, 400, 500), BROKER, 150, 100).files] == [
        Gap(BROKER, 150, 200, "deleted before it was archived"),
        Gap(BROKER, 300, 400, "no such file in the log"),
        None,
    ]
    assert [each.gap for each in plan_archive(files(200), BROKER, None, 100).files] == [None]


def test_a_log_that_ends_before_the_lake_is_another_log() -> None:
    with pytest.raises(LogBehindLake, match="ends at offset 200, but the lake holds it up to 300"):
        plan_archive(files(0, 100), BROKER, 300, 100)


def test_waves_hold_whole_files() -> None:
    plan = plan_archive(files(0, 100, 200), BROKER, None, 40)
    assert [[each.begin for each in wave] for wave in waves(plan.files, 150)] == [[0, 100], [200]]
    assert [len(wave) for wave in waves(plan.files, 1)] == [1, 1, 1]
    assert waves([], 1) == []


def seen(begin: int | None, end: int = 0, *lost: LostRange) -> SplitOutcome:
    return SplitOutcome(begin=begin, end=end, lost=list(lost))


@pytest.mark.parametrize(
    ("is_newest", "outcomes", "what_stands_there", "expected"),
    [
        (False, [seen(0, 50), seen(50, 100)], None, Coverage(100, [])),
        (False, [seen(0, 90), seen(None)], (WalkEnd.BLANK, ""), Coverage(100, [])),
        (False, [seen(0, 90), seen(None)], (WalkEnd.ZERO, "zeros"), Coverage(100, [LostRange(90, 100, "zeros")])),
        (False, [seen(0, 40), seen(60, 100)], None, Coverage(100, [LostRange(40, 60, "no record begins here")])),
        (False, [seen(0, 100, LostRange(30, 100, "bad"))], None, Coverage(100, [LostRange(30, 100, "bad")])),
        (True, [seen(0, 60), seen(None)], (WalkEnd.ZERO, "zeros"), Coverage(60, [])),
        (True, [seen(0, 60), seen(None)], (WalkEnd.DAMAGED, "half"), Coverage(60, [], "half")),
        (True, [seen(0, 100, LostRange(30, 100, "half"))], None, Coverage(30, [], "half")),
        (True, [seen(0, 100, LostRange(30, 40, "bad"))], None, Coverage(100, [LostRange(30, 40, "bad")])),
    ],
)
def test_what_the_splits_of_a_file_saw_is_laid_end_to_end(
    is_newest: bool, outcomes: list[SplitOutcome], what_stands_there: tuple[WalkEnd, str], expected: Coverage
) -> None:
    file = LogFile("0", 0, 100, newest=is_newest)
    assert coverage(file, 0, outcomes, lambda _: what_stands_there) == expected


# ── with Spark ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("A017")
def test_every_message_is_in_the_lake_once_however_often_the_job_runs(
    spark: "SparkSession", store: Path, lake: Path
) -> None:
    source = ArchiveFrom(store, BROKER)
    report = archive.run(spark, source, lake, split_bytes=20_000, wave_bytes=FILE_SIZE)
    assert report.findings == 0
    assert archived(lake) == list(range(600))
    once = Lake(lake).state()
    archive.run(spark, source, lake)
    assert Lake(lake).state() == once
    put(store, range(600, 700))
    (summary,) = archive.run(spark, source, lake).tables["archive"].to_pylist()
    assert summary["messages"] == 100
    assert summary["hoursAheadOfRetention"] == pytest.approx(72, abs=1)
    assert archived(lake) == list(range(700))
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    assert (lake / "topic=%25RETRY%25billing group").is_dir()
    rows = spark.read.parquet(str(lake)).groupBy("topic").count().collect()
    assert {row["topic"]: row["count"] for row in rows} == {"Orders": 234, "Payments": 233, "%RETRY%billing group": 233}
    assert {each.date for each in Lake(lake).state().files.values()} <= {
        today,
        *(each.date for each in once.files.values()),
    }
    read = messages(spark, Archive(lake), ["Orders"], ["topic", "keys", "tags", "properties", "msgId"])
    (row,) = read.where("keys = 'key-3'").collect()
    assert (row["topic"], row["tags"], row["properties"]["UNIQ_KEY"]) == ("Orders", "Tag0", "unique-3")


def test_small_files_are_joined_and_a_delta_table_follows(spark: "SparkSession", store: Path, lake: Path) -> None:
    from deltalake import DeltaTable

    source = ArchiveFrom(store, BROKER, topics="Orders|Payments")
    archive.run(spark, source, lake, split_bytes=20_000, table="delta")
    many = len(Lake(lake).state().files)
    compact.run(spark, lake, dry_run=True)
    assert len(Lake(lake).state().files) == many
    report = compact.run(spark, lake, table="delta")
    files_left = Lake(lake).state().files.values()
    assert len(files_left) == len({(each.topic, each.date) for each in files_left}) < many
    assert report.notes[0] == f"{many} files became {len(files_left)}"
    assert archived(lake) == [number for number in range(600) if number % 3 != 2]
    assert DeltaTable(str(lake)).to_pyarrow_table().num_rows == 400
    assert compact.run(spark, lake).tables["joined"].num_rows == 0


def test_a_dry_run_writes_nothing_and_says_what_waits(spark: "SparkSession", store: Path, lake: Path) -> None:
    report = archive.run(spark, ArchiveFrom(store, BROKER), lake, dry_run=True)
    assert "bytes would be read" in report.notes[0]
    assert not lake.exists()


def test_damaged_bytes_become_gaps_with_their_place_and_all_others_are_archived(
    spark: "SparkSession", store: Path, lake: Path
) -> None:
    border = 20_000
    damage = log_file(store, 0)
    data = bytearray(damage.read_bytes())
    # from the first record that begins behind the border of the first split, three records are overwritten
    starts = record_starts(data)
    first = next(index for index, position in enumerate(starts) if position >= border)
    begin, end = starts[first], starts[first + 3]
    data[begin:end] = b"\xff" * (end - begin)
    damage.write_bytes(data)
    report = archive.run(spark, ArchiveFrom(store, BROKER), lake, split_bytes=border)
    assert report.findings == 1
    (gap,) = Lake(lake).state().gaps
    assert (gap.begin, gap.end) == (begin, end)
    assert archived(lake) == [number for number in range(600) if not first <= number < first + 3]


def record_starts(data: bytes | bytearray) -> list[int]:
    starts, position = [], 0
    while int.from_bytes(data[position + 4 : position + 8], "big") == 0xDAA320A7:
        starts.append(position)
        position += int.from_bytes(data[position : position + 4], "big")
    return starts


def test_what_retention_deleted_first_is_told(spark: "SparkSession", store: Path, lake: Path) -> None:
    source = ArchiveFrom(store, BROKER)
    archive.run(spark, source, lake)
    put(store, range(600, 1400))
    archived_to = Lake(lake).state().archived_to[BROKER]
    kept = sorted((store / "commitlog").iterdir())[-2:]
    for each in sorted((store / "commitlog").iterdir())[:-2]:
        each.unlink()
    report = archive.run(spark, source, lake)
    (gap,) = Lake(lake).state().gaps
    assert (gap.begin, gap.end, gap.cause) == (archived_to, int(kept[0].name), "deleted before it was archived")
    assert report.findings == 1
    assert len(archived(lake)) == len(set(archived(lake)))
    assert archived(lake)[-1] == 1399


def test_a_lake_takes_no_other_log_and_no_other_choice_of_topics(
    spark: "SparkSession", store: Path, lake: Path, tmp_path: Path
) -> None:
    archive.run(spark, ArchiveFrom(store, BROKER), lake)
    with pytest.raises(ConfigError, match=r"was begun with --topics '\.\*', not 'Orders'"):
        archive.run(spark, ArchiveFrom(store, BROKER, topics="Orders"), lake)
    put(tmp_path / "other", range(1, 700))
    with pytest.raises(LogBehindLake, match="is not the one that the lake holds"):
        archive.run(spark, ArchiveFrom(tmp_path / "other", BROKER), lake)
    put(tmp_path / "short", range(100))
    with pytest.raises(LogBehindLake, match="the lake holds it up to"):
        archive.run(spark, ArchiveFrom(tmp_path / "short", BROKER), lake)
    archive.run(spark, ArchiveFrom(tmp_path / "other", "broker-b"), lake)
    assert sorted(archived(lake)) == sorted([*range(600), *range(1, 700)])


GOLDEN_STORES = [GoldenStore("5.4.0", "clean"), GoldenStore("5.4.0", "killed"), GoldenStore("4.9.7", "clean")]


@pytest.mark.parametrize("golden", GOLDEN_STORES, ids=str)
def test_a_store_of_apache_rocketmq_is_archived(golden: GoldenStore, spark: "SparkSession", tmp_path: Path) -> None:
    original = golden.extract(tmp_path / "rocketmq")
    report = archive.run(spark, ArchiveFrom(original, BROKER), tmp_path / "lake", split_bytes=100_000)
    expected = sorted(line["physicalOffset"] for line in golden.messages() if line["kind"] == "message")
    tables = [pq.read_table(path, partitioning=None) for path in (tmp_path / "lake").glob("topic=*/dt=*/*.parquet")]
    assert sorted(set(pa.concat_tables(tables)["commitLogOffset"].to_pylist())) == expected
    assert report.findings == 0 or report.tables["archive"].to_pylist()[0]["gaps"] == 0
